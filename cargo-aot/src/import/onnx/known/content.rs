//! All elements of a known tensor.

use super::Elem;
use aot_ir::dim::{Atom, Cmp, Cond, VarId};
use aot_ir::{Constant, DType, Dim, Scope, Symbols};

/// Most elements that are listed one by one.
const MAX_LIST: i64 = 1024;
/// Most elements of a stored float tensor that are looked at.
const MAX_FLOATS: usize = 64;
/// Most elements of a stored integer tensor that are looked at (for a progression).
const MAX_INTS: usize = 1 << 16;
/// Longest list that a run-time coordinate selects from.
const MAX_CHOICES: usize = 8;

/// A known tensor.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Content {
    /// Extents.
    pub(in super::super) shape: Vec<Dim>,
    /// Elements.
    pub(in super::super) body: Body,
}

/// Elements of a known tensor.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Body {
    /// Each, in row-major order; they hold no loop variables. All extents are constant.
    List(Vec<Elem>),
    /// As an expression in which variable `i` is the coordinate along axis `i`.
    Map(Elem),
}

/// The extents, if all are constant.
pub(in super::super) fn constant_shape(shape: &[Dim]) -> Option<Vec<i64>> {
    shape.iter().map(Dim::as_const).collect()
}

/// The coordinates of an element as variables; 0 along axes of extent 1.
pub(in super::super) fn coordinates(shape: &[Dim]) -> Vec<Dim> {
    let axes = (0..).zip(shape);
    axes.map(|(i, d)| if d.is(1) { Dim::ZERO } else { Dim::var(VarId(i)) }).collect()
}

