//! Operators of sequences and optionals. They make no nodes: what is where is decided here.

use super::builder::{OpResult, Tensor, unsupported, wrong};
use super::call::{Call, depends};
use super::item::Item;
use aot_ir::dim::Cmp;
use aot_ir::{DType, Dim};

/// Most parts that a tensor is split into.
const MAX_PARTS: i64 = 4096;

/// Operators that take or give what is no tensor; [`apply`] imports them.
pub(super) const STRUCTURAL: &[&str] = &[
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceAt",
    "SequenceInsert",
    "SequenceErase",
    "SequenceLength",
    "SplitToSequence",
    "ConcatFromSequence",
    "Optional",
    "OptionalHasElement",
    "OptionalGetElement",
    "Identity",
];

/// Whether an operator takes or gives what is no tensor.
pub(super) fn is_structural(operator: &str) -> bool {
    STRUCTURAL.contains(&operator)
}

/// The result of such an operator. Inputs of `c` that are tensors are the same as `items`.
pub(super) fn apply(c: &mut Call<'_>, items: &[Option<Item>]) -> OpResult<Item> {
    let item = |n: usize| items.get(n).and_then(Option::as_ref);
    let given = |n: usize| match item(n) {
        Some(item) => Ok(item),
        None => wrong(format!("input {n} is missing")),
    };
    let sequence = |n: usize| given(n)?.sequence(&format!("input {n}"));
    let tensor = |n: usize| given(n)?.tensor(&format!("input {n}"));
    match c.node.op_type.as_str() {
        "SequenceConstruct" => {
            let elements = (0..items.len()).map(tensor).collect::<OpResult<Vec<_>>>()?;
            of_one_type(c, elements)
        }
        "SequenceEmpty" => Ok(Item::Sequence(Vec::new())),
        "SequenceLength" => {
            let length = sequence(0)?.len() as f64;
            Ok(Item::Tensor(c.scalar(length, DType::I64)))
        }
        "SequenceAt" => {
            let position = tensor(1)?;
            Ok(Item::Tensor(at(c, sequence(0)?, position)?))
        }
        "SequenceInsert" => {
            let mut elements = sequence(0)?.to_vec();
            let place = position(c, 2, elements.len(), elements.len())?;
            elements.insert(place, tensor(1)?);
            of_one_type(c, elements)
        }
        "SequenceErase" => {
            let mut elements = sequence(0)?.to_vec();
            let Some(last) = elements.len().checked_sub(1) else {
                return wrong("the sequence is empty");
            };
            let place = position(c, 1, elements.len(), last)?;
            elements.remove(place);
            Ok(Item::Sequence(elements))
        }
        "SplitToSequence" => Ok(Item::Sequence(split(c)?)),
        "ConcatFromSequence" => Ok(Item::Tensor(join(c, sequence(0)?)?)),
        "OptionalHasElement" => {
            let there = item(0).is_some_and(|item| !matches!(item, Item::Absent));
            Ok(Item::Tensor(c.scalar(f64::from(u8::from(there)), DType::Bool)))
        }
        "OptionalGetElement" => match given(0)? {
            Item::Absent => wrong("the optional has no element"),
            item => Ok(item.clone()),
        },
        "Optional" => Ok(item(0).cloned().unwrap_or(Item::Absent)),
        _ => given(0).cloned(),
    }
}

/// A sequence, whose tensors have to have one type.
fn of_one_type(c: &Call<'_>, elements: Vec<Tensor>) -> OpResult<Item> {
    let mut types = elements.iter().map(|&t| c.dtype(t));
    let first = types.next();
    match types.find(|&t| Some(t) != first) {
        Some(other) => wrong(format!("a sequence of tensors of several types, {other} among them")),
        None => Ok(Item::Sequence(elements)),
    }
}

/// The position that input `n` gives, from the end of `length` elements when negative; the greatest one
/// when there is no input.
fn position(c: &mut Call<'_>, n: usize, length: usize, greatest: usize) -> OpResult<usize> {
    let place = match c.input_ints(n, "a position in a sequence")?.as_deref() {
        None => Some(greatest),
        Some(&[i]) if i < 0 => usize::try_from(i.saturating_add(length as i64)).ok(),
        Some(&[i]) => usize::try_from(i).ok(),
        Some(_) => return wrong("the position has to be one number"),
    };
    match place {
        Some(place) if place <= greatest => Ok(place),
        _ => wrong(format!("the position is outside a sequence of {length}")),
    }
}

/// The element at a position, which may be data where all elements have one shape.
fn at(c: &mut Call<'_>, elements: &[Tensor], place: Tensor) -> OpResult {
    if let Some([place]) = c.ints(place).as_deref()
        && let Some(i) = place.as_const()
    {
        let wrapped = if i < 0 { i.saturating_add(elements.len() as i64) } else { i };
        let found = usize::try_from(wrapped).ok().and_then(|i| elements.get(i));
        return match found {
            Some(&t) => Ok(t),
            None => wrong(format!("position {i} of {} elements", elements.len())),
        };
    }
    let Some(&first) = elements.first() else { return wrong("the sequence is empty") };
    let same = elements.iter().all(|&t| c.shape(t) == c.shape(first));
    if !same {
        return depends("a position among tensors of different shapes");
    }
    let stacked = stack(c, elements, 0)?;
    let place = c.reshape(place, &[])?;
    c.gather(stacked, place, 0)
}

fn stack(c: &mut Call<'_>, elements: &[Tensor], axis: usize) -> OpResult {
    let mut parts = Vec::with_capacity(elements.len());
    for &t in elements {
        parts.push(c.unsqueeze(t, &[axis])?);
    }
    c.concat(&parts, axis)
}

fn join(c: &mut Call<'_>, elements: &[Tensor]) -> OpResult {
    let Some(&first) = elements.first() else { return wrong("the sequence is empty") };
    let Some(axis) = c.int_opt("axis") else { return wrong("the axis is missing") };
    if c.flag("new_axis", false) {
        let axis = c.axis_of(axis, c.rank(first) + 1)?;
        return stack(c, elements, axis);
    }
    let axis = c.axis_of(axis, c.rank(first))?;
    c.concat(elements, axis)
}

fn split(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(x, 0)?;
    let extent = c.shape(x)[axis].clone();
    let scalar = c.opt(1).is_none_or(|t| c.rank(t) == 0);
    let sizes = match c.input_dims(1, "the sizes of SplitToSequence")? {
        Some(sizes) if !scalar => sizes,
        one => {
            let size = one.and_then(|s| s.into_iter().next()).unwrap_or(Dim::ONE);
            if c.scope().decide(Cmp::Le, &size, &Dim::ZERO) == Some(true) {
                return wrong("the size of a part is not positive");
            }
            let count = c.scope().ceil_div(&extent, &size);
            let Some(count) = count.as_const().filter(|n| (0..=MAX_PARTS).contains(n)) else {
                return unsupported(
                    "the number of parts of SplitToSequence varies or is too large; fix that dim",
                );
            };
            let mut sizes = vec![size.clone(); usize::try_from(count).unwrap_or(0)];
            if let Some(last) = sizes.last_mut() {
                *last = &extent - &size.scaled(count - 1);
            }
            sizes
        }
    };
    let parts = c.split(x, axis, &sizes)?;
    if c.opt(1).is_some() || c.flag("keepdims", true) {
        return Ok(parts);
    }
    parts.into_iter().map(|t| c.squeeze(t, &[axis])).collect()
}
