//! The model's graph as a whole: inputs and outputs.

use super::super::error::ImportError;
use super::builder::{OpError, Tensor};
use super::inputs::{Bound, Element, element_name};
use super::item::{Item, Names};
use super::nodes::{Importer, Opsets, Stop};
use super::proto::GraphProto;
use aot_ir::Graph;

impl Importer<'_> {
    /// Imports the model's graph; gives its outputs.
    pub(super) fn main_graph(
        &mut self,
        graph: &GraphProto,
        opsets: Opsets,
        inputs: Vec<(String, Bound)>,
    ) -> Result<Vec<(String, Item)>, ImportError> {
        let mut names = Names::new();
        for (name, bound) in inputs {
            let item = self.input(&name, bound);
            names.insert(name, Some(item));
        }
        let outputs: Vec<String> = graph.output.iter().map(|o| o.name.clone()).collect();
        let found = match self.graph(graph, &opsets, names) {
            Ok(found) => found,
            Err(Stop::Error(error)) => return Err(*error),
            Err(Stop::Op(OpError::Wrong(reason) | OpError::Unsupported(reason))) => {
                return Err(ImportError::Malformed { path: self.path.to_owned(), reason });
            }
        };
        if !self.unsupported.is_empty() {
            let nodes = std::mem::take(&mut self.unsupported);
            return Err(ImportError::Unsupported { path: self.path.to_owned(), nodes });
        }
        outputs
            .into_iter()
            .zip(found)
            .map(|(name, item)| match item {
                Some(item) => {
                    self.name(&item, &name);
                    Ok((name, item))
                }
                None => Err(ImportError::Malformed {
                    path: self.path.to_owned(),
                    reason: format!("output `{name}` has no value"),
                }),
            })
            .collect()
    }

    /// What stands for an input of the model.
    fn input(&mut self, name: &str, bound: Bound) -> Item {
        match bound {
            Bound::Input(dtype, shape) => Item::Tensor(self.builder.input(name, dtype, shape)),
            Bound::Constant(constant) => Item::Tensor(self.builder.constant(constant)),
            Bound::Absent => Item::Absent,
            Bound::Sequence(elements) => {
                let elements = elements.into_iter().enumerate();
                let elements = elements.map(|(i, bound)| match bound {
                    Element::Input(dtype, shape) => {
                        self.builder.input(&element_name(name, i), dtype, shape)
                    }
                    Element::Constant(constant) => self.builder.constant(constant),
                });
                Item::Sequence(elements.collect())
            }
        }
    }

    /// The finished graph; sequences among the outputs are outputs of their own.
    pub(super) fn finish(self, outputs: Vec<(String, Item)>) -> Result<Graph, ImportError> {
        let path = self.path.to_owned();
        let outputs = outputs.iter().flat_map(|(name, item)| {
            let tensors = item.tensors().into_iter();
            tensors.map(move |(suffix, t)| (format!("{name}{suffix}"), t))
        });
        let outputs: Vec<(String, Tensor)> = outputs.collect();
        self.builder.finish(outputs).map_err(|(node, error)| match error {
            OpError::Wrong(reason) | OpError::Unsupported(reason) => {
                ImportError::Node { path, node, operator: "an output".to_owned(), reason }
            }
        })
    }
}
