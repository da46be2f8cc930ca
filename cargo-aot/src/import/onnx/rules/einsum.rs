//! Einsum as products, sums and transposes.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::shape::product;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[onnx("Einsum", |c| {
    let equation = c.text("equation", "");
    let operands = c.all()?;
    Ok(vec![einsum(c, &equation, &operands)?])
})];

/// A letter, or the n-th axis from the end of `...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// A tensor whose axes have different labels.
#[derive(Clone)]
struct Term {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// Labels of a subscript; `ellipsis` is the number of axes that `...` stands for.
fn labels(text: &str, ellipsis: usize) -> OpResult<Vec<Label>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            out.extend((0..ellipsis).rev().map(Label::Ellipsis));
            rest = after;
        } else if c.is_ascii_alphabetic() {
            out.push(Label::Letter(c));
            rest = &rest[1..];
        } else {
            return wrong(format!("the subscripts `{text}` are not understood"));
        }
    }
    Ok(out)
}

fn einsum(c: &mut Call<'_>, equation: &str, operands: &[Tensor]) -> OpResult {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let inputs: Vec<&str> = left.split(',').collect();
    if inputs.len() != operands.len() {
        return wrong(format!("equation `{equation}` is for {} operands", inputs.len()));
    }
    let mut terms = Vec::new();
    let mut widest = 0;
    for (text, &tensor) in inputs.iter().zip(operands) {
        let letters = text.chars().filter(char::is_ascii_alphabetic).count();
        let Some(ellipsis) = c.rank(tensor).checked_sub(letters) else {
            return wrong(format!("subscripts `{text}` for rank {}", c.rank(tensor)));
        };
        let labels = labels(text, ellipsis)?;
        if labels.len() != c.rank(tensor) {
            return wrong(format!("subscripts `{text}` for rank {}", c.rank(tensor)));
        }
        widest = widest.max(if text.contains("...") { ellipsis } else { 0 });
        terms.push(diagonal(c, Term { tensor, labels })?);
    }
    let out = match right {
        Some(right) => labels(right, widest)?,
        None => implicit(&terms),
    };
    let mut unique = out.clone();
    unique.sort();
    unique.dedup();
    if unique.len() != out.len() {
        return wrong(format!("the result of `{equation}` has a subscript twice"));
    }
    let mut terms = terms.into_iter();
    let Some(mut total) = terms.next() else { return wrong("no operands") };
    let rest: Vec<Term> = terms.collect();
    for (i, next) in rest.iter().enumerate() {
        let later: Vec<Label> =
            rest[i + 1..].iter().flat_map(|t| &t.labels).chain(&out).copied().collect();
        total = contract(c, total, next.clone(), &later)?;
    }
    total = sum_out(c, total, &out)?;
    arrange(c, &total, &out)
}

/// Without `->`: the ellipsis, then the letters that occur once, in alphabetical order.
fn implicit(terms: &[Term]) -> Vec<Label> {
    let mut all: Vec<Label> = terms.iter().flat_map(|t| t.labels.clone()).collect();
    all.sort();
    let once = |l: &Label| match l {
        Label::Ellipsis(_) => true,
        Label::Letter(_) => all.iter().filter(|m| *m == l).count() == 1,
    };
    let mut out: Vec<Label> = all.iter().copied().filter(once).collect();
    out.dedup();
    let ellipsis = out.iter().filter(|l| matches!(l, Label::Ellipsis(_))).count();
    out[..ellipsis].reverse();
    out
}

/// Takes the diagonal along axes of one label.
fn diagonal(c: &mut Call<'_>, mut term: Term) -> OpResult<Term> {
    loop {
        let pair = (0..term.labels.len()).find_map(|i| {
            let j = i + 1 + term.labels[i + 1..].iter().position(|l| *l == term.labels[i])?;
            Some((i, j))
        });
        let Some((i, j)) = pair else { return Ok(term) };
        let shape = c.shape(term.tensor).to_vec();
        if !c.scope().proves_eq(&shape[i], &shape[j]) {
            return unsupported("a diagonal of axes that may differ");
        }
        let row = super::generate::coordinates(c, &shape, i, DType::I64)?;
        let column = super::generate::coordinates(c, &shape, j, DType::I64)?;
        let here = c.binary(BinaryOp::Eq, row, column)?;
        let zero = c.scalar_like(0.0, term.tensor);
        let masked = c.select(here, term.tensor, zero)?;
        term.tensor = c.reduce(ReduceOp::Sum, masked, &[j], false)?;
        term.labels.remove(j);
    }
}

