//! How a build looks: lines and a bar on standard error, or JSON on standard output.

use std::collections::BTreeSet;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::events::{Counts, Event, Outcome, Watch};
use super::report::Report;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for people, on standard error.
    Human,
    /// One JSON object a line, on standard output; see docs/json.md.
    Json,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// For whom.
    pub format: Format,
    /// Only warnings and errors.
    pub quiet: bool,
    /// Also units that are fresh, and every kernel with its registers and spills.
    pub verbose: bool,
    /// Also why a unit was made.
    pub explain: bool,
    /// Whether lines have colours.
    pub color: bool,
    /// Whether there is a bar; only for terminals.
    pub bar: bool,
}

impl Options {
    /// Whether standard error is a terminal on which a bar can be drawn.
    pub fn bar_by_default() -> bool {
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        io::stderr().is_terminal() && !dumb && env::var_os("CI").is_none()
    }
}

/// Shows a build.
pub struct Progress {
    options: Options,
    state: Mutex<State>,
}

struct State {
    out: Box<dyn Write + Send>,
    bar: ProgressBar,
    /// The kernels that are being compiled.
    running: BTreeSet<String>,
    counts: Counts,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Colours of verbs.
#[derive(Clone, Copy)]
enum Tint {
    Green,
    Cyan,
    Yellow,
    Red,
}

impl Progress {
    /// Shows a build on the process's standard streams.
    pub fn new(options: Options) -> Self {
        match options.format {
            Format::Human => Self::to(options, Box::new(io::stderr())),
            Format::Json => Self::to(options, Box::new(io::stdout())),
        }
    }

