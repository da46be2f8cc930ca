//! Numbers drawn at random. They are a function of a seed, of which drawing of the model it is, of the iterations of
//! the loops around it, and of where they stand: whoever gives the same seed gets the same numbers, on every device.
//!
//! The function is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) read as a
//! generator with a counter: element `i` is the mix of `key + (i + 1) * STEP`.

use super::super::known::{Content, Elem};
use super::sizes::unless_taken;
use super::tensors::{Builder, OpResult, Tensor, unsupported};
use aot_ir::dim::Atom;
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim};

/// 2⁶⁴ divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Shifts and factors of the mix; the last shift has no factor after it.
const ROUNDS: [(u32, u64); 2] = [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)];
const LAST: u32 = 31;

/// Where the numbers of a drawing come from.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Seed {
    /// The model has the seed: drawings of equal seeds are equal.
    Given(u64),
    /// The input of the model that [`Builder::seed`] adds.
    Input,
}

impl Builder {
    /// `U64` bits, each independent of the others, over a shape.
    pub(in super::super) fn random_bits(&mut self, shape: &[Dim], seed: Seed) -> OpResult {
        let mut key = match seed {
            Seed::Given(seed) => self.bits(seed),
            Seed::Input => {
                self.drawings += 1;
                let ordinal = self.drawings;
                let seed = self.seed();
                let seed = self.cast(seed, DType::U64)?;
                let offset = self.bits(STEP.wrapping_mul(ordinal));
                self.sum(seed, offset)?
            }
        };
        key = self.mixed(key)?;
        let iterations = self.outer.iter().chain([&self.frame]).filter_map(|frame| frame.iteration);
        for iteration in iterations.collect::<Vec<_>>() {
            let at = Content::scalar(Elem::Int(Dim::atom(Atom::Sym(iteration))));
            key = self.stepped(key, at)?;
        }
        let place = Content::make(shape, self.symbols(), |at, _| {
            let steps = at.iter().zip(shape);
            Some(Elem::Int(
                steps.fold(Dim::ZERO, |place, (at, extent)| place * extent.clone() + at.clone()),
            ))
        });
        match place {
            Some(place) => self.stepped(key, place),
            None => unsupported("random numbers over so complicated a shape"),
        }
    }

    /// The name of the input that random numbers come from, if there is one.
    pub(in super::super) fn seed_input(&self) -> Option<&str> {
        self.given_name(self.seed?)
    }

    /// The `I64` scalar that random numbers come from: an input that is added to the model, `seed`, or `seed_2` and so
    /// on where the model has one of that name.
    fn seed(&mut self) -> Tensor {
        if let Some(seed) = self.seed {
            return seed;
        }
        let graph = &self.outer.first().unwrap_or(&self.frame).graph;
        let taken = |name: &str| graph.inputs.iter().any(|&id| graph[id].name == name);
        let name = unless_taken("seed", taken);
        let seed = self.outermost_input(&name, DType::I64);
        self.seed = Some(seed);
        seed
    }

    /// The mix of `key + (at + 1) * STEP`.
    fn stepped(&mut self, key: Tensor, at: Content) -> OpResult {
        let at = self.known(DType::I64, at);
        let at = self.cast(at, DType::U64)?;
        let step = self.bits(STEP);
        let way = self.product(at, step)?;
        let way = self.sum(way, step)?;
        let x = self.sum(key, way)?;
        self.mixed(x)
    }

    fn mixed(&mut self, mut x: Tensor) -> OpResult {
        for (shift, factor) in ROUNDS {
            x = self.folded(x, shift)?;
            let factor = self.bits(factor);
            x = self.product(x, factor)?;
        }
        self.folded(x, LAST)
    }

    /// `x ^ (x >> shift)`.
    fn folded(&mut self, x: Tensor, shift: u32) -> OpResult {
        let high = self.with(BinaryOp::Shr, x, f64::from(shift))?;
        self.binary(BinaryOp::BitXor, x, high)
    }

    /// A `U64` scalar.
    fn bits(&mut self, value: u64) -> Tensor {
        // The bits are what counts: see `Scalar::Int`.
        self.known(DType::U64, Content::scalar(Elem::Int(Dim::from(value.cast_signed()))))
    }
}
