//! Loop and SequenceMap over a number of iterations that is decided at build time.

use super::super::builder::{OpResult, Tensor};
use super::super::call::{Call, depends};
use super::super::item::{Item, Names};
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::NodeProto;
use super::{MAX_UNROLLED, depends_stop, none, unsupported_stop, wrong_stop};
use aot_ir::DType;

impl Importer<'_> {
    /// A decided boolean; `true` when the input is left out.
    fn decided(&mut self, item: Option<&Item>, what: &str) -> OpResult<bool> {
        let Some(item) = item else { return Ok(true) };
        let t = item.tensor(what)?;
        match self.builder.uniform(t) {
            Some(v) => Ok(v != 0.0),
            None => depends(what),
        }
    }

    pub(super) fn unroll_loop(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        let Some(body) = Call::graph_attr(node, "body") else {
            return Err(wrong_stop("the body is missing"));
        };
        let input = |n: usize| inputs.get(n).and_then(Option::as_ref);
        let trips = match input(0) {
            None => MAX_UNROLLED + 1,
            Some(item) => {
                let t = item.tensor("the number of iterations")?;
                match self.builder.ints(t).as_deref() {
                    Some([one]) => one.as_const().unwrap_or(MAX_UNROLLED + 1),
                    _ => return Err(depends_stop("the number of iterations of Loop")),
                }
            }
        };
        let mut state: Vec<Option<Item>> = inputs.get(2..).unwrap_or_default().to_vec();
        state.resize(node.input.len().saturating_sub(2), None);
        let carried = state.len();
        if body.input.len() != carried + 2 || body.output.len() < carried + 1 {
            return Err(wrong_stop("the body does not fit the node's inputs"));
        }
        let name = self.builder.node.clone();
        let mut going = self.decided(input(1), "the condition of Loop")?;
        let mut scans: Vec<Vec<Tensor>> = vec![Vec::new(); body.output.len() - carried - 1];
        let mut trip = 0;
        while going && trip < trips {
            if trip == MAX_UNROLLED {
                return Err(unsupported_stop("a Loop of this many iterations can't be unrolled"));
            }
            let at = self.builder.scalar(trip as f64, DType::I64);
            let yes = self.builder.scalar(1.0, DType::Bool);
            let mut names = Names::new();
            let values = [Some(Item::Tensor(at)), Some(Item::Tensor(yes))];
            for (input, value) in body.input.iter().zip(values.into_iter().chain(state)) {
                names.insert(input.name.clone(), value);
            }
            let mut out = self.graph(body, opsets, names)?;
            self.builder.node.clone_from(&name);
            let collected = out.split_off(carried + 1);
            state = out.split_off(1);
            let Some(Some(next)) = out.first() else { return Ok(none(node)) };
            going = self.decided(Some(next), "the condition of Loop")?;
            for (list, value) in scans.iter_mut().zip(collected) {
                let Some(value) = value else { return Ok(none(node)) };
                let value = value.tensor("a collected result")?;
                list.push(self.builder.unsqueeze(value, &[0])?);
            }
            trip += 1;
        }
        let mut out = state;
        for list in scans {
            if list.is_empty() {
                return Err(unsupported_stop("a Loop without iterations that collects results"));
            }
            out.push(Some(Item::Tensor(self.builder.concat(&list, 0)?)));
        }
        Ok(out)
    }

    /// The body once for each element of the sequences; tensors are the same for all.
    pub(super) fn map_sequence(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        let Some(body) = Call::graph_attr(node, "body") else {
            return Err(wrong_stop("the body is missing"));
        };
        let Some(inputs) = inputs.iter().cloned().collect::<Option<Vec<Item>>>() else {
            return Err(wrong_stop("an input is missing"));
        };
        if body.input.len() != inputs.len() || inputs.is_empty() {
            return Err(wrong_stop("the body does not fit the node's inputs"));
        }
        let count = inputs[0].sequence("the first input")?.len();
        let name = self.builder.node.clone();
        let mut lists: Vec<Vec<Tensor>> = vec![Vec::new(); body.output.len()];
        for i in 0..count {
            let mut names = Names::new();
            for (input, item) in body.input.iter().zip(&inputs) {
                let value = match item {
                    Item::Sequence(elements) => match elements.get(i) {
                        Some(&t) if elements.len() == count => Item::Tensor(t),
                        _ => return Err(wrong_stop("the sequences have different lengths")),
                    },
                    other => other.clone(),
                };
                names.insert(input.name.clone(), Some(value));
            }
            let out = self.graph(body, opsets, names)?;
            self.builder.node.clone_from(&name);
            for (list, value) in lists.iter_mut().zip(out) {
                let Some(value) = value else { return Ok(none(node)) };
                list.push(value.tensor("a result of the body")?);
            }
        }
        Ok(lists.into_iter().map(|list| Some(Item::Sequence(list))).collect())
    }
}
