//! Executes groups in order.

use super::super::arena::ArenaPlan;
use super::super::plan::{BufferKind, Plan};
use super::Memory;
use super::eval::{Folding, Num, Place, for_each};
use super::state;
use aot_ir::dim::{BindError, VarId, atom_of};
use aot_ir::op::ScatterReduction;
use aot_ir::{DType, DimError, HostError};
use aot_kernels::group::{
    Anchor, Attention, Contraction, ExprId, FoldOp, Group, MathType, OnHost, OperandId, Stage,
    Store,
};
use std::ops::Range;

/// Why groups could not be executed. Each is a fault of lowering, but for sizes out of range.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// A size expression has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// A size that the run computes is outside its range.
    #[error(transparent)]
    Size(#[from] BindError),
    /// The host can't do its part.
    #[error("`{0}`: {1}")]
    Host(String, HostError),
    /// A buffer does not fit its place in the arena.
    #[error("buffer `{0}` exceeds its place in the arena")]
    Arena(String),
    /// A place outside a buffer is read or written.
    #[error("group `{group}` touches element {element} of buffer {buffer}, which it does not have")]
    Bounds {
        /// Label of the group.
        group: String,
        /// The buffer.
        buffer: u32,
        /// The element.
        element: i64,
    },
    /// Padding that is read is not zero.
    #[error("group `{group}` reads element {element} of buffer {buffer}, padding that is not zero")]
    Padding {
        /// Label of the group.
        group: String,
        /// The buffer.
        buffer: u32,
        /// The element.
        element: i64,
    },
    /// A group breaks a rule.
    #[error("group `{0}`: {1}")]
    Malformed(String, &'static str),
}

type Result<T> = std::result::Result<T, InterpretError>;

/// Runs a plan at given sizes (atoms by symbol) on row-major inputs; gives the outputs' bytes.
///
/// # Errors
/// When a group touches what it may not: see [`InterpretError`].
pub fn interpret(
    plan: &Plan<'_>,
    arena: &ArenaPlan,
    atoms: &[i64],
    inputs: &[&[u8]],
) -> Result<Vec<Vec<u8>>> {
    interpret_observed(plan, arena, atoms, inputs, &mut |_, _| {}).map(|(outputs, _)| outputs)
}

/// As [`interpret`], and shows the memory after every group of the run, by its index. Also gives the atoms, those
/// that the run bound included.
///
/// # Errors
/// As [`interpret`].
pub fn interpret_observed(
    plan: &Plan<'_>,
    arena: &ArenaPlan,
    atoms: &[i64],
    inputs: &[&[u8]],
    observe: &mut dyn FnMut(usize, &Memory),
) -> Result<(Vec<Vec<u8>>, Vec<i64>)> {
    let mut memory = Memory::new(plan, arena, atoms)?;
    let mut atoms = atoms.to_vec();
    for appended in &plan.appended {
        state::put(plan, &mut memory, &atoms, appended, inputs)?;
    }
    for (i, buffer) in plan.buffers.iter().enumerate() {
        let place = memory.bytes_mut(i as u32);
        let source: &[u8] = match buffer.kind {
            BufferKind::Input(n) => inputs.get(n as usize).copied().unwrap_or_default(),
            BufferKind::Constant(c) => &plan.graph[aot_ir::ConstId(c)].bytes,
            _ => continue,
        };
        if place.len() != source.len() {
            return Err(InterpretError::Malformed(buffer.name.clone(), "it has another size"));
        }
        place.copy_from_slice(source);
    }
    for group in &plan.prepare {
        run_group(group, &mut memory, &atoms)?;
    }
    run_steps(plan, 0..plan.steps.len(), 0, &mut memory, &mut atoms, observe)?;
    read(plan, plan.steps.len(), &mut memory, &mut atoms)?;
    let outputs = (0..plan.graph.outputs.len() as u32).map(|n| {
        if let Some(appended) = plan.appended.iter().find(|a| a.state.output == n) {
            return state::take(plan, &memory, &atoms, appended);
        }
        let is = |k: &BufferKind| *k == BufferKind::Output(n);
        let buffer = plan.buffers.iter().position(|b| is(&b.kind));
        Ok(buffer.map(|b| memory.bytes(b as u32).to_vec()).unwrap_or_default())
    });
    Ok((outputs.collect::<Result<_>>()?, atoms))
}

/// Runs a stretch of groups; those of the plan's loops before number `entered` are going on.
fn run_steps(
    plan: &Plan<'_>,
    steps: Range<usize>,
    entered: usize,
    memory: &mut Memory,
    atoms: &mut Vec<i64>,
    observe: &mut dyn FnMut(usize, &Memory),
) -> Result<()> {
    let mut step = steps.start;
    while step < steps.end {
        read(plan, step, memory, atoms)?;
        let mut loops = plan.loops.iter().enumerate().skip(entered);
        let Some((n, each)) = loops.find(|(_, each)| each.steps.start == step) else {
            run_group(&plan.steps[step], memory, atoms)?;
            observe(step, memory);
            step += 1;
            continue;
        };
        let count = each.count.eval(atoms.as_slice())?;
        let mut made = 0;
        let goes_on = |memory: &Memory| match each.condition {
            Some(buffer) => memory.read(buffer, 0).is_some_and(Num::truth),
            None => true,
        };
        while made < count && goes_on(memory) {
            atoms[each.iteration.0 as usize] = made;
            run_steps(plan, each.steps.clone(), n + 1, memory, atoms, observe)?;
            made += 1;
        }
        if let Some(turns) = each.turns {
            atoms[turns.0 as usize] = atom_of(&plan.graph.symbols, turns, made)?;
            memory.resize(plan, atoms)?;
        }
        step = each.steps.end;
    }
    Ok(())
}

/// Binds the symbols whose sizes are read before a step; buffers of that size then are as long as they say.
fn read(plan: &Plan<'_>, step: usize, memory: &mut Memory, atoms: &mut [i64]) -> Result<()> {
    let here = plan.readings.iter().filter(|reading| reading.before == step);
    for reading in here.clone() {
        let size = memory.read(reading.buffer, 0).map_or(-1, Num::int);
        atoms[reading.symbol.0 as usize] = atom_of(&plan.graph.symbols, reading.symbol, size)?;
    }
    if here.count() > 0 {
        memory.resize(plan, atoms)?;
    }
    Ok(())
}

/// A write that is to be done.
struct Write {
    buffer: u32,
    /// Elements that the buffer has.
    elements: i64,
    element: i64,
    value: Num,
    combine: ScatterReduction,
}

/// Executes one group.
///
/// # Errors
/// As [`interpret`].
pub fn run_group(group: &Group, memory: &mut Memory, atoms: &[i64]) -> Result<()> {
    if let Anchor::Host(step) = &group.anchor {
        return on_host(group, step, memory, atoms);
    }
    let mut writes = Vec::new();
    {
        let place = Place::new(group, memory, atoms);
        match &group.anchor {
            Anchor::Map { space } => map(place, space, &mut writes)?,
            Anchor::Reduce { rows, over, stages } => {
                reduce(place, rows, over, stages, &mut writes)?;
            }
            Anchor::Scan { rows, along, op, value, exclusive, reverse } => {
                let flags = (*exclusive, *reverse);
                scan(place, rows, *along, (*op, *value), flags, &mut writes)?;
            }
            Anchor::Contraction(c) => contraction(place, c, &mut writes)?,
            Anchor::Attention(a) => attention(place, a, &mut writes)?,
            _ => return Err(InterpretError::Malformed(group.label.clone(), "unknown anchor")),
        }
    }
    for Write { buffer, elements, element, value, combine } in writes {
        let bounds = || InterpretError::Bounds { group: group.label.clone(), buffer, element };
        let value = match combine {
            ScatterReduction::None => value,
            _ => {
                let old = memory.read(buffer, element).ok_or_else(bounds)?;
                combined(combine, old, value)
            }
        };
        memory.write(buffer, elements, element, value).ok_or_else(bounds)?;
    }
    Ok(())
}

fn on_host(group: &Group, step: &OnHost, memory: &mut Memory, atoms: &[i64]) -> Result<()> {
    let buffer = |id: &OperandId| group.operands[id.index()].buffer;
    let operands: Vec<&[u8]> = step.operands.iter().map(|id| memory.bytes(buffer(id))).collect();
    let result = step.op.evaluate(&operands, atoms);
    let result = result.map_err(|error| InterpretError::Host(group.label.clone(), error))?;
    let place = memory.bytes_mut(buffer(&step.result));
    if place.len() != result.len() {
        return Err(InterpretError::Malformed(group.label.clone(), "its result has another size"));
    }
    place.copy_from_slice(&result);
    Ok(())
}

fn combined(combine: ScatterReduction, a: Num, b: Num) -> Num {
    match (a, b) {
        (Num::F(a), b) => {
            let b = b.float();
            Num::F(match combine {
                ScatterReduction::Add => a + b,
                ScatterReduction::Mul => a * b,
                ScatterReduction::Max => {
                    if a.is_nan() || a > b {
                        a
                    } else {
                        b
                    }
                }
                ScatterReduction::Min => {
                    if a.is_nan() || a < b {
                        a
                    } else {
                        b
                    }
                }
                _ => b,
            })
        }
        (a, b) => {
            let (a, b) = (a.int(), b.int());
            Num::I(match combine {
                ScatterReduction::Add => a.wrapping_add(b),
                ScatterReduction::Mul => a.wrapping_mul(b),
                ScatterReduction::Max => a.max(b),
                ScatterReduction::Min => a.min(b),
                _ => b,
            })
        }
    }
}

impl Place<'_> {
    fn each(&self, vars: &[VarId], f: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        for_each(vars, &|v| self.dim(self.group.extent(v)), &mut |coords| {
            for (var, value) in vars.iter().zip(coords) {
                self.set(*var, *value);
            }
            f()
        })
    }

    fn store(&self, store: &Store, out: &mut Vec<Write>) -> Result<()> {
        if self.holds(&store.guard)? {
            let operand = &self.group.operands[store.operand.index()];
            out.push(Write {
                buffer: operand.buffer,
                elements: self.dim(&operand.elements)?,
                element: self.dim(&store.offset)?,
                value: self.eval(store.value)?,
                combine: store.combine,
            });
        }
        Ok(())
    }

    fn stores(&self, per_element: Option<bool>, out: &mut Vec<Write>) -> Result<()> {
        for store in &self.group.stores {
            if per_element.is_none_or(|p| p == store.per_element) {
                self.store(store, out)?;
            }
        }
        Ok(())
    }
}

