//! One step of a recurrent layer.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::activation::{hard_sigmoid, leaky, softplus};
use super::recurrent_weights::Weights;
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{Dim, Op};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) struct Activation {
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
pub(super) struct Cell {
    kind: Kind,
    /// Of the input.
    w: Weights,
    /// Of the state.
    r: Weights,
    /// `[gates·h]` each: what is added to the input's share and to the state's.
    bias: [Option<Tensor>; 2],
    /// `[3·h]`: input, output, forget.
    peepholes: Option<Tensor>,
    activations: Vec<Activation>,
    pub(super) hidden: i64,
    clip: Option<f64>,
    /// Of a GRU that resets the state before it is multiplied: `r` of update and reset, and of the hidden gate.
    candidate: Option<[Tensor; 2]>,
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
    pub(super) fn step(
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
        self.biased(c, share, 1)
    }

    /// With a bias, if there is one.
    fn biased(&self, c: &mut Call<'_>, share: Tensor, which: usize) -> OpResult {
        match self.bias[which] {
            Some(bias) => c.sum(share, bias),
            None => Ok(share),
        }
    }

    /// The input's share of all steps, with its bias.
    pub(super) fn shares(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        let shares = self.w.product(c, x)?;
        self.biased(c, shares, 0)
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
        let (share, candidate) = match self.candidate {
            // Of update and reset alone; the state's share of the third is known after them.
            Some([gates, candidate]) => (c.op(Op::MatMul, &[h, gates])?, Some(candidate)),
            None => (self.state_share(c, h)?, None),
        };
        let gate = |c: &mut Call<'_>, n: i64| -> OpResult {
            let (a, b) = (self.gate(c, x, n)?, self.gate(c, share, n)?);
            let sum = c.sum(a, b)?;
            self.activate(c, 0, sum)
        };
        let (z, r) = (gate(c, 0)?, gate(c, 1)?);
        let own = self.gate(c, x, 2)?;
        let other = match candidate {
            None => {
                let linear = self.gate(c, share, 2)?;
                c.product(r, linear)?
            }
            Some(candidate) => {
                let reset = c.product(r, h)?;
                c.op(Op::MatMul, &[reset, candidate])?
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

    /// Reads a direction's weights and settings.
    pub(super) fn read(
        c: &mut Call<'_>,
        kind: Kind,
        d: usize,
        directions: usize,
        quantized: bool,
    ) -> OpResult<Self> {
        let at = Dim::from(d as i64);
        let own = |c: &mut Call<'_>, n: usize| -> OpResult<Option<Tensor>> {
            match c.opt(n) {
                Some(t) => Ok(Some(c.pick(t, 0, at.clone())?)),
                None => Ok(None),
            }
        };
        let w = Weights::read(c, 1, &at, quantized)?;
        let r = Weights::read(c, 2, &at, quantized)?;
        let hidden = c.shape(r.matrix)[0].as_const().or_else(|| c.int_opt("hidden_size"));
        let Some(hidden) = hidden.filter(|n| *n > 0) else {
            return wrong("nothing says how large the state is: attribute `hidden_size`");
        };
        let gates = kind.gates();
        let resets_first = kind == Kind::Gru && !c.flag("linear_before_reset", false);
        let bias = match own(c, 3)? {
            Some(b) => {
                let size = Dim::from(gates * hidden);
                let parts = c.split(b, 0, &[size.clone(), size])?;
                // Where the shares are just added up, so are their biases.
                match kind == Kind::Gru && !resets_first {
                    true => [Some(parts[0]), Some(parts[1])],
                    false => [Some(c.sum(parts[0], parts[1])?), None],
                }
            }
            None => [None, None],
        };
        let candidate = match resets_first {
            true => {
                let gates = c.slice_axis(r.matrix, 1, Dim::ZERO, Dim::from(2 * hidden), 1)?;
                let last = c.slice_axis(r.matrix, 1, Dim::from(2 * hidden), hidden.into(), 1)?;
                Some([gates, last])
            }
            false => None,
        };
        let names = c.texts("activations").unwrap_or_default();
        let defaults = kind.activations();
        let count = defaults.len();
        if !names.is_empty() && names.len() != count * directions {
            return wrong(format!("{} activations, expected {}", names.len(), count * directions));
        }
        let parameter = |list: Option<Vec<f32>>, i: usize| -> Option<f64> {
            list?.get(i).map(|&v| f64::from(v))
        };
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
        Ok(Self {
            kind,
            w,
            r,
            bias,
            peepholes: if kind == Kind::Lstm { own(c, 7)? } else { None },
            activations,
            hidden,
            clip: c.has("clip").then(|| c.float("clip", 0.0)),
            candidate,
            input_forget: c.flag("input_forget", false),
        })
    }
}
