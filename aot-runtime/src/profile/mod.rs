//! Where the time of a run goes.

mod recorder;
mod table;
mod trace;

pub(crate) use recorder::Recorded;

use std::time::Duration;

/// One run, piece by piece: [`Display`](std::fmt::Display) is a table, [`Profile::trace`] what trace viewers read.
///
/// On a GPU the pieces are kernels and copies, timed by its clock: each begins when the one before has ended, which is
/// not so in other runs, and the time between two points of that clock, about a microsecond, is part of each. On the CPU
/// they are the nodes of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model's name in the manifest.
    pub model: String,
    /// The device's name.
    pub device: String,
    /// The pieces in order.
    pub spans: Vec<Span>,
}

/// A piece of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What does it: a kernel's function, `copy`, or an operator.
    pub what: String,
    /// Names of the source model's nodes that it computes.
    pub nodes: Vec<String>,
    /// When it began, after the beginning of the run.
    pub start: Duration,
    /// How long it took.
    pub time: Duration,
    /// What it had to do at least, where that is known.
    pub work: Option<Work>,
    /// How long the device would take for that at its peak, where both are known.
    pub floor: Option<Duration>,
}

/// An amount of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations: two for each multiply-add of products, one for each element that is mapped, reduced
    /// or scanned.
    pub flop: f64,
    /// Bytes that are read or written: each buffer once, and of one that is only sampled no more than is loaded.
    pub bytes: f64,
}

impl Profile {
    /// The sum of all pieces' times.
    pub fn time(&self) -> Duration {
        self.spans.iter().map(|span| span.time).sum()
    }
}

impl Span {
    /// The nodes, shortened: the first, and how many more there are.
    fn label(&self) -> String {
        match self.nodes.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first, rest @ ..] => format!("{first} (+{})", rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(what: &str, nodes: &[&str], start: u64, time: u64) -> Span {
        Span {
            what: what.to_owned(),
            nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
            start: Duration::from_micros(start),
            time: Duration::from_micros(time),
            work: Some(Work { flop: 4e6, bytes: 2e6 }),
            floor: Some(Duration::from_nanos(500)),
        }
    }

    fn profile() -> Profile {
        let copy = Span { work: None, floor: None, ..span("copy", &[], 0, 5) };
        let product = span("aot_contraction", &["/dense/\"MatMul\"", "/dense/Add"], 5, 10);
        let again = span("aot_contraction", &["/dense/\"MatMul\"", "/dense/Add"], 15, 4);
        let (model, device) = ("net".to_owned(), "GPU".to_owned());
        Profile { model, device, spans: vec![copy, product, again] }
    }

    #[test]
    fn the_table_sums_what_is_done_again_and_begins_with_what_takes_longest() {
        assert_eq!(
            profile().to_string(),
            "net on GPU: 19.0 us in 3 pieces
   share      time  times     GB/s  TFLOP/s  of peak
   73.7%   14.0 us      2    285.7     0.57     7.1%  aot_contraction  /dense/\"MatMul\" (+1)
   26.3%    5.0 us      1                             copy
"
        );
    }

    #[test]
    fn runs_are_added_to_a_trace_that_needs_no_end() {
        let path = std::env::temp_dir().join(format!("aot-trace-{}", std::process::id()));
        let recorder = Box::leak(Box::new(recorder::Recorder::new(&path).unwrap()));
        let rows = ["net", "other"].map(|model| recorder.row("GPU", model).unwrap());
        let at = Duration::from_micros(100);
        rows[1].add(at, &profile().spans[..1]).unwrap();
        rows[0].add(at * 2, &profile().spans[2..]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "[");
        assert!(lines[4].contains(r#""args":{"name":"other"}"#), "{text}");
        assert!(lines[5].contains(r#""pid":2,"tid":1,"ts":100,"dur":5,"#), "{text}");
        assert!(lines[6].contains(r#""pid":1,"tid":1,"ts":215,"dur":4,"#), "{text}");
        assert!(lines[1..].iter().all(|line| line.starts_with('{') && line.ends_with("},")));
        assert_eq!(lines.len(), 7);
        let nowhere = path.join("below/a/file");
        let error = recorder::Recorder::new(&nowhere).unwrap_err().to_string();
        assert!(error.starts_with("AOT_PROFILE is `"), "{error}");
    }

    #[test]
    fn the_trace_is_json_with_a_piece_per_event() {
        let trace: Vec<&str> = Box::leak(profile().trace().into_boxed_str()).lines().collect();
        assert_eq!(trace.first(), Some(&"{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
        assert_eq!(
            trace[1],
            "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"GPU\"}},"
        );
        assert_eq!(
            trace[4],
            "{\"name\":\"aot_contraction /dense/\\\"MatMul\\\" (+1)\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\
             \"ts\":5,\"dur\":10,\"args\":{\"nodes\":[\"/dense/\\\"MatMul\\\"\",\"/dense/Add\"],\
             \"flop\":4000000,\"bytes\":2000000,\"floor_us\":0.5}},"
        );
        assert_eq!(trace.last(), Some(&"]}"));
    }
}
