//! A profile as a table.

use std::fmt;
use std::time::Duration;

use super::{Profile, Span, Work};

/// Pieces that do the same.
#[derive(Default)]
struct Row {
    times: usize,
    time: Duration,
    work: Option<Work>,
    floor: Option<Duration>,
}

impl Row {
    fn add(&mut self, span: &Span) {
        self.times += 1;
        self.time += span.time;
        if let Some(work) = span.work {
            let sum = self.work.get_or_insert_default();
            sum.flop += work.flop;
            sum.bytes += work.bytes;
        }
        if let Some(floor) = span.floor {
            *self.floor.get_or_insert_default() += floor;
        }
    }
}

/// A line per kind of piece, the longest first.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(String, Row)> = Vec::new();
        for span in &self.spans {
            let name = format!("{}  {}", span.what, span.label());
            let place = rows.iter().position(|(known, _)| *known == name);
            let place = place.unwrap_or_else(|| {
                rows.push((name, Row::default()));
                rows.len() - 1
            });
            rows[place].1.add(span);
        }
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.time));
        let total = self.time();
        let (model, device, pieces) = (&self.model, &self.device, self.spans.len());
        writeln!(f, "{model} on {device}: {} in {pieces} pieces", micros(total))?;
        writeln!(f, "   share      time  times     GB/s  TFLOP/s  of peak")?;
        for (name, row) in rows {
            let seconds = row.time.as_secs_f64().max(1e-12);
            let share = 100.0 * seconds / total.as_secs_f64().max(1e-12);
            let rate = |amount: Option<f64>, unit: f64, digits: usize| {
                amount.map_or(String::new(), |n| format!("{:.digits$}", n / seconds / unit))
            };
            let bytes = rate(row.work.map(|work| work.bytes), 1e9, 1);
            let flop = rate(row.work.map(|work| work.flop), 1e12, 2);
            let peak = row.floor.map(|floor| 100.0 * floor.as_secs_f64() / seconds);
            let peak = peak.map_or(String::new(), |percent| format!("{percent:.1}%"));
            let (time, times) = (micros(row.time), row.times);
            let line =
                format!("{share:7.1}% {time:>9} {times:6} {bytes:>8} {flop:>8} {peak:>8}  {name}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}
