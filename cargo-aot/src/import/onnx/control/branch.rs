//! If: one branch where the condition is decided, else the one that the run chooses.
//!
//! A branch that can't be at the sizes that the import was given is left out, and the run makes sure that
//! it is not asked for.

use super::super::super::error::{ImportError, Unsupported};
use super::super::builder::{Branch, OpResult, Tensor, unsupported};
use super::super::call::Call;
use super::super::item::{Item, Names};
use super::super::known::Elem;
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::{GraphProto, NodeProto};
use super::{none, wrong_stop};
use aot_ir::Dim;
use aot_ir::dim::{Cmp, Cond};

/// A branch and its outputs, or why it can't be.
type Attempt = Result<(Branch, Vec<Option<Item>>), Failure>;

enum Failure {
    Wrong(Box<ImportError>),
    Unsupported(Vec<Unsupported>),
}

impl Importer<'_> {
    pub(super) fn branch(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        let (Some(then), Some(otherwise)) =
            (Call::graph_attr(node, "then_branch"), Call::graph_attr(node, "else_branch"))
        else {
            return Err(wrong_stop("a branch is missing"));
        };
        let Some(Some(condition)) = inputs.first() else {
            return Err(wrong_stop("the condition is missing"));
        };
        let condition = condition.tensor("the condition")?;
        if let Some(value) = self.builder.uniform(condition) {
            return self.graph(if value != 0.0 { then } else { otherwise }, opsets, Names::new());
        }
        let name = self.builder.node.clone();
        let a = self.attempt(then, opsets);
        self.builder.node.clone_from(&name);
        let b = self.attempt(otherwise, opsets);
        self.builder.node = name;
        let (a, b) = (a?, b?);
        let condition = self.builder.reshape(condition, &[])?;
        match (a, b) {
            (Ok(a), Ok(b)) => match self.of_equality(condition) {
                // Exporters write `if the extent is 1, drop the axis`, where the model means to drop it.
                Some(equal) if !self.alike(&a.1, &b.1) => {
                    self.require(condition, equal)?;
                    self.always(if equal { a } else { b })
                }
                _ => self.choose(condition, a, b),
            },
            (Ok(a), Err(_)) => {
                self.require(condition, true)?;
                self.always(a)
            }
            (Err(_), Ok(b)) => {
                self.require(condition, false)?;
                self.always(b)
            }
            (Err(Failure::Wrong(error)), Err(_)) => Err(Stop::Error(error)),
            (Err(Failure::Unsupported(found)), Err(_)) => {
                self.unsupported.extend(found);
                Ok(none(node))
            }
        }
    }

    /// Imports a branch; one that is wrong or not supported leaves nothing behind.
    fn attempt(&mut self, graph: &GraphProto, opsets: &Opsets) -> Result<Attempt, Stop> {
        let reported = self.unsupported.len();
        let open = self.builder.begin_branch();
        let made = self.graph(graph, opsets, Names::new());
        let found = self.unsupported.split_off(reported);
        let failure = match made {
            Ok(items) if found.is_empty() => {
                return Ok(Ok((self.builder.take_branch(open)?, items)));
            }
            Ok(_) => Ok(Failure::Unsupported(found)),
            Err(Stop::Error(error)) if matches!(*error, ImportError::Node { .. }) => {
                Ok(Failure::Wrong(error))
            }
            Err(other) => Err(other),
        };
        self.builder.abandon_loop(open);
        failure.map(Err)
    }

    /// Whether the condition is one on sizes that asks for an equality (true) or an inequality.
    fn of_equality(&mut self, condition: Tensor) -> Option<bool> {
        match self.builder.content(condition)?.uniform()? {
            Elem::Bool(Cond::Cmp(Cmp::Eq, ..)) => Some(true),
            Elem::Bool(Cond::Cmp(Cmp::Ne, ..)) => Some(false),
            _ => None,
        }
    }

    /// Has the run make sure of the condition's value.
    fn require(&mut self, condition: Tensor, value: bool) -> OpResult<()> {
        let (found, expected) = match (self.builder.truth(condition)?, value) {
            ((Cond::Cmp(Cmp::Eq, a, b), _), true) | ((Cond::Cmp(Cmp::Ne, a, b), _), false) => {
                (a, b)
            }
            ((_, truth), value) => (truth, Dim::from(i64::from(value))),
        };
        self.builder.guard(found, expected);
        Ok(())
    }

    /// Whether two branches' outputs are of one structure, with as many axes.
    fn alike(&self, a: &[Option<Item>], b: &[Option<Item>]) -> bool {
        let rank = |(a, b): (&Tensor, &Tensor)| self.builder.rank(*a) == self.builder.rank(*b);
        let same = |(a, b): (&Option<Item>, &Option<Item>)| match (a, b) {
            (Some(Item::Tensor(a)), Some(Item::Tensor(b))) => rank((a, b)),
            (Some(Item::Sequence(a)), Some(Item::Sequence(b))) => {
                a.len() == b.len() && a.iter().zip(b).all(rank)
            }
            (Some(Item::Absent), Some(Item::Absent)) | (None, _) | (_, None) => true,
            _ => false,
        };
        a.iter().zip(b).all(same)
    }

    /// The outputs of a branch that every run makes.
    fn always(
        &mut self,
        (branch, outputs): (Branch, Vec<Option<Item>>),
    ) -> Result<Vec<Option<Item>>, Stop> {
        let made = self.builder.inline(branch, &tensors(&outputs))?;
        Ok(with_tensors(outputs, made))
    }

    /// The outputs of the branch that a run makes.
    fn choose(
        &mut self,
        condition: Tensor,
        (a, mut outputs): (Branch, Vec<Option<Item>>),
        (b, mut others): (Branch, Vec<Option<Item>>),
    ) -> Result<Vec<Option<Item>>, Stop> {
        for (a, b) in outputs.iter_mut().zip(&mut others) {
            match (&a, &b) {
                (Some(Item::Tensor(_)), Some(Item::Tensor(_)))
                | (Some(Item::Absent), Some(Item::Absent)) => {}
                (Some(Item::Sequence(x)), Some(Item::Sequence(y))) if x.len() == y.len() => {}
                (None, _) | (_, None) => (*a, *b) = (None, None),
                _ => unsupported(
                    "the condition depends on data and the branches give sequences of different \
                     lengths, or one of them no element, which is not supported yet",
                )?,
            }
        }
        let made =
            self.builder.choose(condition, (a, &tensors(&outputs)), (b, &tensors(&others)))?;
        Ok(with_tensors(outputs, made))
    }
}

/// All tensors in outputs.
fn tensors(outputs: &[Option<Item>]) -> Vec<Tensor> {
    let items = outputs.iter().flatten();
    items.flat_map(Item::tensors).map(|(_, t)| t).collect()
}

/// Outputs of the same structure with other tensors in it.
fn with_tensors(mut outputs: Vec<Option<Item>>, tensors: Vec<Tensor>) -> Vec<Option<Item>> {
    let places = outputs.iter_mut().flatten().flat_map(|item| match item {
        Item::Tensor(t) => std::slice::from_mut(t),
        Item::Sequence(elements) => elements.as_mut_slice(),
        Item::Absent => &mut [],
    });
    places.zip(tensors).for_each(|(place, t)| *place = t);
    outputs
}
