//! Networks with the sizes that they are tried at.

mod blocks;
mod contractions;
mod movement;
mod reductions;

use crate::net::Net;
use aot_ir::Graph;

/// A network to be tried.
#[derive(Debug)]
pub struct Case {
    /// Family and number.
    pub name: String,
    /// The network.
    pub graph: Graph,
    /// Sizes by name, one list a trial.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// How many groups a run must be.
    pub groups: Option<usize>,
    /// Factor on the tolerance of the precision.
    pub slack: f64,
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
            graph: net.graph,
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
    blocks::all(&mut out);
    contractions::all(&mut out);
    movement::all(&mut out);
    reductions::all(&mut out);
    out.list
}
