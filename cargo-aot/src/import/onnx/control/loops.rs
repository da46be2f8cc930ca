//! Loop, and SequenceMap over a number of iterations that is decided at build time.

use super::super::builder::{Most, OpResult, Tensor, wrong};
use super::super::call::Call;
use super::super::item::{Item, Names};
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::{GraphProto, NodeProto};
use super::repeat::{Attempt, Repeat, Shape, items, nodes};
use super::{MAX_UNROLLED, MAX_UNROLLED_NODES, depends_stop, none, unsupported_stop, wrong_stop};
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim};

impl Importer<'_> {
    /// Loop: unrolled where that gives few nodes, else a loop of the graph.
    pub(super) fn import_loop(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        let Some(body) = Call::graph_attr(node, "body") else {
            return Err(wrong_stop("the body is missing"));
        };
        let input = |n: usize| inputs.get(n).and_then(Option::as_ref);
        let carried = node.input.len().saturating_sub(2);
        let collects = body.output.len() > carried + 1;
        let count = match input(0) {
            Some(item) => Some(self.count(item, &node.input[0], collects)?),
            None => None,
        };
        let condition = match input(1) {
            Some(item) => item.tensor("the condition")?,
            None => self.builder.scalar(1.0, DType::Bool),
        };
        let mut state: Vec<Option<Item>> = inputs.get(2..).unwrap_or_default().to_vec();
        state.resize(carried, None);
        if body.input.len() != state.len() + 2 || body.output.len() < state.len() + 1 {
            return Err(wrong_stop("the body does not fit the node's inputs"));
        }
        let trips = count.as_ref().map_or(Some(i64::MAX), Dim::as_const);
        let unroll = |importer: &mut Self, most: i64| {
            importer.try_to(|i| i.unroll_loop(node, opsets, body, condition, (trips, most), &state))
        };
        // How many iterations are unrolled before that is given up.
        let few = MAX_UNROLLED_NODES / nodes(body).max(1);
        if trips.is_some()
            && let Attempt::Made(outputs) = unroll(self, few)?
        {
            return Ok(outputs);
        }
        let initial: Option<Vec<Tensor>> = (state.iter())
            .map(|item| match item {
                Some(Item::Tensor(t)) => Some(*t),
                _ => None,
            })
            .collect();
        let why = match initial {
            None => unsupported_stop("a Loop that carries sequences a run-time number of times"),
            Some(initial) => {
                let zero = |d: Dim| self.builder.scope().max(&Dim::ZERO, &d);
                let repeat = Repeat {
                    body,
                    count: zero(count.unwrap_or(Dim::from(i64::from(i32::MAX)))),
                    counted: None,
                    shape: Shape::Loop(condition),
                    initial,
                    backward: Vec::new(),
                };
                match self.repeat_loop(node, opsets, repeat)? {
                    Attempt::Made(outputs) => return Ok(outputs),
                    Attempt::No(why) => why,
                }
            }
        };
        match trips {
            Some(_) if few < MAX_UNROLLED => match unroll(self, MAX_UNROLLED)? {
                Attempt::Made(outputs) => Ok(outputs),
                Attempt::No(_) => Err(why),
            },
            _ => Err(why),
        }
    }

    /// A loop of the graph: one that its condition ends where it can be, else one of a number of iterations that the
    /// condition comes to.
    fn repeat_loop(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        mut repeat: Repeat<'_>,
    ) -> Result<Attempt, Stop> {
        let looped = |importer: &mut Self, repeat: &Repeat<'_>| {
            importer.try_to(|importer| {
                let results = importer.repeat(repeat, opsets)?;
                Ok(results.map_or_else(|| none(node), items))
            })
        };
        let attempt = looped(self, &repeat)?;
        if matches!(attempt, Attempt::Made(_)) {
            return Ok(attempt);
        }
        let Some(counted) = self.counted(&repeat, opsets)? else { return Ok(attempt) };
        repeat.count.clone_from(&counted.count);
        repeat.counted = Some(counted);
        looped(self, &repeat)
    }

    /// The number of iterations that a tensor of this name gives. Only what is collected needs a bound.
    fn count(&mut self, item: &Item, name: &str, collects: bool) -> OpResult<Dim> {
        let t = item.tensor("the number of iterations")?;
        match self.builder.ints(t).as_deref() {
            Some([one]) => return Ok(one.clone()),
            Some(_) => return wrong("the number of iterations is no single number"),
            None => {}
        }
        let t = self.builder.cast(t, DType::I64)?;
        let t = self.builder.with(BinaryOp::Max, t, 0.0)?;
        let most = match collects {
            true => Most::Unknown,
            false => Most::Valid(Dim::from(i64::from(i32::MAX))),
        };
        self.builder.size(t, name, 0, &most)
    }

    /// All iterations one after the other, as long as `(trips, most)` allow: fails beyond `most`, and where a condition
    /// is not decided.
    fn unroll_loop(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        body: &GraphProto,
        condition: Tensor,
        (trips, most): (Option<i64>, i64),
        state: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        let undecided = || depends_stop("the condition of Loop");
        let trips = trips.unwrap_or(i64::MAX);
        let carried = state.len();
        let mut state = state.to_vec();
        let mut going = self.builder.uniform(condition).ok_or_else(undecided)? != 0.0;
        let mut scans: Vec<Vec<Tensor>> = vec![Vec::new(); body.output.len() - carried - 1];
        let name = self.builder.node.clone();
        let mut trip = 0;
        while going && trip < trips {
            if trip == most {
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
            let next = next.tensor("the condition of Loop")?;
            going = self.builder.uniform(next).ok_or_else(undecided)? != 0.0;
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
