//! Scan.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::super::item::{Item, Names};
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::{GraphProto, NodeProto};
use super::repeat::{Attempt, Repeat, Shape, items, nodes};
use super::{MAX_UNROLLED, MAX_UNROLLED_NODES, none, unsupported_stop};
use aot_ir::Dim;
use aot_ir::dim::Cmp;

/// States after the last step, and what each step gave, per result.
pub(super) type Run = (Vec<Tensor>, Vec<Vec<Tensor>>);

impl Importer<'_> {
    /// Scan: unrolled where that gives few nodes, else a loop of the graph.
    pub(super) fn import_scan(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        if opsets.get("").is_some_and(|&v| v < 9) {
            return self.import_batched_scan(node, opsets, inputs);
        }
        let plan = ScanPlan::read(node, inputs)?;
        let axes = self.scan_axes(&plan)?;
        let length = self.scan_length(&plan, &axes)?;
        let unroll = |importer: &mut Self, length: i64| {
            importer.try_to(|i| i.unroll_scan(&plan, node, opsets, &axes, length))
        };
        let constant = length.as_const().filter(|n| *n > 0);
        if let Some(n) =
            constant.filter(|n| n.saturating_mul(nodes(plan.body)) <= MAX_UNROLLED_NODES)
            && let Attempt::Made(outputs) = unroll(self, n)?
        {
            return Ok(outputs);
        }
        let looped =
            self.try_to(|importer| importer.loop_scan(&plan, node, opsets, &axes, &length));
        match (looped?, constant) {
            (Attempt::Made(outputs), _) => Ok(outputs),
            (Attempt::No(why), Some(n)) if n <= MAX_UNROLLED => match unroll(self, n)? {
                Attempt::Made(outputs) => Ok(outputs),
                Attempt::No(_) => Err(why),
            },
            (Attempt::No(why), _) => Err(why),
        }
    }

    fn loop_scan(
        &mut self,
        plan: &ScanPlan<'_>,
        node: &NodeProto,
        opsets: &Opsets,
        axes: &[usize],
        length: &Dim,
    ) -> Result<Vec<Option<Item>>, Stop> {
        let is_backward = |list: &[i64], i: usize| list.get(i) == Some(&1);
        let scanned = plan.scanned.iter().zip(axes).enumerate();
        let collected = plan.body.output.len() - plan.state.len();
        let repeat = Repeat {
            body: plan.body,
            count: length.clone(),
            counted: None,
            shape: Shape::Scan(
                scanned
                    .map(|(i, (&t, &axis))| (t, axis, is_backward(&plan.input_directions, i)))
                    .collect(),
            ),
            initial: plan.state.clone(),
            backward: (0..collected).map(|i| is_backward(&plan.output_directions, i)).collect(),
        };
        let Some(mut out) = self.repeat(&repeat, opsets)? else { return Ok(none(node)) };
        for (i, t) in out.iter_mut().skip(plan.state.len()).enumerate() {
            // The steps' axis is the first one so far.
            let rank = self.builder.rank(*t);
            let axis = axis_of(plan.output_axes.get(i), rank)?;
            let perm: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..rank).collect();
            *t = self.builder.transpose(*t, &perm)?;
        }
        Ok(items(out))
    }

    fn unroll_scan(
        &mut self,
        plan: &ScanPlan<'_>,
        node: &NodeProto,
        opsets: &Opsets,
        axes: &[usize],
        length: i64,
    ) -> Result<Vec<Option<Item>>, Stop> {
        let Some((state, lists)) =
            self.run_scan(plan, opsets, &plan.state, &plan.scanned, axes, length)?
        else {
            return Ok(none(node));
        };
        let mut out: Vec<Tensor> = state;
        for (i, list) in lists.into_iter().enumerate() {
            let Some(&first) = list.first() else {
                return Err(unsupported_stop("a Scan without iterations"));
            };
            let rank = self.builder.rank(first) + 1;
            let axis = axis_of(plan.output_axes.get(i), rank)?;
            out.push(self.stack(&list, axis)?);
        }
        Ok(items(out))
    }

    /// Tensors of one shape as one with a new axis.
    pub(super) fn stack(&mut self, list: &[Tensor], axis: usize) -> OpResult {
        let mut parts = Vec::with_capacity(list.len());
        for &t in list {
            parts.push(self.builder.unsqueeze(t, &[axis])?);
        }
        if parts.is_empty() {
            return unsupported("a Scan without iterations");
        }
        self.builder.concat(&parts, axis)
    }

    fn scan_axes(&self, plan: &ScanPlan<'_>) -> OpResult<Vec<usize>> {
        let axis =
            |(i, &t): (usize, &Tensor)| axis_of(plan.input_axes.get(i), self.builder.rank(t));
        plan.scanned.iter().enumerate().map(axis).collect()
    }

    /// The number of steps: the extent that all scanned inputs have along their axes.
    pub(super) fn scan_length(&self, plan: &ScanPlan<'_>, axes: &[usize]) -> OpResult<Dim> {
        let mut length: Option<Dim> = None;
        for (&t, &axis) in plan.scanned.iter().zip(axes) {
            let Some(extent) = self.builder.shape(t).get(axis) else {
                return wrong("a scan axis is out of range");
            };
            length = match length {
                None => Some(extent.clone()),
                Some(found) => match self.builder.scope().decide(Cmp::Eq, &found, extent) {
                    Some(false) => return wrong("the scanned inputs differ in length"),
                    // A constant is what the others must be.
                    _ if extent.as_const().is_some() => Some(extent.clone()),
                    _ => Some(found),
                },
            };
        }
        Ok(length.unwrap_or(Dim::ZERO))
    }

    /// All steps; `None` when something inside is not supported.
    pub(super) fn run_scan(
        &mut self,
        plan: &ScanPlan<'_>,
        opsets: &Opsets,
        state: &[Tensor],
        scanned: &[Tensor],
        axes: &[usize],
        length: i64,
    ) -> Result<Option<Run>, Stop> {
        let name = self.builder.node.clone();
        let mut state = state.to_vec();
        let mut lists: Vec<Vec<Tensor>> = vec![Vec::new(); plan.body.output.len() - state.len()];
        for step in 0..length {
            let mut names = Names::new();
            for (input, &value) in plan.body.input.iter().zip(&state) {
                names.insert(input.name.clone(), Some(Item::Tensor(value)));
            }
            for (i, &t) in scanned.iter().enumerate() {
                let backward = plan.input_directions.get(i) == Some(&1);
                let at = if backward { length - 1 - step } else { step };
                let value = self.builder.pick(t, axes[i], Dim::from(at))?;
                let input = &plan.body.input[state.len() + i];
                names.insert(input.name.clone(), Some(Item::Tensor(value)));
            }
            let out = self.graph(plan.body, opsets, names)?;
            self.builder.node.clone_from(&name);
            let Some(out) = out.into_iter().collect::<Option<Vec<Item>>>() else {
                return Ok(None);
            };
            let out = out.iter().map(|item| item.tensor("a result of the body"));
            let out = out.collect::<OpResult<Vec<Tensor>>>()?;
            let (next, values) = out.split_at(state.len());
            state = next.to_vec();
            lists.iter_mut().zip(values).for_each(|(list, &value)| list.push(value));
        }
        for (i, list) in lists.iter_mut().enumerate() {
            if plan.output_directions.get(i) == Some(&1) {
                list.reverse();
            }
        }
        Ok(Some((state, lists)))
    }
}

