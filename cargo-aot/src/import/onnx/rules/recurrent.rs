//! Recurrent layers over a constant number of steps, unrolled.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::activation::{hard_sigmoid, leaky, softplus};
use super::recurrent_weights::Weights;
use super::table::{Entry, microsoft, onnx};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("LSTM", |c| layer(c, Kind::Lstm, false)),
    onnx("GRU", |c| layer(c, Kind::Gru, false)),
    onnx("RNN", |c| layer(c, Kind::Rnn, false)),
    microsoft("DynamicQuantizeLSTM", |c| layer(c, Kind::Lstm, true)),
];

/// Most steps that are unrolled.
const MAX_STEPS: i64 = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lstm,
    Gru,
    Rnn,
}

impl Kind {
    fn gates(self) -> i64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Rnn => 1,
        }
    }

    fn activations(self) -> &'static [&'static str] {
        match self {
            Self::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Self::Gru => &["Sigmoid", "Tanh"],
            Self::Rnn => &["Tanh"],
        }
    }
}

/// An activation with its parameters.
#[derive(Clone)]
struct Activation {
    name: String,
    alpha: Option<f64>,
    beta: Option<f64>,
}

impl Activation {
    fn apply(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        let (alpha, beta) = (self.alpha, self.beta);
        match self.name.to_ascii_lowercase().as_str() {
            "sigmoid" => c.unary(UnaryOp::Sigmoid, x),
            "tanh" => c.unary(UnaryOp::Tanh, x),
            "relu" => c.unary(UnaryOp::Relu, x),
            "softplus" => softplus(c, x),
            "hardsigmoid" => hard_sigmoid(c, x, alpha.unwrap_or(0.2), beta.unwrap_or(0.5)),
            "leakyrelu" => {
                let slope = c.scalar_like(alpha.unwrap_or(0.01), x);
                leaky(c, x, slope)
            }
            "affine" => {
                let x = c.with(BinaryOp::Mul, x, alpha.unwrap_or(1.0))?;
                c.with(BinaryOp::Add, x, beta.unwrap_or(0.0))
            }
            "scaledtanh" => {
                let x = c.with(BinaryOp::Mul, x, beta.unwrap_or(1.0))?;
                let x = c.unary(UnaryOp::Tanh, x)?;
                c.with(BinaryOp::Mul, x, alpha.unwrap_or(1.0))
            }
            "softsign" => {
                let size = c.unary(UnaryOp::Abs, x)?;
                let size = c.with(BinaryOp::Add, size, 1.0)?;
                c.quotient(x, size)
            }
            other => unsupported(format!("activation {other} in a recurrent layer")),
        }
    }
}

/// Weights and settings of one direction.
struct Cell {
    kind: Kind,
    /// Of the input.
    w: Weights,
    /// Of the state.
    r: Weights,
    /// `[gates·h]` each: of the input and of the state.
    bias: Option<(Tensor, Tensor)>,
    /// `[3·h]`: input, output, forget.
    peepholes: Option<Tensor>,
    activations: Vec<Activation>,
    hidden: i64,
    clip: Option<f64>,
    linear_before_reset: bool,
    input_forget: bool,
}

impl Cell {
    fn clipped(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        let Some(limit) = self.clip else { return Ok(x) };
        let x = c.with(BinaryOp::Max, x, -limit)?;
        c.with(BinaryOp::Min, x, limit)
    }

    fn activate(&self, c: &mut Call<'_>, which: usize, x: Tensor) -> OpResult {
        let x = self.clipped(c, x)?;
        self.activations[which].apply(c, x)
    }

    /// The gate's part of `[n, gates·h]`.
    fn gate(&self, c: &mut Call<'_>, x: Tensor, n: i64) -> OpResult {
        let rank = c.rank(x);
        c.slice_axis(x, rank - 1, Dim::from(n * self.hidden), self.hidden.into(), 1)
    }

    /// One step: `x [n, gates·h]` is the input's share with its bias; gives the new state.
    fn step(
        &self,
        c: &mut Call<'_>,
        x: Tensor,
        h: Tensor,
        cell: Tensor,
    ) -> OpResult<(Tensor, Tensor)> {
        match self.kind {
            Kind::Lstm => self.lstm(c, x, h, cell),
            Kind::Gru => Ok((self.gru(c, x, h)?, cell)),
            Kind::Rnn => {
                let share = self.state_share(c, h)?;
                let sum = c.sum(x, share)?;
                Ok((self.activate(c, 0, sum)?, cell))
            }
        }
    }