fn map(place: Place<'_>, space: &[VarId], out: &mut Vec<Write>) -> Result<()> {
    place.each(space, &mut || place.stores(None, out))
}

fn reduce(
    mut place: Place<'_>,
    rows: &[VarId],
    over: &[VarId],
    stages: &[Stage],
    out: &mut Vec<Write>,
) -> Result<()> {
    let group = place.group;
    let mut all_rows = Vec::new();
    for_each(rows, &|v| place.dim(group.extent(v)), &mut |coords| {
        all_rows.push(coords.to_vec());
        Ok(())
    })?;
    for row in all_rows {
        place.set_results(Vec::new());
        for (var, value) in rows.iter().zip(&row) {
            place.set(*var, *value);
        }
        for stage in stages {
            let mut folding = Folding::new(stage.op, group[stage.value].dtype);
            place.each(over, &mut || {
                folding.add(place.eval(stage.value)?);
                Ok(())
            })?;
            place.add_result(folding.result());
        }
        place.each(over, &mut || place.stores(Some(true), out))?;
        place.stores(Some(false), out)?;
    }
    Ok(())
}

fn scan(
    mut place: Place<'_>,
    rows: &[VarId],
    along: VarId,
    (op, value): (FoldOp, ExprId),
    (exclusive, reverse): (bool, bool),
    out: &mut Vec<Write>,
) -> Result<()> {
    let group = place.group;
    let mut all_rows = Vec::new();
    for_each(rows, &|v| place.dim(group.extent(v)), &mut |coords| {
        all_rows.push(coords.to_vec());
        Ok(())
    })?;
    let count = place.dim(group.extent(along))?;
    for row in all_rows {
        for (var, value) in rows.iter().zip(&row) {
            place.set(*var, *value);
        }
        let mut running = Folding::new(op, group[value].dtype);
        for step in 0..count {
            place.set(along, if reverse { count - 1 - step } else { step });
            let before = running.result();
            running.add(place.eval(value)?);
            place.set_results(vec![if exclusive { before } else { running.result() }]);
            place.stores(None, out)?;
        }
    }
    Ok(())
}

