//! Recurrent layers: few steps are unrolled, others are a loop.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::super::control::MAX_UNROLLED_NODES;
use super::recurrent_cell::{Cell, Kind};
use super::table::{Entry, microsoft, onnx};
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim};

pub(super) const RULES: &[Entry] = &[
    onnx("LSTM", |c| layer(c, Kind::Lstm, false)),
    onnx("GRU", |c| layer(c, Kind::Gru, false)),
    onnx("RNN", |c| layer(c, Kind::Rnn, false)),
    microsoft("DynamicQuantizeLSTM", |c| layer(c, Kind::Lstm, true)),
];

/// About as many nodes as a step becomes.
const NODES_PER_STEP: i64 = 32;

fn layer(c: &mut Call<'_>, kind: Kind, quantized: bool) -> OpResult<Vec<Tensor>> {
    let mut x = c.x(0)?;
    let batch_first = c.flag("layout", false);
    if c.rank(x) != 3 {
        return wrong(format!("rank {}, expected 3", c.rank(x)));
    }
    if batch_first {
        x = c.transpose(x, &[1, 0, 2])?;
    }
    let steps = c.shape(x)[0].clone();
    let directions = match c.text("direction", "forward").as_str() {
        "forward" => vec![false],
        "reverse" => vec![true],
        "bidirectional" => vec![false, true],
        other => return wrong(format!("direction is `{other}`")),
    };
    let batch = c.shape(x)[1].clone();
    let lengths = lengths(c, &steps, &batch)?;
    let (mut outputs, mut last, mut last_cell) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &backward) in directions.iter().enumerate() {
        let cell = Cell::read(c, kind, d, directions.len(), quantized)?;
        let state = |c: &mut Call<'_>, n: usize| -> OpResult {
            match c.opt(n) {
                Some(t) => {
                    let t = if batch_first { c.transpose(t, &[1, 0, 2])? } else { t };
                    c.pick(t, 0, Dim::from(d as i64))
                }
                None => {
                    let zero = c.scalar_like(0.0, x);
                    c.expand(zero, &[batch.clone(), cell.hidden.into()])
                }
            }
        };
        let mut states = vec![state(c, 5)?];
        if kind == Kind::Lstm {
            states.push(state(c, 6)?);
        }
        let direction =
            Direction { cell: &cell, shares: cell.shares(c, x)?, steps: &steps, backward, lengths };
        let (y, states) = direction.run(c, states)?;
        outputs.push(c.unsqueeze(y, &[1])?);
        last.push(c.unsqueeze(states[0], &[0])?);
        if let Some(&inner) = states.get(1) {
            last_cell.push(c.unsqueeze(inner, &[0])?);
        }
    }
    let mut y = c.concat(&outputs, 1)?;
    let mut states = vec![c.concat(&last, 0)?];
    if kind == Kind::Lstm {
        states.push(c.concat(&last_cell, 0)?);
    }
    if batch_first {
        // [steps, d, n, h] → [n, steps, d, h]; [d, n, h] → [n, d, h]
        y = c.transpose(y, &[2, 0, 1, 3])?;
        for state in &mut states {
            *state = c.transpose(*state, &[1, 0, 2])?;
        }
    }
    let mut out = vec![y];
    out.extend(states);
    Ok(out)
}

/// Lengths per sequence as `[n, 1]`, unless all are the number of steps.
fn lengths(c: &mut Call<'_>, steps: &Dim, batch: &Dim) -> OpResult<Option<Tensor>> {
    match c.opt(4) {
        None => Ok(None),
        Some(t) if c.uniform(t).is_some_and(|n| steps.is(n as i64)) => Ok(None),
        Some(t) => {
            let t = c.cast(t, DType::I64)?;
            Ok(Some(c.reshape(t, &[batch.clone(), Dim::ONE])?))
        }
    }
}

/// One direction of a layer.
struct Direction<'a> {
    cell: &'a Cell,
    /// The input's shares, `[steps, n, gates·h]`.
    shares: Tensor,
    steps: &'a Dim,
    backward: bool,
    /// Lengths per sequence as `[n, 1]`, unless all are the number of steps.
    lengths: Option<Tensor>,
}

impl Direction<'_> {
    /// All steps: outputs `[steps, n, h]` and the last states.
    fn run(&self, c: &mut Call<'_>, states: Vec<Tensor>) -> OpResult<(Tensor, Vec<Tensor>)> {
        match self.steps.as_const() {
            Some(n) if n > 0 && n.saturating_mul(NODES_PER_STEP) <= MAX_UNROLLED_NODES => {
                self.unrolled(c, states, n)
            }
            _ => self.looped(c, states),
        }
    }

    /// One step, which reads the input's share at `at`: its output and the states after it.
    fn step(
        &self,
        c: &mut Call<'_>,
        states: &[Tensor],
        at: &Dim,
    ) -> OpResult<(Tensor, Vec<Tensor>)> {
        let share = c.pick(self.shares, 0, at.clone())?;
        let h = states[0];
        let inner = states.get(1).copied().unwrap_or(h);
        let (next, next_inner) = self.cell.step(c, share, h, inner)?;
        let mut after = [next, next_inner];
        let mut output = next;
        if let Some(lengths) = self.lengths {
            // Past a sequence's end the state stays, and the output is 0. Going backwards, that is before the
            // sequence has begun.
            let at = c.dims(std::slice::from_ref(at));
            let alive = c.binary(BinaryOp::Gt, lengths, at)?;
            let zero = c.scalar_like(0.0, next);
            output = c.select(alive, next, zero)?;
            after = [c.select(alive, next, h)?, c.select(alive, next_inner, inner)?];
        }
        Ok((output, after[..states.len()].to_vec()))
    }

    fn unrolled(
        &self,
        c: &mut Call<'_>,
        mut states: Vec<Tensor>,
        steps: i64,
    ) -> OpResult<(Tensor, Vec<Tensor>)> {
        let mut outputs = Vec::new();
        for step in 0..steps {
            let at = Dim::from(if self.backward { steps - 1 - step } else { step });
            let (output, after) = self.step(c, &states, &at)?;
            states = after;
            outputs.push(c.unsqueeze(output, &[0])?);
        }
        if self.backward {
            outputs.reverse();
        }
        Ok((c.concat(&outputs, 0)?, states))
    }

    fn looped(&self, c: &mut Call<'_>, states: Vec<Tensor>) -> OpResult<(Tensor, Vec<Tensor>)> {
        let open = c.begin_loop(self.steps, false, &states);
        let at = if self.backward { self.steps - 1 - open.at() } else { open.at() };
        match self.step(c, open.carried(), &at) {
            Ok((output, after)) => {
                let collected = [(output, self.backward)];
                let mut states = c.end_loop(open, None, &states, &after, &collected)?;
                match states.pop() {
                    Some(outputs) => Ok((outputs, states)),
                    None => wrong("a loop without results"),
                }
            }
            Err(error) => {
                c.abandon_loop(open);
                Err(error)
            }
        }
    }
}