    /// `h R + bias`.
    fn state_share(&self, c: &mut Call<'_>, h: Tensor) -> OpResult {
        let share = self.r.product(c, h)?;
        match self.bias {
            Some((_, bias)) => c.sum(share, bias),
            None => Ok(share),
        }
    }

    /// Gates in the order input, output, forget, cell.
    fn lstm(
        &self,
        c: &mut Call<'_>,
        x: Tensor,
        h: Tensor,
        cell: Tensor,
    ) -> OpResult<(Tensor, Tensor)> {
        let share = self.state_share(c, h)?;
        let sum = c.sum(x, share)?;
        let mut gates = Vec::new();
        for n in 0..4 {
            gates.push(self.gate(c, sum, n)?);
        }
        let peep = |c: &mut Call<'_>, gate: Tensor, n: i64, cell: Tensor| -> OpResult {
            let Some(p) = self.peepholes else { return Ok(gate) };
            let p = self.gate(c, p, n)?;
            let p = c.product(p, cell)?;
            c.sum(gate, p)
        };
        let i = peep(c, gates[0], 0, cell)?;
        let i = self.activate(c, 0, i)?;
        let f = if self.input_forget {
            let one = c.scalar_like(1.0, i);
            c.difference(one, i)?
        } else {
            let f = peep(c, gates[2], 2, cell)?;
            self.activate(c, 0, f)?
        };
        let g = self.activate(c, 1, gates[3])?;
        let (kept, added) = (c.product(f, cell)?, c.product(i, g)?);
        let next = c.sum(kept, added)?;
        let o = peep(c, gates[1], 1, next)?;
        let o = self.activate(c, 0, o)?;
        let shown = self.activations[2].apply(c, next)?;
        Ok((c.product(o, shown)?, next))
    }

    /// Gates in the order update, reset, hidden.
    fn gru(&self, c: &mut Call<'_>, x: Tensor, h: Tensor) -> OpResult {
        let hidden = self.hidden;
        let share = self.state_share(c, h)?;
        let gate = |c: &mut Call<'_>, n: i64| -> OpResult {
            let (a, b) = (self.gate(c, x, n)?, self.gate(c, share, n)?);
            let sum = c.sum(a, b)?;
            self.activate(c, 0, sum)
        };
        let (z, r) = (gate(c, 0)?, gate(c, 1)?);
        let own = self.gate(c, x, 2)?;
        let other = if self.linear_before_reset {
            let linear = self.gate(c, share, 2)?;
            c.product(r, linear)?
        } else {
            let reset = c.product(r, h)?;
            let weights =
                c.slice_axis(self.r.matrix, 1, Dim::from(2 * hidden), hidden.into(), 1)?;
            let linear = c.op(Op::MatMul, &[reset, weights])?;
            match self.bias {
                Some((_, bias)) => {
                    let bias = self.gate(c, bias, 2)?;
                    c.sum(linear, bias)?
                }
                None => linear,
            }
        };
        let sum = c.sum(own, other)?;
        let new = self.activate(c, 1, sum)?;
        // (1 - z) · new + z · h
        let one = c.scalar_like(1.0, z);
        let rest = c.difference(one, z)?;
        let (a, b) = (c.product(rest, new)?, c.product(z, h)?);
        c.sum(a, b)
    }
}

