//! Nodes that hold graphs: branches are chosen, loops unrolled, where that is decided at build time.

use super::builder::{OpError, OpResult, Tensor, unsupported, wrong};
use super::call::Call;
use super::nodes::{Importer, Names, Opsets, Stop};
use super::proto::{GraphProto, NodeProto};
use aot_ir::Dim;

/// Most iterations that are unrolled.
const MAX_UNROLLED: i64 = 512;

impl Importer<'_> {
    /// Imports an If, Loop or Scan.
    pub(super) fn control(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Stop> {
        match node.op_type.as_str() {
            "If" => self.branch(node, opsets, inputs),
            "Loop" => self.unroll_loop(node, opsets, inputs),
            _ => self.unroll_scan(node, opsets, inputs),
        }
    }

    fn branch(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Stop> {
        let (Some(then), Some(otherwise)) =
            (Call::graph_attr(node, "then_branch"), Call::graph_attr(node, "else_branch"))
        else {
            return Err(OpError::Wrong("a branch is missing".to_owned()).into());
        };
        let Some(Some(condition)) = inputs.first().copied() else {
            return Err(OpError::Wrong("the condition is missing".to_owned()).into());
        };
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
                (Some(a), Some(b)) => {
                    let same = self.builder.shape(a).len() == self.builder.shape(b).len() && {
                        let scope = self.builder.scope();
                        let (a, b) = (self.builder.shape(a), self.builder.shape(b));
                        a.iter().zip(b).all(|(a, b)| scope.proves_eq(a, b))
                    };
                    if !same {
                        return Err(unsupported_stop(
                            "the condition depends on data and the branches' shapes differ, \
                             which is not supported yet",
                        ));
                    }
                    Some(self.builder.select(condition, a, b)?)
                }
                _ => None,
            });
        }
        Ok(out)
    }

    /// A decided boolean; `true` when the input is left out.
    fn decided(&mut self, t: Option<Tensor>, what: &str) -> OpResult<bool> {
        match t {
            None => Ok(true),
            Some(t) => match self.builder.uniform(t) {
                Some(v) => Ok(v != 0.0),
                None => super::call::depends(what),
            },
        }
    }

    fn unroll_loop(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Stop> {
        let Some(body) = Call::graph_attr(node, "body") else {
            return Err(OpError::Wrong("the body is missing".to_owned()).into());
        };
        let input = |n: usize| inputs.get(n).copied().flatten();
        let trips = match input(0) {
            None => MAX_UNROLLED + 1,
            Some(t) => match self.builder.ints(t).as_deref() {
                Some([one]) => one.as_const().unwrap_or(MAX_UNROLLED + 1),
                _ => return Err(depends_stop("the number of iterations of Loop")),
            },
        };
        let mut state: Vec<Option<Tensor>> = inputs.get(2..).unwrap_or_default().to_vec();
        state.resize(node.input.len().saturating_sub(2), None);
        let carried = state.len();
        if body.input.len() != carried + 2 || body.output.len() < carried + 1 {
            return Err(OpError::Wrong("the body does not fit the node's inputs".to_owned()).into());
        }
        let name = self.builder.node.clone();
        let mut going = self.decided(input(1), "the condition of Loop")?;
        let mut scans: Vec<Vec<Tensor>> = vec![Vec::new(); body.output.len() - carried - 1];
        let mut trip = 0;
        while going && trip < trips {
            if trip == MAX_UNROLLED {
                return Err(unsupported_stop("a Loop of this many iterations can't be unrolled"));
            }
            let at = self.builder.scalar(trip as f64, aot_ir::DType::I64);
            let yes = self.builder.scalar(1.0, aot_ir::DType::Bool);
            let mut names = Names::new();
            let values = [Some(at), Some(yes)].into_iter().chain(state.iter().copied());
            for (input, value) in body.input.iter().zip(values) {
                names.insert(input.name.clone(), value);
            }
            let out = self.graph(body, opsets, names)?;
            self.builder.node.clone_from(&name);
            let Some(Some(next)) = out.first().copied() else { return Ok(none(node)) };
            going = self.decided(Some(next), "the condition of Loop")?;
            state = out[1..=carried].to_vec();
            for (list, value) in scans.iter_mut().zip(&out[carried + 1..]) {
                let Some(value) = value else { return Ok(none(node)) };
                list.push(self.builder.unsqueeze(*value, &[0])?);
            }
            trip += 1;
        }
        let mut out = state;
        for list in scans {
            if list.is_empty() {
                return Err(unsupported_stop("a Loop without iterations that collects results"));
            }
            out.push(Some(self.builder.concat(&list, 0)?));
        }
        Ok(out)
    }

    fn unroll_scan(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Stop> {
        let plan = ScanPlan::read(node, opsets, inputs)?;
        let mut state: Vec<Tensor> = plan.state.clone();
        let mut length: Option<i64> = None;
        let mut axes = Vec::new();
        for (i, &t) in plan.scanned.iter().enumerate() {
            let rank = self.builder.rank(t);
            let axis = plan.input_axes.get(i).copied().unwrap_or(0);
            let axis = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis })
                .ok()
                .filter(|&a| a < rank);
            let Some(axis) = axis else {
                return Err(OpError::Wrong("a scan axis is out of range".to_owned()).into());
            };
            match self.builder.shape(t)[axis].as_const() {
                Some(n) if n <= MAX_UNROLLED && length.is_none_or(|l| l == n) => length = Some(n),
                Some(_) => {
                    return Err(unsupported_stop(
                        "a Scan of this many iterations can't be unrolled",
                    ));
                }
                None => {
                    return Err(unsupported_stop(
                        "a Scan over a run-time size is not supported yet; fix that dim",
                    ));
                }
            }
            axes.push(axis);
        }
        let length = length.unwrap_or(0);
        let name = self.builder.node.clone();
        let collected = plan.body.output.len() - state.len();
        let mut scans: Vec<Vec<Tensor>> = vec![Vec::new(); collected];
        for step in 0..length {
            let mut names = Names::new();
            for (input, &value) in plan.body.input.iter().zip(&state) {
                names.insert(input.name.clone(), Some(value));
            }
            for (i, &t) in plan.scanned.iter().enumerate() {
                let backward = plan.input_directions.get(i) == Some(&1);
                let at = if backward { length - 1 - step } else { step };
                let value = self.builder.pick(t, axes[i], Dim::from(at))?;
                names.insert(plan.body.input[state.len() + i].name.clone(), Some(value));
            }
            let out = self.graph(plan.body, opsets, names)?;
            self.builder.node.clone_from(&name);
            let Some(out) = out.into_iter().collect::<Option<Vec<Tensor>>>() else {
                return Ok(none(node));
            };
            let (next, values) = out.split_at(state.len());
            state = next.to_vec();
            for (i, (list, &value)) in scans.iter_mut().zip(values).enumerate() {
                if plan.output_directions.get(i) == Some(&1) {
                    list.insert(0, value);
                } else {
                    list.push(value);
                }
            }
        }
        let mut out: Vec<Option<Tensor>> = state.into_iter().map(Some).collect();
        for (i, list) in scans.into_iter().enumerate() {
            let Some(&first) = list.first() else {
                return Err(unsupported_stop("a Scan without iterations"));
            };
            let rank = self.builder.rank(first) as i64 + 1;
            let axis = plan.output_axes.get(i).copied().unwrap_or(0);
            let axis = usize::try_from(if axis < 0 { axis + rank } else { axis })
                .ok()
                .filter(|&a| (a as i64) < rank);
            let Some(axis) = axis else {
                return Err(OpError::Wrong("a scan axis is out of range".to_owned()).into());
            };
            let mut parts = Vec::with_capacity(list.len());
            for t in list {
                parts.push(self.builder.unsqueeze(t, &[axis])?);
            }
            out.push(Some(self.builder.concat(&parts, axis)?));
        }
        Ok(out)
    }
}

