//! A profile as trace viewers read it: the JSON of the Trace Event Format that Chrome and Perfetto know, complete events
//! (`"ph":"X"`) with times in microseconds.

use std::fmt::Write;
use std::time::Duration;

use super::{Profile, Span};

/// Where a viewer shows a model's runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) process: u32,
    pub(super) thread: u32,
}

impl Profile {
    /// The trace, a JSON object with an event per piece.
    pub fn trace(&self) -> String {
        let row = Row { process: 1, thread: 1 };
        let names = names(row, &self.device, &self.model).into_iter();
        let events: Vec<String> = names.chain(events(row, Duration::ZERO, &self.spans)).collect();
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
    }
}

/// The events that name a row: the device is the process, the model a thread.
pub(super) fn names(Row { process, thread }: Row, device: &str, model: &str) -> [String; 2] {
    [("process_name", device), ("thread_name", model)].map(|(what, name)| {
        let name = quoted(name);
        format!(
            "{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\
             \"args\":{{\"name\":{name}}}}}"
        )
    })
}

/// An event per piece of a run that began then.
pub(super) fn events(
    Row { process, thread }: Row,
    began: Duration,
    spans: &[Span],
) -> impl Iterator<Item = String> + '_ {
    spans.iter().map(move |span| {
        let label = span.label();
        let name = quoted(format!("{} {label}", span.what).trim_end());
        let (start, time) = (micros(began + span.start), micros(span.time));
        format!(
            "{{\"name\":{name},\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{start},\"dur\":{time},\
             \"args\":{}}}",
            arguments(span)
        )
    })
}

fn arguments(span: &Span) -> String {
    let nodes: Vec<String> = span.nodes.iter().map(|node| quoted(node)).collect();
    let mut text = format!("{{\"nodes\":[{}]", nodes.join(","));
    if let Some(work) = span.work {
        text += &format!(",\"flop\":{},\"bytes\":{}", work.flop, work.bytes);
    }
    if let Some(floor) = span.floor {
        text += &format!(",\"floor_us\":{}", micros(floor));
    }
    text + "}"
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
