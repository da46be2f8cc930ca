//! Networks with the sizes that they are tried at.

mod attention;
mod blocks;
mod contractions;
mod decided;
mod decoder;
mod integers;
mod loops;
mod movement;
mod packed;
mod padding;
mod random;
mod reductions;
mod scans;
mod sizes;

pub use decided::layers_that_data_end;

use crate::net::Net;
use aot_ir::{Graph, Op};

/// A network to be tried.
#[derive(Debug)]
pub struct Case {
    /// Family and number.
    pub name: String,
    /// The number alone.
    pub number: usize,
    /// Its kernels are compiled and run on GPUs. Others' differ in nothing that these would not show; they
    /// are for the interpreter alone.
    pub on_gpus: bool,
    /// The network.
    pub graph: Graph,
    /// It writes out what passes recognise, and is to go through them before it is lowered.
    pub written_out: bool,
    /// Sizes by name, one list a trial.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// How many groups a run must be.
    pub groups: Option<usize>,
    /// Factor on the tolerance of the precision.
    pub slack: f64,
}

impl Case {
    /// Whether it is tried on GPUs in a precision. Where nothing is multiplied, precisions differ in nothing.
    /// Elsewhere the first network of a family is tried in all, the others in `f16` and one more in turn.
    pub fn runs_in(&self, precision: &str) -> bool {
        const IN_TURN: [&str; 3] = ["f32", "tf32", "bf16"];
        let multiplies = |op: &Op| {
            matches!(
                op,
                Op::MatMul
                    | Op::Conv(_)
                    | Op::ConvTranspose { .. }
                    | Op::Attention(_)
                    | Op::Loop(_)
            )
        };
        match self.graph.nodes().any(|(_, n)| multiplies(&n.op)) {
            false => precision == "f32",
            true => self.number == 0 || precision == "f16" || precision == IN_TURN[self.number % 3],
        }
    }
}

/// Cases being collected.
#[derive(Debug, Default)]
pub struct Cases {
    list: Vec<Case>,
    family: String,
    count: usize,
}

impl Cases {
    fn family(&mut self, name: &str, make: fn(&mut Self)) {
        name.clone_into(&mut self.family);
        self.count = 0;
        make(self);
    }

    fn add(&mut self, net: Net) {
        self.at(net, &[vec![]]);
    }

    fn at(&mut self, net: Net, sizes: &[Vec<(&str, i64)>]) {
        let owned = |s: &Vec<(&str, i64)>| s.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        self.list.push(Case {
            name: format!("{}/{}", self.family, self.count),
            number: self.count,
            on_gpus: net.on_gpus,
            graph: net.graph,
            written_out: net.written_out,
            sizes: sizes.iter().map(owned).collect(),
            groups: net.groups,
            slack: net.slack,
        });
        self.count += 1;
    }
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut out = Cases::default();
    attention::all(&mut out);
    blocks::all(&mut out);
    contractions::all(&mut out);
    decided::all(&mut out);
    decoder::all(&mut out);
    loops::all(&mut out);
    integers::all(&mut out);
    movement::all(&mut out);
    packed::all(&mut out);
    padding::all(&mut out);
    random::all(&mut out);
    reductions::all(&mut out);
    scans::all(&mut out);
    sizes::all(&mut out);
    out.list
}