/// What a Scan of version 9 or later says.
struct ScanPlan<'a> {
    body: &'a GraphProto,
    state: Vec<Tensor>,
    scanned: Vec<Tensor>,
    input_axes: Vec<i64>,
    input_directions: Vec<i64>,
    output_axes: Vec<i64>,
    output_directions: Vec<i64>,
}

impl<'a> ScanPlan<'a> {
    fn read(node: &'a NodeProto, opsets: &Opsets, inputs: &[Option<Tensor>]) -> OpResult<Self> {
        if opsets.get("").is_some_and(|&v| v < 9) {
            return unsupported("Scan before version 9 has another meaning; convert the model");
        }
        let Some(body) = Call::graph_attr(node, "body") else {
            return wrong("the body is missing");
        };
        let attribute = |name: &str| node.attribute.iter().find(|a| a.name == name);
        let ints = |name: &str| attribute(name).map(|a| a.ints.clone()).unwrap_or_default();
        let count = attribute("num_scan_inputs").map_or(0, |a| a.i);
        let Some(inputs) = inputs.iter().copied().collect::<Option<Vec<Tensor>>>() else {
            return wrong("an input is missing");
        };
        let carried = usize::try_from(count).ok().and_then(|n| inputs.len().checked_sub(n));
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
                    input_directions: ints("scan_input_directions"),
                    output_axes: ints("scan_output_axes"),
                    output_directions: ints("scan_output_directions"),
                })
            }
            _ => wrong("the body does not fit the node's inputs"),
        }
    }
}

/// No outputs, because something inside is reported already.
fn none(node: &NodeProto) -> Vec<Option<Tensor>> {
    vec![None; node.output.len()]
}

fn unsupported_stop(text: &str) -> Stop {
    OpError::Unsupported(text.to_owned()).into()
}

fn depends_stop(what: &str) -> Stop {
    match super::call::depends::<()>(what) {
        Err(error) => error.into(),
        Ok(()) => OpError::Wrong(what.to_owned()).into(),
    }
}
