//! Scan of version 8: axis 0 of everything is the batch, axis 1 the steps.

use super::super::builder::{Builder, Most, OpResult, Tensor};
use super::super::item::Item;
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::NodeProto;
use super::repeat::{Attempt, Repeat, Shape, items, nodes};
use super::scan::ScanPlan;
use super::{MAX_UNROLLED, MAX_UNROLLED_NODES, none, wrong_stop};
use aot_ir::op::PadMode;
use aot_ir::{DType, Dim, Scalar};

impl Importer<'_> {
    /// An input before the others may give every sequence its length: its states stay from its end on, and what lies
    /// beyond is zero. Unrolled where that gives few nodes, else a loop over the sequences and one over the steps.
    pub(super) fn import_batched_scan(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        let Some((lengths, inputs)) = inputs.split_first() else {
            return Err(wrong_stop("an input is missing"));
        };
        let plan = ScanPlan::read(node, inputs)?;
        let steps = self.scan_length(&plan, &vec![1; plan.scanned.len()])?;
        let first = plan.scanned.first().and_then(|t| self.builder.shape(*t).first().cloned());
        let Some(batch) = first else { return Err(wrong_stop("there is nothing to scan")) };
        let lengths = match lengths {
            Some(item) => {
                let t = item.tensor("the lengths")?;
                if self.builder.shape(t) != [batch.clone()] {
                    self.builder.guard(self.builder.shape(t).iter().product(), batch.clone());
                }
                Some(self.builder.reshape(t, std::slice::from_ref(&batch))?)
            }
            None => None,
        };
        let known = self.constant_lengths(&batch, &steps, lengths);
        let turns = known.as_ref().map(|(lengths, steps)| lengths.len() as i64 * steps);
        let unroll = |importer: &mut Self| {
            let (lengths, steps) = known.clone().unwrap_or_default();
            importer.try_to(|importer| {
                let out = importer.unroll_batched_scan(&plan, opsets, &lengths, steps)?;
                Ok(out.map_or_else(|| none(node), items))
            })
        };
        if turns.is_some_and(|n| n.saturating_mul(nodes(plan.body)) <= MAX_UNROLLED_NODES)
            && let Attempt::Made(outputs) = unroll(self)?
        {
            return Ok(outputs);
        }
        let looped = self.try_to(|importer| {
            let out = importer.loop_batched_scan(&plan, opsets, lengths, (&batch, &steps))?;
            Ok(out.map_or_else(|| none(node), items))
        });
        match looped? {
            Attempt::Made(outputs) => Ok(outputs),
            Attempt::No(why) if turns.is_some_and(|n| n <= MAX_UNROLLED) => match unroll(self)? {
                Attempt::Made(outputs) => Ok(outputs),
                Attempt::No(_) => Err(why),
            },
            Attempt::No(why) => Err(why),
        }
    }

    /// The length of every sequence, and the number of steps, where all are known and there are some.
    fn constant_lengths(
        &mut self,
        batch: &Dim,
        steps: &Dim,
        lengths: Option<Tensor>,
    ) -> Option<(Vec<i64>, i64)> {
        let (batch, steps) = (batch.as_const()?, steps.as_const()?);
        let lengths = match lengths {
            Some(t) => self.builder.ints(t)?.iter().map(Dim::as_const).collect::<Option<_>>()?,
            None => vec![steps; usize::try_from(batch).ok()?],
        };
        let some = !lengths.is_empty() && lengths.iter().all(|n| (1..=steps).contains(n));
        some.then_some((lengths, steps))
    }

    fn unroll_batched_scan(
        &mut self,
        plan: &ScanPlan<'_>,
        opsets: &Opsets,
        lengths: &[i64],
        steps: i64,
    ) -> Result<Option<Vec<Tensor>>, Stop> {
        let results = plan.body.output.len();
        let mut parts: Vec<Vec<Tensor>> = vec![Vec::new(); results];
        for (at, &length) in (0..).zip(lengths) {
            let one = |b: &mut Builder, list: &[Tensor]| {
                list.iter().map(|&t| b.pick(t, 0, at.into())).collect::<OpResult<Vec<_>>>()
            };
            let state = one(&mut self.builder, &plan.state)?;
            let scanned = one(&mut self.builder, &plan.scanned)?;
            let axes = vec![0; scanned.len()];
            let Some((state, lists)) =
                self.run_scan(plan, opsets, &state, &scanned, &axes, length)?
            else {
                return Ok(None);
            };
            let mut out = state;
            for mut list in lists {
                // What lies beyond a sequence's end is zero.
                if let Some(&first) = list.first() {
                    let zero = self.builder.scalar_like(0.0, first);
                    let shape = self.builder.shape(first).to_vec();
                    let zero = self.builder.expand(zero, &shape)?;
                    list.resize(usize::try_from(steps).unwrap_or(0), zero);
                }
                out.push(self.stack(&list, 0)?);
            }
            parts.iter_mut().zip(out).for_each(|(part, t)| part.push(t));
        }
        let out = parts.iter().map(|part| self.stack(part, 0));
        Ok(Some(out.collect::<OpResult<_>>()?))
    }

    fn loop_batched_scan(
        &mut self,
        plan: &ScanPlan<'_>,
        opsets: &Opsets,
        lengths: Option<Tensor>,
        (batch, steps): (&Dim, &Dim),
    ) -> Result<Option<Vec<Tensor>>, Stop> {
        for &t in plan.state.iter().chain(&plan.scanned) {
            match self.builder.shape(t).first().cloned() {
                Some(extent) if extent == *batch => {}
                Some(extent) => self.builder.guard(extent, batch.clone()),
                None => return Err(wrong_stop("an input of Scan has no batch axis")),
            }
        }
        let name = self.builder.node.clone();
        let open = self.builder.begin_loop(batch, false, &[]);
        let made = self.one_sequence(plan, opsets, lengths, &open.at(), steps);
        self.builder.node = name;
        match made {
            Ok(Some(results)) => {
                let collected: Vec<(Tensor, bool)> =
                    results.into_iter().map(|t| (t, false)).collect();
                Ok(Some(self.builder.end_loop(open, None, &[], &[], &collected)?))
            }
            other => {
                self.builder.abandon_loop(open);
                other
            }
        }
    }

    /// The steps of one sequence of the batch: its last states, and what its steps gave.
    fn one_sequence(
        &mut self,
        plan: &ScanPlan<'_>,
        opsets: &Opsets,
        lengths: Option<Tensor>,
        at: &Dim,
        steps: &Dim,
    ) -> Result<Option<Vec<Tensor>>, Stop> {
        let builder = &mut self.builder;
        let mut initial = Vec::new();
        for &t in &plan.state {
            initial.push(builder.pick(t, 0, at.clone())?);
        }
        let mut scanned = Vec::new();
        for (i, &t) in plan.scanned.iter().enumerate() {
            let backward = plan.input_directions.get(i) == Some(&1);
            scanned.push((builder.pick(t, 0, at.clone())?, 0, backward));
        }
        let count = match lengths {
            Some(t) => {
                let length = builder.pick(t, 0, at.clone())?;
                let name = format!("{}_length", builder.node);
                builder.size(length, &name, 0, &Most::Valid(steps.clone()))?
            }
            None => steps.clone(),
        };
        let body = plan.body;
        let shape = Shape::Scan(scanned);
        let (times, counted, backward) = (count.clone(), None, Vec::new());
        let repeat = Repeat { body, count: times, counted, shape, initial, backward };
        let Some(mut out) = self.repeat(&repeat, opsets)? else { return Ok(None) };
        for t in out.iter_mut().skip(plan.state.len()) {
            let rank = self.builder.rank(*t);
            let (low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
            high[0] = steps - &count;
            let zero = match self.builder.dtype(*t) {
                DType::Bool => Scalar::Bool(false),
                dtype if dtype.is_float() => Scalar::Float(0.0),
                _ => Scalar::Int(0),
            };
            *t = self.builder.pad(*t, &low, &high, PadMode::Constant(zero))?;
        }
        Ok(Some(out))
    }
}
