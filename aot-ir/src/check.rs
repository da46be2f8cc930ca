//! Whether a graph read from a file refers only to what it has.

use crate::{ConstId, Def, Graph, NodeId, ValueId};

impl Graph {
    /// Checks every index, the topological order, and that ranges of sizes are sane: what holds
    /// for every graph made by this crate's functions.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.symbols.check()?;
        let (values, constants) = (self.values().len(), self.constants().len());
        for (id, value) in self.values() {
            let defined = match value.def {
                Def::Input(i) => self.inputs.get(i as usize) == Some(&id),
                Def::Const(ConstId(i)) => (i as usize) < constants,
                Def::Node(NodeId(node), port) => (node as usize) < self.nodes().len()
                    && self[NodeId(node)].outputs.get(port as usize) == Some(&id),
            };
            if !defined {
                return Err(format!("value {} is defined nowhere", id.0));
            }
        }
        let known = |v: &ValueId| match v.index() < values {
            true => Ok(()),
            false => Err(format!("there is no value {} of {values}", v.0)),
        };
        for (id, node) in self.nodes() {
            for input in &node.inputs {
                known(input)?;
                if self.producer(*input).is_some_and(|producer| producer >= id) {
                    return Err(format!("node `{}` comes before what it reads", node.name));
                }
            }
            for (port, output) in node.outputs.iter().enumerate() {
                known(output)?;
                if self[*output].def != Def::Node(id, port as u32) {
                    return Err(format!("node `{}` makes what another one makes", node.name));
                }
            }
        }
        for (i, input) in self.inputs.iter().enumerate() {
            known(input)?;
            if self[*input].def != Def::Input(i as u32) {
                return Err(format!("input {i} is none"));
            }
        }
        self.outputs.iter().try_for_each(|(_, value)| known(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::UnaryOp;
    use crate::{DType, Dim, Op, Symbol};

    #[test]
    fn graphs_made_here_pass_and_damaged_ones_do_not() {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", DType::F32, vec![Dim::from(3)]);
        let y = graph.add1(Op::Unary(UnaryOp::Neg), &[x], "y").unwrap();
        graph.outputs.push(("y".into(), y));
        assert_eq!(graph.check(), Ok(()));
        let mut damaged = graph.clone();
        damaged.outputs[0].1 = ValueId(7);
        assert_eq!(damaged.check(), Err("there is no value 7 of 2".to_owned()));
        let mut damaged = graph.clone();
        damaged.inputs.push(y);
        assert!(damaged.check().is_err());
        graph.symbols.add(Symbol { name: "n".into(), lo: 1, hi: 2, scale: 0, offset: 0 });
        assert!(graph.check().is_err());
    }
}
