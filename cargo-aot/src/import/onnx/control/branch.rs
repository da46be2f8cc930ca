//! If: one branch where the condition is decided, else elements of both.
//!
//! A branch that can't be at the sizes that the import was given is left out, and the run makes sure that
//! it is not asked for.

use super::super::super::error::{ImportError, Unsupported};
use super::super::builder::{OpResult, Tensor, unsupported};
use super::super::call::Call;
use super::super::item::{Item, Names};
use super::super::known::Elem;
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::{GraphProto, NodeProto};
use super::{none, wrong_stop};
use aot_ir::dim::{Cmp, Cond};
use aot_ir::{DType, Dim, Symbol};

/// Outputs of a branch, or why it can't be.
type Attempt = Result<Vec<Option<Item>>, Failure>;

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
        let a = self.attempt(then, opsets)?;
        let b = self.attempt(otherwise, opsets)?;
        self.builder.node.clone_from(&name);
        let condition = self.builder.reshape(condition, &[])?;
        match (a, b) {
            (Ok(a), Ok(b)) => {
                if let Some(equal) = self.of_equality(condition)
                    && !a.iter().zip(&b).all(|(a, b)| self.alike(a.as_ref(), b.as_ref()))
                {
                    // Exporters write `if the extent is 1, drop the axis`, where the model means to drop it.
                    self.require(condition, equal, &name)?;
                    return Ok(if equal { a } else { b });
                }
                self.choose(condition, a, b)
            }
            (Ok(a), Err(_)) => {
                self.require(condition, true, &name)?;
                Ok(a)
            }
            (Err(_), Ok(b)) => {
                self.require(condition, false, &name)?;
                Ok(b)
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
        let (reported, guards) = (self.unsupported.len(), self.builder.guards());
        let made = self.graph(graph, opsets, Names::new());
        let found = self.unsupported.split_off(reported);
        let failure = match made {
            Ok(items) if found.is_empty() => return Ok(Ok(items)),
            Ok(_) => Failure::Unsupported(found),
            Err(Stop::Error(error)) if matches!(*error, ImportError::Node { .. }) => {
                Failure::Wrong(error)
            }
            Err(other) => return Err(other),
        };
        self.builder.keep_guards(guards);
        Ok(Err(failure))
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
    fn require(&mut self, condition: Tensor, value: bool, node: &str) -> OpResult<()> {
        let cond = match self.builder.content(condition).as_ref().and_then(|c| c.uniform()) {
            Some(Elem::Bool(cond)) => Some(cond.clone()),
            _ => None,
        };
        let (found, expected) = match (cond, value) {
            (Some(Cond::Cmp(Cmp::Eq, a, b)), true) | (Some(Cond::Cmp(Cmp::Ne, a, b)), false) => {
                (a, b)
            }
            (Some(cond), value) => {
                let truth = self.builder.scope().select(&cond, &Dim::ONE, &Dim::ZERO);
                (truth, Dim::from(i64::from(value)))
            }
            (None, value) => {
                let size = self.builder.cast(condition, DType::I64)?;
                let symbol = Symbol::in_run(format!("the condition of `{node}`"), 0, 1);
                let truth = self.builder.bound(symbol, size)?;
                (truth, Dim::from(i64::from(value)))
            }
        };
        self.builder.guard(found, expected);
        Ok(())
    }

    /// Whether two results can stand for one another.
    fn alike(&self, a: Option<&Item>, b: Option<&Item>) -> bool {
        match (a, b) {
            (Some(Item::Tensor(a)), Some(Item::Tensor(b))) => self.same_shape(*a, *b),
            (Some(Item::Sequence(a)), Some(Item::Sequence(b))) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same_shape(*a, *b))
            }
            (Some(Item::Absent), Some(Item::Absent)) | (None, _) | (_, None) => true,
            _ => false,
        }
    }

    fn same_shape(&self, a: Tensor, b: Tensor) -> bool {
        let (a, b) = (self.builder.shape(a), self.builder.shape(b));
        let scope = self.builder.scope();
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| scope.proves_eq(a, b))
    }

    /// Both branches have no effects: the elements of the one that is asked for.
    fn choose(
        &mut self,
        condition: Tensor,
        a: Vec<Option<Item>>,
        b: Vec<Option<Item>>,
    ) -> Result<Vec<Option<Item>>, Stop> {
        let mut out = Vec::new();
        for pair in a.into_iter().zip(b) {
            out.push(match pair {
                (Some(a), Some(b)) => Some(self.either(condition, a, b)?),
                _ => None,
            });
        }
        Ok(out)
    }

    /// `a` where the condition holds, else `b`; they must have one structure.
    fn either(&mut self, condition: Tensor, a: Item, b: Item) -> OpResult<Item> {
        match (a, b) {
            (Item::Tensor(a), Item::Tensor(b)) => Ok(Item::Tensor(self.select(condition, a, b)?)),
            (Item::Sequence(a), Item::Sequence(b)) if a.len() == b.len() => {
                let pairs = a.into_iter().zip(b);
                let chosen = pairs.map(|(a, b)| self.select(condition, a, b));
                Ok(Item::Sequence(chosen.collect::<OpResult<_>>()?))
            }
            (Item::Absent, Item::Absent) => Ok(Item::Absent),
            _ => unsupported(
                "the condition depends on data and the branches give sequences of different \
                 lengths, or one of them no element, which is not supported yet",
            ),
        }
    }

    fn select(&mut self, condition: Tensor, a: Tensor, b: Tensor) -> OpResult {
        if !self.same_shape(a, b) {
            return unsupported(
                "the condition depends on data and the branches' shapes differ, \
                 which is not supported yet",
            );
        }
        self.builder.select(condition, a, b)
    }
}