/// What an operand is rounded to before it is multiplied.
fn operand(value: Num, math: MathType) -> f64 {
    match math {
        MathType::F16 => super::eval::cast(value, DType::F16).float(),
        MathType::Bf16 => super::eval::cast(value, DType::Bf16).float(),
        MathType::Tf32 => {
            // Ten mantissa bits, to nearest.
            let bits = (value.float() as f32).to_bits();
            f32::from_bits(bits.wrapping_add(0x1000) & !0x1fff).into()
        }
        _ => value.float(),
    }
}

/// Operand elements for all coordinates, row-major in `vars`.
fn tabulate(place: &Place<'_>, vars: &[VarId], x: ExprId, math: MathType) -> Result<Vec<f64>> {
    let mut out = Vec::new();
    place.each(vars, &mut || {
        out.push(operand(place.eval(x)?, math));
        Ok(())
    })?;
    Ok(out)
}

fn contraction(mut place: Place<'_>, c: &Contraction, out: &mut Vec<Write>) -> Result<()> {
    let group = place.group;
    let mut batches = Vec::new();
    for_each(&c.batch, &|v| place.dim(group.extent(v)), &mut |coords| {
        batches.push(coords.to_vec());
        Ok(())
    })?;
    for batch in batches {
        for (var, value) in c.batch.iter().zip(&batch) {
            place.set(*var, *value);
        }
        let left: Vec<VarId> = c.m.iter().chain(&c.k).copied().collect();
        let right: Vec<VarId> = c.n.iter().chain(&c.k).copied().collect();
        let a = tabulate(&place, &left, c.a, c.math)?;
        let b = tabulate(&place, &right, c.b, c.math)?;
        let k = place.dim(&group.volume(&c.k))?.max(0) as usize;
        let (mut rows, mut columns) = (Vec::new(), Vec::new());
        for_each(&c.m, &|v| place.dim(group.extent(v)), &mut |x| {
            rows.push(x.to_vec());
            Ok(())
        })?;
        for_each(&c.n, &|v| place.dim(group.extent(v)), &mut |x| {
            columns.push(x.to_vec());
            Ok(())
        })?;
        for (i, row) in rows.iter().enumerate() {
            for (j, column) in columns.iter().enumerate() {
                let pairs = a[i * k..(i + 1) * k].iter().zip(&b[j * k..(j + 1) * k]);
                let sum: f64 = pairs.map(|(x, y)| x * y).sum();
                let sum = match c.math {
                    MathType::I32 => Num::I((sum as i64 as i32).into()),
                    MathType::F64 => Num::F(sum),
                    _ => Num::F((sum as f32).into()),
                };
                place.set_results(vec![sum]);
                for (var, value) in c.m.iter().zip(row).chain(c.n.iter().zip(column)) {
                    place.set(*var, *value);
                }
                place.stores(None, out)?;
            }
        }
    }
    Ok(())
}