impl Content {
    /// Makes a tensor of a function from coordinates; `None` when the function gives up.
    pub(in super::super) fn make(
        shape: &[Dim],
        symbols: &Symbols,
        mut f: impl FnMut(&[Dim], &Scope<'_>) -> Option<Elem>,
    ) -> Option<Self> {
        let elements = constant_shape(shape)
            .and_then(|s| s.iter().try_fold(1i64, |n, &d| n.checked_mul(d)).map(|n| (s, n)));
        let body = match elements {
            Some((extents, n)) if n <= MAX_LIST => {
                let scope = Scope::new(symbols);
                let mut coordinates = vec![Dim::ZERO; shape.len()];
                let mut list = Vec::with_capacity(n.max(0) as usize);
                for flat in 0..n {
                    let mut rest = flat;
                    for (at, extent) in coordinates.iter_mut().zip(&extents).rev() {
                        *at = (rest % extent).into();
                        rest /= extent;
                    }
                    list.push(f(&coordinates, &scope)?);
                }
                Body::List(list)
            }
            _ => {
                let coordinates = coordinates(shape);
                Body::Map(f(&coordinates, &Scope { symbols, extents: shape })?)
            }
        };
        Some(Self { shape: shape.to_vec(), body })
    }

    /// A list of rank 1.
    pub(in super::super) fn vector(elements: Vec<Elem>) -> Self {
        Self { shape: vec![Dim::from(elements.len() as i64)], body: Body::List(elements) }
    }

    /// A tensor of rank 0.
    pub(in super::super) fn scalar(element: Elem) -> Self {
        Self { shape: Vec::new(), body: Body::List(vec![element]) }
    }

    /// The one value that all elements have, where that is plain to see.
    pub(in super::super) fn uniform(&self) -> Option<&Elem> {
        match &self.body {
            Body::List(list) => {
                let first = list.first()?;
                list.iter().all(|e| e == first).then_some(first)
            }
            Body::Map(e) => (!e.any(|a| matches!(a, Atom::Var(_)))).then_some(e),
        }
    }

    /// Whether an element mentions such an atom.
    pub(in super::super) fn any(&self, f: impl Fn(&Atom) -> bool + Copy) -> bool {
        match &self.body {
            Body::List(list) => list.iter().any(|e| e.any(f)),
            Body::Map(e) => e.any(f),
        }
    }

    /// The elements, if they are listed.
    pub(in super::super) fn list(&self) -> Option<&[Elem]> {
        match &self.body {
            Body::List(list) => Some(list),
            Body::Map(_) => None,
        }
    }

    /// The element at coordinates, which are expressions in the variables of `scope`.
    pub(in super::super) fn at(&self, coordinates: &[Dim], scope: &Scope<'_>) -> Option<Elem> {
        let list = match &self.body {
            Body::Map(e) => {
                return e.substitute(scope, &|atom| match atom {
                    Atom::Var(VarId(i)) => coordinates.get(*i as usize).cloned(),
                    _ => None,
                });
            }
            Body::List(list) => list,
        };
        let extents = constant_shape(&self.shape)?;
        let mut flat = Dim::ZERO;
        for (at, &extent) in coordinates.iter().zip(&extents) {
            flat = flat.scaled(extent);
            if extent != 1 {
                flat = flat + at;
            }
        }
        if let Some(flat) = flat.as_const() {
            return list.get(usize::try_from(flat).ok()?).cloned();
        }
        if let Some(e) = self.uniform() {
            return Some(e.clone());
        }
        if let Some(progression) = self.progression() {
            return Self { shape: self.shape.clone(), body: Body::Map(progression) }
                .at(coordinates, scope);
        }
        if list.len() > MAX_CHOICES {
            return None;
        }
        let (last, rest) = list.split_last()?;
        let mut out = last.clone();
        for (i, e) in rest.iter().enumerate().rev() {
            let here = Elem::Bool(scope.cond(Cmp::Eq, &flat, &Dim::from(i as i64)));
            out = Elem::select(&here, e, &out, scope)?;
        }
        Some(out)
    }

    /// A list of integers as a linear function of the coordinates, if it is one.
    fn progression(&self) -> Option<Elem> {
        let list = self.list()?;
        let extents = constant_shape(&self.shape)?;
        let values = list.iter().map(|e| e.as_int()?.as_const()).collect::<Option<Vec<i64>>>()?;
        let first = *values.first()?;
        let mut steps = vec![0; extents.len()];
        let mut stride = 1usize;
        for (step, &extent) in steps.iter_mut().zip(&extents).rev() {
            if extent > 1 {
                *step = values.get(stride)?.checked_sub(first)?;
            }
            stride = stride.checked_mul(usize::try_from(extent).ok()?)?;
        }
        for (flat, &value) in values.iter().enumerate() {
            let mut rest = flat as i64;
            let mut expected = first;
            for (step, extent) in steps.iter().zip(&extents).rev() {
                expected = expected.checked_add(step.checked_mul(rest % extent)?)?;
                rest /= extent;
            }
            if expected != value {
                return None;
            }
        }
        let linear = steps.iter().enumerate().fold(Dim::from(first), |sum, (axis, &step)| {
            sum + Dim::var(VarId(axis as u32)).scaled(step)
        });
        Some(Elem::Int(linear))
    }

    /// What a stored tensor holds, where it is small or a progression.
    pub(in super::super) fn of_constant(constant: &Constant) -> Option<Self> {
        let elements: usize = constant.shape.iter().product();
        let shape: Vec<Dim> = constant.shape.iter().map(|&d| Dim::from(d as i64)).collect();
        let bytes: &[u8] = &constant.bytes;
        let ints = |width: usize, f: fn(&[u8]) -> i64| -> Vec<Elem> {
            bytes.chunks_exact(width).map(|c| Elem::Int(f(c).into())).collect()
        };
        let floats = |width: usize, f: fn(&[u8]) -> f64| -> Vec<Elem> {
            bytes.chunks_exact(width).map(|c| Elem::Float(f(c))).collect()
        };
        let cap = if constant.dtype.is_float() { MAX_FLOATS } else { MAX_INTS };
        if elements > cap {
            return None;
        }
        let list = match constant.dtype {
            DType::Bool => bytes.iter().map(|&b| Elem::truth(b != 0)).collect(),
            DType::I8 => ints(1, |c| i64::from(c[0] as i8)),
            DType::U8 => ints(1, |c| i64::from(c[0])),
            DType::I16 => ints(2, |c| i64::from(i16::from_le_bytes([c[0], c[1]]))),
            DType::U16 => ints(2, |c| i64::from(u16::from_le_bytes([c[0], c[1]]))),
            DType::I32 => ints(4, |c| i64::from(i32::from_le_bytes([c[0], c[1], c[2], c[3]]))),
            DType::U32 => ints(4, |c| i64::from(u32::from_le_bytes([c[0], c[1], c[2], c[3]]))),
            DType::I64 => {
                ints(8, |c| i64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]))
            }
            DType::F16 => floats(2, |c| half::f16::from_le_bytes([c[0], c[1]]).to_f64()),
            DType::Bf16 => floats(2, |c| half::bf16::from_le_bytes([c[0], c[1]]).to_f64()),
            DType::F32 => floats(4, |c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))),
            DType::F64 => {
                floats(8, |c| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]))
            }
            _ => return None,
        };
        let listed = Self { shape, body: Body::List(list) };
        if elements as i64 <= MAX_LIST {
            return Some(listed);
        }
        let body = match listed.uniform() {
            Some(e) => e.clone(),
            None => listed.progression()?,
        };
        Some(Self { shape: listed.shape, body: Body::Map(body) })
    }

    /// Whether a coordinate lies in `0..extent`, as a condition.
    pub(in super::super) fn inside(at: &Dim, extent: &Dim, scope: &Scope<'_>) -> Elem {
        let lower = scope.cond(Cmp::Le, &Dim::ZERO, at);
        let upper = scope.cond(Cmp::Lt, at, extent);
        let cond: Cond = lower.and(upper);
        match scope.decide_cond(&cond) {
            Some(b) => Elem::truth(b),
            None => Elem::Bool(cond),
        }
    }
}
