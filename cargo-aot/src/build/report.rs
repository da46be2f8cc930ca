//! What the compiler's log says about a kernel.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Resources of one entry function, as ptxas reports them with `-v`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// The function's name.
    pub entry: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of stack per thread.
    pub stack: u32,
    /// Bytes stored to spilled registers per thread.
    pub spill_stores: u32,
    /// Bytes loaded from spilled registers per thread.
    pub spill_loads: u32,
    /// Bytes of static shared memory per block.
    pub shared: u32,
    /// Named barriers.
    pub barriers: u32,
}

/// A message of ptxas with a code, such as C7510.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    /// 7510.
    pub code: u16,
    /// What it says.
    pub text: String,
}

impl Coded {
    /// Whether it means that a kernel was not compiled as written: `setmaxnreg` ignored,
    /// `wgmma` serialised, or a wait injected between `wgmma`s.
    pub fn spoils_schedule(&self) -> bool {
        matches!(self.code, 7504 | 7508 | 7510..=7519)
    }
}

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C{}: {}", self.code, self.text)
    }
}

/// What a log says, in the order of the log. Empty for PTX, which no assembler has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// One for each entry function.
    pub entries: Vec<Resources>,
    /// Coded messages, each once.
    pub coded: Vec<Coded>,
    /// Warnings of the compiler proper.
    pub warnings: Vec<String>,
}

impl Report {
    /// Reads a log of NVRTC, compiled with `--ptxas-options=-v`.
    pub fn parse(log: &str) -> Self {
        let mut report = Self::default();
        for line in log.lines() {
            if let Some(message) = ptxas_message(line) {
                report.read_ptxas(message);
            } else if line.contains(": warning") {
                report.warnings.push(line.trim().to_owned());
            }
        }
        report
    }

    /// What was said before anything was assembled: the report of PTX.
    pub fn before_assembly(self) -> Self {
        Self { warnings: self.warnings, ..Self::default() }
    }

    /// Messages that mean that a kernel was not compiled as written.
    pub fn spoiling(&self) -> impl Iterator<Item = &Coded> {
        self.coded.iter().filter(|message| message.spoils_schedule())
    }

    /// Bytes of spilled registers per thread, stores and loads of all entries.
    pub fn spills(&self) -> u32 {
        self.entries.iter().map(|entry| entry.spill_stores + entry.spill_loads).sum()
    }

    /// The most registers per thread that an entry needs.
    pub fn registers(&self) -> u32 {
        self.entries.iter().map(|entry| entry.registers).max().unwrap_or(0)
    }

    fn read_ptxas(&mut self, message: &str) {
        if let Some((code, text)) = coded(message) {
            let message = Coded { code, text: text.to_owned() };
            if !self.coded.contains(&message) {
                self.coded.push(message);
            }
        } else if let Some(rest) = message.strip_prefix("Compiling entry function '") {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            self.entries.push(Resources { entry, ..Resources::default() });
        } else if let Some(entry) = self.entries.last_mut() {
            for (amount, what) in amounts(message) {
                match what {
                    "registers" => entry.registers = amount,
                    "bytes stack frame" => entry.stack = amount,
                    "bytes spill stores" => entry.spill_stores = amount,
                    "bytes spill loads" => entry.spill_loads = amount,
                    "bytes smem" => entry.shared = amount,
                    "barriers" => entry.barriers = amount,
                    _ => {}
                }
            }
        }
    }
}

/// What follows `ptxas info    :` or the continuation `ptxas         .`.
fn ptxas_message(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("ptxas")?;
    let (kind, message) = rest.split_once([':', '.'])?;
    let kind = kind.trim();
    (kind.is_empty() || kind == "info" || kind == "warning").then_some(message.trim())
}

/// 7510 and the rest of `(C7510) …`.
fn coded(message: &str) -> Option<(u16, &str)> {
    let (code, text) = message.strip_prefix("(C")?.split_once(')')?;
    Some((code.parse().ok()?, text.trim()))
}

/// `(14, "registers")`, `(4096, "bytes smem")` … of a comma-separated list.
fn amounts(message: &str) -> impl Iterator<Item = (u32, &str)> {
    message.split(',').filter_map(|part| {
        let part = part.trim();
        let part = part.strip_prefix("Used ").or(part.strip_prefix("used ")).unwrap_or(part);
        let (amount, what) = part.split_once(' ')?;
        Some((amount.parse().ok()?, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As NVRTC 13.5 writes it.
    const LOG: &str = "\
k.cu(11): warning #177-D: variable \"unused\" was declared but never referenced
    int unused = 3;
        ^

ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : (C7517) wgmma.wait_group is injected in around line 60 by compiler
ptxas info    : (C7517) wgmma.wait_group is injected in around line 60 by compiler
ptxas info    : (C7599) something harmless
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spill' for 'sm_90a'
ptxas info    : Function properties for spill
ptxas         .     888 bytes stack frame, 1216 bytes spill stores, 1260 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 888 bytes cumulative stack size, 40 bytes smem
ptxas info    : Compile time = 33.539 ms
ptxas info    : Compiling entry function 'small' for 'sm_90a'
ptxas info    : Function properties for small
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 380 bytes cmem[0]
";

    #[test]
    fn resources_and_messages_are_read() {
        let report = Report::parse(LOG);
        let spill = Resources {
            entry: "spill".to_owned(),
            registers: 32,
            stack: 888,
            spill_stores: 1216,
            spill_loads: 1260,
            shared: 40,
            barriers: 1,
        };
        let small = Resources { entry: "small".to_owned(), registers: 8, ..Resources::default() };
        assert_eq!(report.entries, [spill, small]);
        assert_eq!((report.registers(), report.spills()), (32, 2476));
        assert_eq!(report.warnings.len(), 1);
        let codes: Vec<u16> = report.coded.iter().map(|message| message.code).collect();
        assert_eq!(codes, [7508, 7517, 7599]);
        assert_eq!(report.spoiling().count(), 2);
    }

    #[test]
    fn other_text_says_nothing() {
        assert_eq!(Report::parse(""), Report::default());
        assert_eq!(Report::parse("ptxas\nptxas info\n(C7510) no\n"), Report::default());
    }
}