fn layer(c: &mut Call<'_>, kind: Kind, quantized: bool) -> OpResult<Vec<Tensor>> {
    let mut x = c.x(0)?;
    let batch_first = c.flag("layout", false);
    if c.rank(x) != 3 {
        return wrong(format!("rank {}, expected 3", c.rank(x)));
    }
    if batch_first {
        x = c.transpose(x, &[1, 0, 2])?;
    }
    let steps = match c.shape(x)[0].as_const() {
        Some(n @ 1..=MAX_STEPS) => n,
        Some(n) => return unsupported(format!("{n} steps; up to {MAX_STEPS} are unrolled")),
        None => {
            return unsupported(
                "a recurrent layer over a run-time number of steps is not supported yet; \
                 fix that dim to a constant",
            );
        }
    };
    let directions = match c.text("direction", "forward").as_str() {
        "forward" => vec![false],
        "reverse" => vec![true],
        "bidirectional" => vec![false, true],
        other => return wrong(format!("direction is `{other}`")),
    };
    let batch = c.shape(x)[1].clone();
    let lengths = lengths(c, steps, &batch)?;
    let (mut outputs, mut last, mut last_cell) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &backward) in directions.iter().enumerate() {
        let cell = cell(c, kind, d, directions.len(), quantized)?;
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
        let h = state(c, 5)?;
        let start = if kind == Kind::Lstm { state(c, 6)? } else { h };
        let (y, h, end) = direction(c, &cell, x, (h, start), steps, backward, lengths)?;
        outputs.push(c.unsqueeze(y, &[1])?);
        last.push(c.unsqueeze(h, &[0])?);
        last_cell.push(c.unsqueeze(end, &[0])?);
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
fn lengths(c: &mut Call<'_>, steps: i64, batch: &Dim) -> OpResult<Option<Tensor>> {
    match c.opt(4) {
        None => Ok(None),
        Some(t) if c.uniform(t) == Some(steps as f64) => Ok(None),
        Some(t) => {
            let t = c.cast(t, DType::I64)?;
            Ok(Some(c.reshape(t, &[batch.clone(), Dim::ONE])?))
        }
    }
}

fn cell(
    c: &mut Call<'_>,
    kind: Kind,
    d: usize,
    directions: usize,
    quantized: bool,
) -> OpResult<Cell> {
    let at = Dim::from(d as i64);
    let own = |c: &mut Call<'_>, n: usize| -> OpResult<Option<Tensor>> {
        match c.opt(n) {
            Some(t) => Ok(Some(c.pick(t, 0, at.clone())?)),
            None => Ok(None),
        }
    };
    let w = Weights::read(c, 1, &at, quantized)?;
    let r = Weights::read(c, 2, &at, quantized)?;
    let Some(hidden) = c.shape(r.matrix)[0].as_const() else {
        return wrong("the state's size varies");
    };
    let gates = kind.gates();
    let bias = match own(c, 3)? {
        Some(b) => {
            let size = Dim::from(gates * hidden);
            let parts = c.split(b, 0, &[size.clone(), size])?;
            Some((parts[0], parts[1]))
        }
        None => None,
    };
    let names = c.texts("activations").unwrap_or_default();
    let defaults = kind.activations();
    let count = defaults.len();
    if !names.is_empty() && names.len() != count * directions {
        return wrong(format!("{} activations, expected {}", names.len(), count * directions));
    }
    let parameter =
        |list: Option<Vec<f32>>, i: usize| -> Option<f64> { list?.get(i).map(|&v| f64::from(v)) };
    let activations = (0..count)
        .map(|i| {
            let at = d * count + i;
            Activation {
                name: names.get(at).cloned().unwrap_or_else(|| defaults[i].to_owned()),
                alpha: parameter(c.floats_attr("activation_alpha"), at),
                beta: parameter(c.floats_attr("activation_beta"), at),
            }
        })
        .collect();
    Ok(Cell {
        kind,
        w,
        r,
        bias,
        peepholes: if kind == Kind::Lstm { own(c, 7)? } else { None },
        activations,
        hidden,
        clip: c.has("clip").then(|| c.float("clip", 0.0)),
        linear_before_reset: c.flag("linear_before_reset", false),
        input_forget: c.flag("input_forget", false),
    })
}

/// All steps of one direction: outputs `[steps, n, h]` and the last states.
fn direction(
    c: &mut Call<'_>,
    cell: &Cell,
    x: Tensor,
    (mut h, mut inner): (Tensor, Tensor),
    steps: i64,
    backward: bool,
    lengths: Option<Tensor>,
) -> OpResult<(Tensor, Tensor, Tensor)> {
    let mut shares = cell.w.product(c, x)?;
    if let Some((bias, _)) = cell.bias {
        shares = c.sum(shares, bias)?;
    }
    let mut outputs = Vec::new();
    for step in 0..steps {
        let at = if backward { steps - 1 - step } else { step };
        let share = c.pick(shares, 0, at.into())?;
        let (next, next_inner) = cell.step(c, share, h, inner)?;
        match lengths {
            None => {
                (h, inner) = (next, next_inner);
                outputs.push(next);
            }
            Some(lengths) => {
                // Past a sequence's end the state stays, and the output is 0. Going backwards, that
                // is before the sequence has begun.
                let alive = c.with(BinaryOp::Gt, lengths, at as f64)?;
                h = c.select(alive, next, h)?;
                inner = c.select(alive, next_inner, inner)?;
                let zero = c.scalar_like(0.0, next);
                outputs.push(c.select(alive, next, zero)?);
            }
        }
    }
    if backward {
        outputs.reverse();
    }
    let mut stacked = Vec::new();
    for t in outputs {
        stacked.push(c.unsqueeze(t, &[0])?);
    }
    Ok((c.concat(&stacked, 0)?, h, inner))
}