fn attention(mut place: Place<'_>, a: &Attention, out: &mut Vec<Write>) -> Result<()> {
    let group = place.group;
    let extent = |place: &Place<'_>, v: VarId| -> Result<usize> {
        Ok(place.dim(group.extent(v))?.max(0) as usize)
    };
    let (rows, cols) = (extent(&place, a.row)?, extent(&place, a.col)?);
    let (depth, width) = (extent(&place, a.qk)?, extent(&place, a.width)?);
    let mut batches = Vec::new();
    for_each(&a.batch, &|v| place.dim(group.extent(v)), &mut |coords| {
        batches.push(coords.to_vec());
        Ok(())
    })?;
    for batch in batches {
        for (var, value) in a.batch.iter().zip(&batch) {
            place.set(*var, *value);
        }
        let q = tabulate(&place, &[a.row, a.qk], a.q, a.math)?;
        let k = tabulate(&place, &[a.col, a.qk], a.k, a.math)?;
        let v = tabulate(&place, &[a.col, a.width], a.v, a.math)?;
        for row in 0..rows {
            place.set(a.row, row as i64);
            let mut scores = Vec::with_capacity(cols);
            for col in 0..cols {
                place.set(a.col, col as i64);
                let dot: f64 = (0..depth).map(|d| q[row * depth + d] * k[col * depth + d]).sum();
                place.set_results(vec![Num::F((dot as f32).into())]);
                scores.push(place.eval(a.score)?.float());
            }
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let masked = greatest == f64::NEG_INFINITY && !scores.iter().any(|s| s.is_nan());
            let weights: Vec<f64> = scores.iter().map(|s| (s - greatest).exp()).collect();
            let total: f64 = weights.iter().sum();
            for e in 0..width {
                place.set(a.width, e as i64);
                let sum: f64 = (0..cols).map(|c| weights[c] * v[c * width + e]).sum();
                let value = match (masked, a.masked_row_is_zero) {
                    (true, true) => 0.0,
                    (true, false) => f64::NAN,
                    _ => sum / total,
                };
                place.set_results(vec![Num::F(0.0), Num::F((value as f32).into())]);
                place.stores(None, out)?;
            }
        }
    }
    Ok(())
}
