//! Normalisation that is written out.

use super::matching::{binary, float, reduction, same_extents, unary};
use super::rewriter::{Candidate, Rewritten, rewrite};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{Graph, GraphError, Op, Scalar, ValueId};

/// Recognises `(x - mean) / sqrt(variance + epsilon)` and `x / sqrt(mean(x²) + epsilon)`, with a division
/// or a reciprocal, and the variance as a mean of squares or as `mean(x²) - mean(x)²`.
pub(super) fn run(source: &Graph) -> Result<Rewritten, GraphError> {
    rewrite(source, &mut |g, c| {
        let [a, b] = *c.inputs else { return Ok(None) };
        let found = match c.op {
            Op::Binary(BinaryOp::Div) => unary(g, b, UnaryOp::Sqrt).and_then(|r| norm(g, a, r)),
            Op::Binary(BinaryOp::Mul) => [(a, b), (b, a)].into_iter().find_map(|(x, inverse)| {
                let root = unary(g, unary(g, inverse, UnaryOp::Reciprocal)?, UnaryOp::Sqrt)?;
                norm(g, x, root)
            }),
            Op::Binary(BinaryOp::Add) => return shifted(g, c),
            _ => None,
        };
        match found {
            Some(norm) => norm.add(g, c.name).map(Some),
            None => Ok(None),
        }
    })
}

/// What was recognised.
#[derive(Debug, PartialEq)]
struct Norm {
    x: ValueId,
    axes: Vec<usize>,
    epsilon: f64,
    centered: bool,
}

impl Norm {
    fn add(&self, g: &mut Graph, name: &str) -> Result<ValueId, GraphError> {
        let op = Op::Normalize {
            axes: self.axes.clone(),
            epsilon: Scalar::Float(self.epsilon),
            centered: self.centered,
        };
        g.add1(op, &[self.x], name)
    }
}

/// A value minus its mean: the value and the axes.
fn centered(g: &Graph, value: ValueId) -> Option<(ValueId, Vec<usize>)> {
    let (x, mean) = binary(g, value, BinaryOp::Sub)?;
    let (of, axes) = reduction(g, mean, ReduceOp::Mean)?;
    (of == x).then_some((x, axes))
}

/// The operand of a square.
fn squared(g: &Graph, value: ValueId) -> Option<ValueId> {
    let (a, b) = binary(g, value, BinaryOp::Mul)?;
    (a == b).then_some(a)
}

/// Takes `variance + epsilon` apart.
fn with_epsilon(g: &Graph, value: ValueId) -> Option<(ValueId, f64)> {
    let (variance, epsilon) = super::matching::with_scalar(g, value, BinaryOp::Add)?;
    same_extents(g, variance, value).then_some((variance, epsilon))
}

/// `value / sqrt(variance + epsilon)` as a normalisation.
fn norm(g: &Graph, value: ValueId, sum: ValueId) -> Option<Norm> {
    let (variance, epsilon) = with_epsilon(g, sum)?;
    if let Some((squares, axes)) = reduction(g, variance, ReduceOp::Mean) {
        let base = squared(g, squares)?;
        let center = centered(g, base);
        if base == value {
            return Some(match center {
                Some((x, over)) if over == axes => Norm { x, axes, epsilon, centered: true },
                _ => Norm { x: value, axes, epsilon, centered: false },
            });
        }
        // The mean may have been subtracted twice, by two equal nodes that were not merged.
        let (x, over) = center?;
        return (centered(g, value)? == (x, over.clone()) && over == axes).then_some(Norm {
            x,
            axes,
            epsilon,
            centered: true,
        });
    }
    // mean(x²) - mean(x)², perhaps with negative results cut off.
    let variance = unary(g, variance, UnaryOp::Relu).unwrap_or(variance);
    let (x, axes) = difference_of_means(g, variance)?;
    (centered(g, value)? == (x, axes.clone())).then_some(Norm { x, axes, epsilon, centered: true })
}

fn difference_of_means(g: &Graph, variance: ValueId) -> Option<(ValueId, Vec<usize>)> {
    let (squares, square) = binary(g, variance, BinaryOp::Sub)?;
    let (of, axes) = reduction(g, squares, ReduceOp::Mean)?;
    let x = squared(g, of)?;
    let mean = reduction(g, squared(g, square)?, ReduceOp::Mean)?;
    (mean == (x, axes.clone())).then_some((x, axes))
}