    /// Writes lines to `out`; a bar goes to standard error all the same.
    fn to(options: Options, out: Box<dyn Write + Send>) -> Self {
        let state = State {
            out,
            bar: ProgressBar::hidden(),
            running: BTreeSet::new(),
            counts: Counts::default(),
        };
        Self { options, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A verb, right-aligned as cargo does it, and what it is about.
    fn line(&self, state: &mut State, tint: Tint, verb: &str, text: &str) {
        let line = format!("{} {text}", self.tinted(tint, &format!("{verb:>12}")));
        state.write(&line);
    }

    /// `warning: …` or `error: …`.
    fn message(&self, state: &mut State, tint: Tint, kind: &str, text: &str) {
        let line = format!("{}: {text}", self.tinted(tint, kind));
        state.write(&line);
    }

    fn tinted(&self, tint: Tint, text: &str) -> String {
        let code = match tint {
            Tint::Green => "32",
            Tint::Cyan => "36",
            Tint::Yellow => "33",
            Tint::Red => "31",
        };
        if self.options.color { format!("\x1b[1;{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn human(&self, state: &mut State, event: &Event) {
        match event {
            Event::Warning { message } => self.message(state, Tint::Yellow, "warning", message),
            Event::CacheRepair { path, damage, artifact } => {
                let text =
                    format!("{path} in the cache is damaged ({damage}); making {artifact} again");
                self.message(state, Tint::Yellow, "warning", &text);
            }
            Event::Error { message } => self.message(state, Tint::Red, "error", message),
            _ if self.options.quiet => {}
            Event::Status { verb, text } => self.line(state, Tint::Green, verb, text),
            Event::Unit { kind, name, fresh, why, millis } => {
                if self.options.explain && !fresh {
                    let text = format!("{kind} {name}: {}", why.join(", "));
                    self.line(state, Tint::Cyan, "Dirty", &text);
                }
                if !fresh {
                    let text = format!("{name} ({})", duration(*millis));
                    self.line(state, Tint::Green, verb_of(kind), &text);
                } else if self.options.verbose {
                    self.line(state, Tint::Green, "Fresh", &format!("{kind} {name}"));
                }
            }
            Event::KernelsStarted { total } => self.start_bar(state, *total),
            Event::KernelStarted { kernel, target } => {
                state.running.insert(format!("{kernel} {target}"));
                state.show_running();
            }
            Event::KernelFinished { kernel, target, schedule, outcome, millis, report } => {
                state.running.remove(&format!("{kernel} {target}"));
                state.counts.add(*outcome);
                state.bar.inc(1);
                state.show_running();
                let each = self.options.verbose || !self.options.bar;
                if *outcome == Outcome::Compiled && each {
                    let text = format!(
                        "{kernel} for {target} ({}){}",
                        duration(*millis),
                        details(self.options.verbose, schedule, report.as_ref())
                    );
                    self.line(state, Tint::Green, "Compiled", &text);
                }
            }
            Event::KernelsFinished { counts } => {
                state.bar.finish_and_clear();
                state.bar = ProgressBar::hidden();
                if self.options.bar && counts.compiled > 0 {
                    self.line(state, Tint::Green, "Compiled", &summary(*counts));
                }
            }
            Event::Finished { success: true, fresh, millis, counts } => {
                let text = match (fresh, counts.total()) {
                    (true, _) => format!("everything is up to date ({})", duration(*millis)),
                    (false, 0) => format!("in {}", duration(*millis)),
                    (false, _) => format!("in {} ({})", duration(*millis), summary(*counts)),
                };
                self.line(state, Tint::Green, "Finished", &text);
            }
            Event::Finished { .. } => {}
        }
    }

    fn start_bar(&self, state: &mut State, total: usize) {
        state.running.clear();
        state.counts = Counts::default();
        if !self.options.bar {
            return;
        }
        let style = ProgressStyle::with_template("{prefix:>12} [{bar:25}] {pos}/{len} {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(
            Some(total as u64),
            ProgressDrawTarget::stderr_with_hz(15),
        );
        bar.set_style(style);
        bar.set_prefix(self.tinted(Tint::Cyan, "   Compiling"));
        bar.enable_steady_tick(Duration::from_millis(100));
        state.bar = bar;
    }
}

impl State {
    /// Writes a line, above the bar if there is one. A stream that nobody reads is no error.
    fn write(&mut self, line: &str) {
        let Self { out, bar, .. } = self;
        bar.suspend(|| {
            let _ = writeln!(out, "{line}");
            let _ = out.flush();
        });
    }

    /// Counts, and as many running kernels as the line has room for.
    fn show_running(&self) {
        let counts = self.counts;
        let mut text = format!("({} cached, {} compiled", counts.cached, counts.compiled);
        if counts.failed > 0 {
            text += &format!(", {} failed", counts.failed);
        }
        text += ")";
        for (index, kernel) in self.running.iter().enumerate() {
            text += if index == 0 { " " } else { ", " };
            text += kernel;
        }
        self.bar.set_message(text);
    }
}

impl Watch for Progress {
    fn event(&self, event: Event) {
        let mut state = self.state();
        match self.options.format {
            Format::Human => self.human(&mut state, &event),
            Format::Json => {
                if let Ok(line) = serde_json::to_string(&event) {
                    state.write(&line);
                }
            }
        }
    }
}

/// What is done to make a unit.
fn verb_of(kind: &str) -> &'static str {
    match kind {
        "import" => "Imported",
        "plan" => "Planned",
        "weights" => "Packed",
        "crate" => "Generated",
        _ => "Built",
    }
}

fn summary(counts: Counts) -> String {
    let kernels = if counts.total() == 1 { "kernel" } else { "kernels" };
    let mut text = format!(
        "{} {kernels}: {} compiled, {} cached",
        counts.total(),
        counts.compiled,
        counts.cached
    );
    if counts.failed > 0 {
        text += &format!(", {} failed", counts.failed);
    }
    text
}

/// Schedule, registers and spills of a kernel. Spills are shown always.
fn details(verbose: bool, schedule: &str, report: Option<&Report>) -> String {
    let mut parts = Vec::new();
    if verbose {
        parts.push(schedule.to_owned());
    }
    if let Some(report) = report {
        if verbose && !report.entries.is_empty() {
            parts.push(format!("{} registers", report.registers()));
        }
        if report.spills() > 0 {
            parts.push(format!("{} bytes spilled", report.spills()));
        }
    }
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// `340 ms` or `2.41 s`.
fn duration(millis: u64) -> String {
    if millis < 1000 {
        format!("{millis} ms")
    } else {
        format!("{:.2} s", Duration::from_millis(millis).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const PLAIN: Options = Options {
        format: Format::Human,
        quiet: false,
        verbose: false,
        explain: false,
        color: false,
        bar: false,
    };

    fn shown(options: Options) -> String {
        let buffer = Buffer::default();
        let progress = Progress::to(options, Box::new(buffer.clone()));
        let kernel = |outcome, spilled| {
            let entry = crate::build::report::Resources {
                registers: 168,
                spill_loads: spilled,
                ..Default::default()
            };
            Event::KernelFinished {
                kernel: "gemm".to_owned(),
                target: "sm_90a".to_owned(),
                schedule: "mma 64x64".to_owned(),
                outcome,
                millis: 340,
                report: Some(Report { entries: vec![entry], ..Report::default() }),
            }
        };
        let unit = |fresh| Event::Unit {
            kind: "import".to_owned(),
            name: "minilm".to_owned(),
            fresh,
            why: vec!["minilm.onnx changed".to_owned()],
            millis: 12,
        };
        let counts = Counts { cached: 1, compiled: 2, failed: 0 };
        let started =
            Event::KernelStarted { kernel: "gemm".to_owned(), target: "sm_90a".to_owned() };
        for event in [
            unit(false),
            unit(true),
            Event::KernelsStarted { total: 3 },
            started,
            kernel(Outcome::Compiled, 0),
            kernel(Outcome::Compiled, 8),
            kernel(Outcome::Cached, 0),
            Event::KernelsFinished { counts },
            Event::CacheRepair {
                path: "c/ab".to_owned(),
                damage: "too short".to_owned(),
                artifact: "import a".to_owned(),
            },
            Event::Warning { message: "careful".to_owned() },
            Event::Error { message: "wrong".to_owned() },
            Event::Finished { success: true, fresh: false, millis: 2410, counts },
        ] {
            progress.event(event);
        }
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plain_lines() {
        assert_eq!(
            shown(PLAIN),
            "    Imported minilm (12 ms)
    Compiled gemm for sm_90a (340 ms)
    Compiled gemm for sm_90a (340 ms): 8 bytes spilled
warning: c/ab in the cache is damaged (too short); making import a again
warning: careful
error: wrong
    Finished in 2.41 s (3 kernels: 2 compiled, 1 cached)
"
        );
    }

    #[test]
    fn verbose_lines_explain() {
        assert_eq!(
            shown(Options { verbose: true, explain: true, ..PLAIN }),
            "       Dirty import minilm: minilm.onnx changed
    Imported minilm (12 ms)
       Fresh import minilm
    Compiled gemm for sm_90a (340 ms): mma 64x64, 168 registers
    Compiled gemm for sm_90a (340 ms): mma 64x64, 168 registers, 8 bytes spilled
warning: c/ab in the cache is damaged (too short); making import a again
warning: careful
error: wrong
    Finished in 2.41 s (3 kernels: 2 compiled, 1 cached)
"
        );
    }

    #[test]
    fn quiet_keeps_what_is_wrong() {
        assert_eq!(
            shown(Options { quiet: true, ..PLAIN }),
            "warning: c/ab in the cache is damaged (too short); making import a again\nwarning: careful\nerror: wrong\n"
        );
    }

    #[test]
    fn colours_are_escapes_around_the_verb() {
        let text = shown(Options { color: true, ..PLAIN });
        assert!(text.starts_with("\x1b[1;32m    Imported\x1b[0m minilm"), "{text:?}");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let text = shown(Options { format: Format::Json, quiet: true, ..PLAIN });
        let reasons = text.lines().map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["reason"].as_str().unwrap().to_owned()
        });
        let reasons: Vec<String> = reasons.collect();
        assert_eq!(reasons.len(), 12);
        assert_eq!(reasons[0], "unit");
        assert_eq!(reasons[4], "kernel-finished");
        assert_eq!(reasons[11], "finished");
    }
}