/// An axis that counts from the end when negative; 0 when it is left out.
fn axis_of(axis: Option<&i64>, rank: usize) -> OpResult<usize> {
    let axis = axis.copied().unwrap_or(0);
    let axis = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    match usize::try_from(axis) {
        Ok(axis) if axis < rank => Ok(axis),
        _ => wrong("a scan axis is out of range"),
    }
}

/// What a Scan says.
pub(super) struct ScanPlan<'a> {
    pub(super) body: &'a GraphProto,
    pub(super) state: Vec<Tensor>,
    pub(super) scanned: Vec<Tensor>,
    input_axes: Vec<i64>,
    pub(super) input_directions: Vec<i64>,
    output_axes: Vec<i64>,
    output_directions: Vec<i64>,
}

impl<'a> ScanPlan<'a> {
    pub(super) fn read(node: &'a NodeProto, inputs: &[Option<Item>]) -> OpResult<Self> {
        let Some(body) = Call::graph_attr(node, "body") else {
            return wrong("the body is missing");
        };
        let attribute = |name: &str| node.attribute.iter().find(|a| a.name == name);
        let ints = |name: &str| attribute(name).map(|a| a.ints.clone()).unwrap_or_default();
        let count = attribute("num_scan_inputs").map_or(0, |a| a.i);
        let Some(inputs) = inputs.iter().cloned().collect::<Option<Vec<Item>>>() else {
            return wrong("an input is missing");
        };
        let inputs = inputs.iter().map(|item| item.tensor("an input of Scan"));
        let inputs = inputs.collect::<OpResult<Vec<Tensor>>>()?;
        let carried = usize::try_from(count).ok().and_then(|n| inputs.len().checked_sub(n));
        let mut input_directions = ints("scan_input_directions");
        // As it is called in version 8.
        input_directions.extend(ints("directions"));
        match carried {
            Some(carried)
                if body.input.len() == inputs.len()
                    && body.output.len() >= carried
                    && count > 0 =>
            {
                Ok(Self {
                    body,
                    state: inputs[..carried].to_vec(),
                    scanned: inputs[carried..].to_vec(),
                    input_axes: ints("scan_input_axes"),
                    input_directions,
                    output_axes: ints("scan_output_axes"),
                    output_directions: ints("scan_output_directions"),
                })
            }
            _ => wrong("the body does not fit the node's inputs"),
        }
    }
}