/// `x * s + (shift - mean * s)` with `s = weight / sqrt(variance + epsilon)`, as Keras writes it.
fn shifted(g: &mut Graph, c: Candidate<'_>) -> Result<Option<ValueId>, GraphError> {
    let [a, b] = *c.inputs else { return Ok(None) };
    let found = [(a, b), (b, a)].into_iter().find_map(|(product, rest)| {
        let (shift, shifted_mean) = binary(g, rest, BinaryOp::Sub)?;
        let (p, q) = binary(g, product, BinaryOp::Mul)?;
        [(p, q), (q, p)].into_iter().find_map(|(x, factor)| {
            let (m, f) = binary(g, shifted_mean, BinaryOp::Mul)?;
            let mean = if f == factor { m } else { (m == factor).then_some(f)? };
            let (of, axes) = reduction(g, mean, ReduceOp::Mean)?;
            if of != x {
                return None;
            }
            let scaled = binary(g, factor, BinaryOp::Mul);
            let choices = match scaled {
                Some((i, w)) => vec![(i, Some(w)), (w, Some(i))],
                None => vec![(factor, None)],
            };
            choices.into_iter().find_map(|(inverse, weight)| {
                let sum = unary(g, unary(g, inverse, UnaryOp::Reciprocal)?, UnaryOp::Sqrt)?;
                let (variance, epsilon) = with_epsilon(g, sum)?;
                let (squares, over) = reduction(g, variance, ReduceOp::Mean)?;
                let (center, center_axes) = centered(g, squared(g, squares)?)?;
                let fits = center == x && center_axes == axes && over == axes;
                let norm = Norm { x, axes: axes.clone(), epsilon, centered: true };
                fits.then_some((norm, weight, shift))
            })
        })
    });
    let Some((norm, weight, shift)) = found else { return Ok(None) };
    let mut value = norm.add(g, c.name)?;
    if let Some(weight) = weight {
        value = g.add1(Op::Binary(BinaryOp::Mul), &[value, weight], c.name)?;
    }
    if float(g, shift) != Some(0.0) {
        value = g.add1(Op::Binary(BinaryOp::Add), &[value, shift], c.name)?;
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{constant, count, equal, input, weights};
    use super::super::{Options, run};
    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Form {
        Divide,
        Reciprocal,
        Power,
        DifferenceOfMeans,
        RootMeanSquare,
        Keras,
    }

    fn written_out(form: Form) -> Graph {
        let mut g = Graph::new("test");
        let x = input(&mut g, &[2, 3, 8]);
        let (weight, shift) = (weights(&mut g, &[8]), weights(&mut g, &[8]));
        let mean_op = Op::Reduce { op: ReduceOp::Mean, axes: vec![2], keep_dims: true };
        let scalar = |g: &mut Graph, v: f32| constant(g, &[], &[v]);
        let (two, half, eps) = (scalar(&mut g, 2.0), scalar(&mut g, 0.5), scalar(&mut g, 1e-3));
        let (one, inverse_root) = (scalar(&mut g, 1.0), scalar(&mut g, -0.5));
        let add = |g: &mut Graph, op, a, b| g.add1(Op::Binary(op), &[a, b], "n").unwrap();
        let mean = g.add1(mean_op.clone(), &[x], "mean").unwrap();
        let c = match form {
            Form::RootMeanSquare => x,
            _ => add(&mut g, BinaryOp::Sub, x, mean),
        };
        let variance = match form {
            Form::DifferenceOfMeans => {
                let xx = add(&mut g, BinaryOp::Mul, x, x);
                let xx = g.add1(mean_op, &[xx], "mean").unwrap();
                let mm = add(&mut g, BinaryOp::Mul, mean, mean);
                add(&mut g, BinaryOp::Sub, xx, mm)
            }
            _ => {
                let square = add(&mut g, BinaryOp::Pow, c, two);
                g.add1(mean_op, &[square], "mean").unwrap()
            }
        };
        let sum = add(&mut g, BinaryOp::Add, variance, eps);
        let y = match form {
            Form::Power => {
                let inverse = add(&mut g, BinaryOp::Pow, sum, inverse_root);
                add(&mut g, BinaryOp::Mul, inverse, c)
            }
            Form::Reciprocal => {
                let root = add(&mut g, BinaryOp::Pow, sum, half);
                let inverse = add(&mut g, BinaryOp::Div, one, root);
                add(&mut g, BinaryOp::Mul, c, inverse)
            }
            Form::Keras => {
                let inverse = add(&mut g, BinaryOp::Pow, sum, inverse_root);
                let s = add(&mut g, BinaryOp::Mul, inverse, weight);
                let xs = add(&mut g, BinaryOp::Mul, x, s);
                let ms = add(&mut g, BinaryOp::Mul, mean, s);
                let rest = add(&mut g, BinaryOp::Sub, shift, ms);
                add(&mut g, BinaryOp::Add, xs, rest)
            }
            _ => {
                let root = g.add1(Op::Unary(UnaryOp::Sqrt), &[sum], "sqrt").unwrap();
                add(&mut g, BinaryOp::Div, c, root)
            }
        };
        let y = add(&mut g, BinaryOp::Mul, y, weight);
        let y = add(&mut g, BinaryOp::Add, y, shift);
        g.outputs.push(("y".into(), y));
        g
    }

    #[test]
    fn exporters_variants_are_recognised() {
        for form in [
            Form::Divide,
            Form::Reciprocal,
            Form::Power,
            Form::DifferenceOfMeans,
            Form::RootMeanSquare,
            Form::Keras,
        ] {
            let g = written_out(form);
            let after = run(&g, &Options::default()).unwrap();
            let centered = !matches!(form, Form::RootMeanSquare);
            let epsilon = f64::from(1e-3f32);
            let norm = Norm { x: after.inputs[0], axes: vec![2], epsilon, centered };
            let op = Op::Normalize {
                axes: norm.axes,
                epsilon: Scalar::Float(norm.epsilon),
                centered: norm.centered,
            };
            assert_eq!(count(&after, |found| *found == op), 1, "{form:?}");
            assert_eq!(count(&after, |op| matches!(op, Op::Reduce { .. })), 0, "{form:?}");
            equal(&g, &after, &[]);
        }
    }
}
