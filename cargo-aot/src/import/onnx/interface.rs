//! The model's graph as a whole: inputs and outputs.

use super::super::error::ImportError;
use super::builder::{OpError, OpResult, Tensor};
use super::inputs::{Bound, Element, describe, element_name};
use super::item::{Item, Names};
use super::nodes::{Importer, Opsets, Stop};
use super::proto::{GraphProto, ValueInfo};
use super::tensor::STRING;
use aot_ir::{DType, Graph};

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
            let item = item.map_err(|error| self.refused(&name, error))?;
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
            .zip(&graph.output)
            .map(|((name, item), declared)| match item {
                Some(item) => {
                    if self.lost_texts(&item, declared) {
                        let reason = "texts that pass through control flow are not supported";
                        return Err(self.refused(&name, OpError::Unsupported(reason.to_owned())));
                    }
                    let item = self.declared(item, declared);
                    let item = item.map_err(|error| self.refused(&name, error))?;
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
    fn input(&mut self, name: &str, bound: Bound) -> OpResult<Item> {
        Ok(match bound {
            Bound::Input(dtype, shape) => {
                let t = self.builder.input(name, dtype, shape);
                Item::Tensor(self.builder.widened(t)?)
            }
            Bound::Constant(constant) => {
                let t = self.builder.constant(constant);
                Item::Tensor(self.builder.widened(t)?)
            }
            Bound::Absent => Item::Absent,
            Bound::Sequence(elements) => {
                let elements = elements.into_iter().enumerate();
                let elements = elements.map(|(i, bound)| {
                    let t = match bound {
                        Element::Input(dtype, shape) => {
                            self.builder.input(&element_name(name, i), dtype, shape)
                        }
                        Element::Constant(constant) => self.builder.constant(constant),
                    };
                    self.builder.widened(t)
                });
                Item::Sequence(elements.collect::<OpResult<_>>()?)
            }
        })
    }

    /// An output in the type that the model declares, where that is binary16.
    fn declared(&mut self, item: Item, declared: &ValueInfo) -> OpResult<Item> {
        if describe(declared).dtype != Some(DType::F16) {
            return Ok(item);
        }
        let mut narrowed = |t: Tensor| match self.builder.dtype(t) {
            DType::F32 => self.builder.cast(t, DType::F16),
            _ => Ok(t),
        };
        Ok(match item {
            Item::Tensor(t) => Item::Tensor(narrowed(t)?),
            Item::Sequence(list) => {
                Item::Sequence(list.into_iter().map(narrowed).collect::<OpResult<_>>()?)
            }
            Item::Absent => Item::Absent,
        })
    }

    /// Whether an output is declared to be texts, and which ones is not known.
    fn lost_texts(&self, item: &Item, declared: &ValueInfo) -> bool {
        let declared = declared.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
        let texts = declared.is_some_and(|t| t.elem_type == STRING);
        texts && matches!(item, Item::Tensor(t) if self.builder.texts_of(*t).is_none())
    }

    /// Of every output whose elements are places in a list of texts, its name and the texts.
    pub(super) fn labels(&self, outputs: &[(String, Item)]) -> Vec<(String, Vec<String>)> {
        let labels = outputs.iter().filter_map(|(name, item)| match item {
            Item::Tensor(t) => Some((name.clone(), self.builder.texts_of(*t)?.to_vec())),
            _ => None,
        });
        labels.collect()
    }

    /// The error of an input or output.
    fn refused(&self, name: &str, error: OpError) -> ImportError {
        let (OpError::Wrong(reason) | OpError::Unsupported(reason)) = error;
        let (path, node) = (self.path.to_owned(), name.to_owned());
        ImportError::Node { path, node, operator: "an input or output".to_owned(), reason }
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