/// Sums over the axes that `keep` lacks.
fn sum_out(c: &mut Call<'_>, term: Term, keep: &[Label]) -> OpResult<Term> {
    let gone: Vec<usize> =
        (0..term.labels.len()).filter(|&i| !keep.contains(&term.labels[i])).collect();
    let tensor = c.reduce(ReduceOp::Sum, term.tensor, &gone, false)?;
    let labels = term.labels.into_iter().filter(|l| keep.contains(l)).collect();
    Ok(Term { tensor, labels })
}

/// The term's axes in the order of `labels`; those it lacks have extent 1.
fn arrange(c: &mut Call<'_>, term: &Term, labels: &[Label]) -> OpResult {
    let perm: Vec<usize> =
        labels.iter().filter_map(|l| term.labels.iter().position(|m| m == l)).collect();
    let x = c.transpose(term.tensor, &perm)?;
    let missing: Vec<usize> =
        (0..labels.len()).filter(|&i| !term.labels.contains(&labels[i])).collect();
    c.unsqueeze(x, &missing)
}

/// The product of two terms, summed over the labels that nothing later needs.
fn contract(c: &mut Call<'_>, a: Term, b: Term, later: &[Label]) -> OpResult<Term> {
    let needed =
        |other: &Term| -> Vec<Label> { later.iter().chain(&other.labels).copied().collect() };
    let (a, b) = (sum_out(c, a.clone(), &needed(&b))?, sum_out(c, b, &needed(&a))?);
    let shared = |l: &&Label| b.labels.contains(l);
    let batch: Vec<Label> =
        a.labels.iter().filter(shared).filter(|l| later.contains(l)).copied().collect();
    let inner: Vec<Label> =
        a.labels.iter().filter(shared).filter(|l| !later.contains(l)).copied().collect();
    let only = |x: &Term, y: &Term| -> Vec<Label> {
        x.labels.iter().filter(|l| !y.labels.contains(l)).copied().collect()
    };
    let (rows, columns) = (only(&a, &b), only(&b, &a));
    let mut out = batch.clone();
    out.extend(rows.iter().chain(&columns));
    if inner.is_empty() {
        let (x, y) = (arrange(c, &a, &out)?, arrange(c, &b, &out)?);
        return Ok(Term { tensor: c.product(x, y)?, labels: out });
    }
    let extents = |c: &Call<'_>, term: &Term, of: &[Label]| -> Vec<Dim> {
        let at = |l: &Label| term.labels.iter().position(|m| m == l);
        of.iter().filter_map(at).map(|i| c.shape(term.tensor)[i].clone()).collect()
    };
    let (m, n) = (extents(c, &a, &rows), extents(c, &b, &columns));
    // [batch.., rows, inner] · [batch.., inner, columns]
    let matrix = |c: &mut Call<'_>, term: &Term, groups: [&[Label]; 2]| -> OpResult {
        let order: Vec<Label> = batch.iter().chain(groups[0]).chain(groups[1]).copied().collect();
        let x = arrange(c, term, &order)?;
        let mut shape = extents(c, term, &batch);
        shape.extend(groups.map(|g| product(&extents(c, term, g))));
        c.reshape(x, &shape)
    };
    let x = matrix(c, &a, [&rows, &inner])?;
    let y = matrix(c, &b, [&inner, &columns])?;
    let z = c.op(Op::MatMul, &[x, y])?;
    let mut shape = c.shape(z)[..batch.len()].to_vec();
    shape.extend(m.into_iter().chain(n));
    Ok(Term { tensor: c.reshape(z, &shape)?, labels: out })
}
