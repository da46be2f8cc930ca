//! What machine code says of the kernels in it.
//!
//! A cubin is an ELF file (64 bits, little-endian) with a section `.text.K` per kernel `K`. The
//! section `.nv.info` lists attributes: a byte of format, a byte of attribute, and, in format 4, a
//! 16-bit length and that many bytes, in which a function's index in the symbol table and a number
//! stand for those that are read here. `.nv.shared.K` is as long as the static shared memory.

use serde::Serialize;

/// Resources of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The kernel's function.
    pub entry: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of stack per thread: arrays in local memory and spilled registers.
    pub stack: u32,
    /// Bytes of static shared memory per block.
    pub static_shared: u32,
    /// Bytes of machine code.
    pub code: u32,
}

/// Attributes of `.nv.info`.
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;

/// Attributes of this format have a length.
const WITH_LENGTH: u8 = 4;

const SECTION: usize = 64;
const SYMBOL: usize = 24;

/// The kernels of an image, in order of their names; none when it is no cubin, as PTX is none.
pub fn usage(image: &[u8]) -> Option<Vec<Usage>> {
    let file = Elf::open(image)?;
    let mut kernels = Vec::new();
    for (name, section) in &file.sections {
        let Some(entry) = name.strip_prefix(".text.") else { continue };
        let shared =
            file.sections.iter().find(|(name, _)| name.strip_prefix(".nv.shared.") == Some(entry));
        kernels.push(Usage {
            entry: entry.to_owned(),
            registers: 0,
            stack: 0,
            static_shared: shared.map_or(0, |(_, section)| section.size as u32),
            code: section.size as u32,
        });
    }
    for (attribute, symbol, value) in file.attributes() {
        let Some(name) = file.symbol(symbol) else { continue };
        let Some(kernel) = kernels.iter_mut().find(|kernel| kernel.entry == name) else { continue };
        match attribute {
            REGISTERS => kernel.registers = value,
            FRAME => kernel.stack = value,
            _ => {}
        }
    }
    kernels.sort_by(|a, b| a.entry.cmp(&b.entry));
    Some(kernels)
}

/// A file's sections by name.
struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<(&'a str, Section)>,
}

/// Where a section lies.
#[derive(Clone, Copy)]
struct Section {
    offset: u64,
    size: u64,
}

impl<'a> Elf<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        // ELF, 64 bits, little-endian.
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let table = usize::try_from(number(bytes, 0x28, 8)?).ok()?;
        let count = usize::try_from(number(bytes, 0x3c, 2)?).ok()?;
        let names = usize::try_from(number(bytes, 0x3e, 2)?).ok()?;
        let header = |index: usize| -> Option<(usize, Section)> {
            let at = table.checked_add(index.checked_mul(SECTION)?)?;
            let header = bytes.get(at..at.checked_add(SECTION)?)?;
            let name = usize::try_from(number(header, 0, 4)?).ok()?;
            let (offset, size) = (number(header, 24, 8)?, number(header, 32, 8)?);
            Some((name, Section { offset, size }))
        };
        let file = Self { bytes, sections: Vec::new() };
        let texts = file.content(header(names)?.1)?;
        let mut sections = Vec::with_capacity(count);
        for index in 0..count {
            let (name, section) = header(index)?;
            sections.push((text(texts, name)?, section));
        }
        Some(Self { bytes, sections })
    }

    fn content(&self, section: Section) -> Option<&'a [u8]> {
        let start = usize::try_from(section.offset).ok()?;
        let end = start.checked_add(usize::try_from(section.size).ok()?)?;
        self.bytes.get(start..end)
    }

    fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.content(self.sections.iter().find(|(n, _)| *n == name)?.1)
    }

    /// The name of a symbol.
    fn symbol(&self, index: u32) -> Option<&'a str> {
        let at = usize::try_from(index).ok()?.checked_mul(SYMBOL)?;
        let name = number(self.section(".symtab")?, at, 4)?;
        text(self.section(".strtab")?, usize::try_from(name).ok()?)
    }

    /// Attribute, symbol and value of those with both.
    fn attributes(&self) -> Vec<(u8, u32, u32)> {
        let mut found = Vec::new();
        let mut rest = self.section(".nv.info").unwrap_or_default();
        while let [format, attribute, low, high, more @ ..] = rest {
            rest = more;
            if *format != WITH_LENGTH {
                continue;
            }
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            let Some((content, after)) = more.split_at_checked(length) else { break };
            rest = after;
            if let (Some(symbol), Some(value)) = (number(content, 0, 4), number(content, 4, 4)) {
                found.push((*attribute, symbol as u32, value as u32));
            }
        }
        found
    }
}

/// A little-endian number of `width` bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// The text at a place of a table of texts, each with a zero after it.
fn text(table: &[u8], at: usize) -> Option<&str> {
    let rest = table.get(at..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..length]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these sections, the first one of no name.
    fn elf(sections: &[(&str, &[u8], Option<u64>)]) -> Vec<u8> {
        let mut names = vec![0u8];
        let mut bodies = Vec::new();
        let mut headers = vec![[0u8; SECTION]];
        let start = 64;
        let table = |name: usize, offset: usize, size: u64| {
            let mut header = [0; SECTION];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&size.to_le_bytes());
            header
        };
        for (name, body, size) in sections {
            let size = size.unwrap_or(body.len() as u64);
            headers.push(table(names.len(), start + bodies.len(), size));
            names.extend(name.bytes().chain([0]));
            bodies.extend_from_slice(body);
        }
        headers.push(table(0, start + bodies.len(), names.len() as u64));
        bodies.extend(names);
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(64, 0);
        file[0x28..0x30].copy_from_slice(&((start + bodies.len()) as u64).to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&(headers.len() as u16).to_le_bytes());
        file[0x3e..0x40].copy_from_slice(&(headers.len() as u16 - 1).to_le_bytes());
        file.extend(bodies);
        file.extend(headers.concat());
        file
    }

    fn sample() -> Vec<u8> {
        let words = |list: &[u32]| list.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        // Of symbol 1 26 registers, of symbol 2 168; a flag; of symbol 2 a stack of 40 bytes.
        let info = words(&[0x8_2f04, 1, 26, 0x8_2f04, 2, 168, 0x1_0801, 0x8_1104, 2, 40]);
        let symbols = words(&[[0; 6], [1, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0]].concat());
        elf(&[
            (".nv.info", &info, None),
            (".symtab", &symbols, None),
            (".strtab", b"\0a\0gemm\0", None),
            (".text.gemm", &[0; 48], None),
            (".text.a", &[0; 16], None),
            (".nv.shared.gemm", &[], Some(1024)),
        ])
    }

    #[test]
    fn resources_of_every_kernel() {
        let usage = usage(&sample()).unwrap();
        let kernel = |entry: &str, registers, stack, static_shared, code| Usage {
            entry: entry.to_owned(),
            registers,
            stack,
            static_shared,
            code,
        };
        assert_eq!(usage, [kernel("a", 26, 0, 0, 16), kernel("gemm", 168, 40, 1024, 48)]);
    }

    #[test]
    fn other_files_and_cut_ones_are_none() {
        assert_eq!(usage(b".version 8.8"), None);
        let whole = sample();
        for length in 0..whole.len() {
            assert_eq!(usage(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn no_changed_byte_does_harm() {
        let whole = sample();
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                usage(&changed);
            }
        }
    }
}
