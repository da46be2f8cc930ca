//! If: one branch where the condition is decided, else elements of both.

use super::super::builder::{OpResult, Tensor, unsupported};
use super::super::call::Call;
use super::super::item::{Item, Names};
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::NodeProto;
use super::wrong_stop;

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
        // Both branches have no effects: take the elements of the one that is asked for.
        let name = self.builder.node.clone();
        let a = self.graph(then, opsets, Names::new())?;
        let b = self.graph(otherwise, opsets, Names::new())?;
        self.builder.node = name;
        let condition = self.builder.reshape(condition, &[])?;
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
        let same = self.builder.shape(a).len() == self.builder.shape(b).len() && {
            let scope = self.builder.scope();
            let (a, b) = (self.builder.shape(a), self.builder.shape(b));
            a.iter().zip(b).all(|(a, b)| scope.proves_eq(a, b))
        };
        if !same {
            return unsupported(
                "the condition depends on data and the branches' shapes differ, \
                 which is not supported yet",
            );
        }
        self.builder.select(condition, a, b)
    }
}
