//! Known elements as nodes, where something reads them as data.

use super::super::known::{Body, Content, Elem};
use super::tensors::{Builder, OpResult, wrong};
use aot_ir::dim::{Atom, Cmp, Cond};
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim, Op, Scalar, Scope, ValueId};

/// What the elements that are being emitted look like.
struct Target {
    dtype: DType,
    shape: Vec<Dim>,
}

impl Builder {
    /// A value of the graph with these elements.
    pub(super) fn emit_content(&mut self, content: &Content, dtype: DType) -> OpResult<ValueId> {
        let shape = content.shape.clone();
        match &content.body {
            Body::List(list) => match literal(list, dtype) {
                Some(bytes) => {
                    let extents = shape.iter().filter_map(Dim::as_const).map(|d| d as usize);
                    self.add_constant(dtype, extents.collect(), bytes)
                }
                None => self.emit_list(list, &shape, dtype),
            },
            Body::Map(e) => {
                if let Some(value) = constant_scalar(e) {
                    return self.add(Op::Fill { shape, value, dtype }, &[]);
                }
                let target = Target { dtype, shape };
                let value = self.emit_elem(e, &target)?;
                self.emit_expand(value, &target.shape)
            }
        }
    }

    fn emit_list(&mut self, list: &[Elem], shape: &[Dim], dtype: DType) -> OpResult<ValueId> {
        let ints: Option<Vec<Dim>> = list.iter().map(|e| e.as_int().cloned()).collect();
        let value = match ints {
            Some(dims) => {
                let scalar = shape.is_empty();
                let value = self.add(Op::Dims { dims, scalar }, &[])?;
                self.emit_cast(value, dtype)?
            }
            None => {
                let target = Target { dtype, shape: vec![Dim::ONE] };
                let mut parts = Vec::with_capacity(list.len());
                for e in list {
                    let part = self.emit_elem(e, &target)?;
                    parts.push(self.emit_expand(part, &target.shape)?);
                }
                match parts.as_slice() {
                    [one] => *one,
                    _ => self.add(Op::Concat { axis: 0 }, &parts)?,
                }
            }
        };
        if self.shape_of(value) == shape {
            return Ok(value);
        }
        self.add(Op::Reshape { shape: shape.to_vec() }, &[value])
    }

    fn emit_expand(&mut self, value: ValueId, shape: &[Dim]) -> OpResult<ValueId> {
        if self.shape_of(value) == shape {
            return Ok(value);
        }
        self.add(Op::Expand { shape: shape.to_vec() }, &[value])
    }

    fn emit_cast(&mut self, value: ValueId, dtype: DType) -> OpResult<ValueId> {
        if self.dtype_of(value) == dtype {
            return Ok(value);
        }
        self.add(Op::Cast(dtype), &[value])
    }

    /// An element's value over the target's coordinates; broadcasts to the target's shape.
    fn emit_elem(&mut self, e: &Elem, target: &Target) -> OpResult<ValueId> {
        match e {
            Elem::Int(d) => {
                let value = self.emit_dim(d, target)?;
                self.emit_cast(value, target.dtype)
            }
            Elem::Float(v) => {
                let value = Scalar::Float(*v);
                self.add(Op::Fill { shape: Vec::new(), value, dtype: target.dtype }, &[])
            }
            Elem::Ratio(a, b) => {
                let (a, b) = (self.emit_dim(a, target)?, self.emit_dim(b, target)?);
                let (a, b) = (self.emit_cast(a, target.dtype)?, self.emit_cast(b, target.dtype)?);
                self.add(Op::Binary(BinaryOp::Div), &[a, b])
            }
            Elem::Bool(cond) => self.emit_cond(cond, target),
        }
    }

    fn emit_cond(&mut self, cond: &Cond, target: &Target) -> OpResult<ValueId> {
        match cond {
            Cond::Cmp(cmp, a, b) => {
                let (a, b) = (self.emit_dim(a, target)?, self.emit_dim(b, target)?);
                let op = match cmp {
                    Cmp::Eq => BinaryOp::Eq,
                    Cmp::Ne => BinaryOp::Ne,
                    Cmp::Lt => BinaryOp::Lt,
                    Cmp::Le => BinaryOp::Le,
                };
                self.add(Op::Binary(op), &[a, b])
            }
            Cond::All(parts) => {
                let mut all: Option<ValueId> = None;
                for part in parts {
                    let next = self.emit_cond(part, target)?;
                    all = Some(match all {
                        None => next,
                        Some(all) => self.add(Op::Binary(BinaryOp::And), &[all, next])?,
                    });
                }
                match all {
                    Some(all) => Ok(all),
                    None => {
                        let value = Scalar::Bool(true);
                        self.add(Op::Fill { shape: Vec::new(), value, dtype: DType::Bool }, &[])
                    }
                }
            }
        }
    }

    /// An expression as `I64`.
    fn emit_dim(&mut self, d: &Dim, target: &Target) -> OpResult<ValueId> {
        if d.is_uniform() {
            return match d.as_const() {
                Some(v) => {
                    let value = Scalar::Int(v);
                    self.add(Op::Fill { shape: Vec::new(), value, dtype: DType::I64 }, &[])
                }
                None => self.add(Op::Dims { dims: vec![d.clone()], scalar: true }, &[]),
            };
        }
        let (uniform, varying): (Vec<_>, Vec<_>) =
            d.terms().iter().cloned().partition(|t| Dim::from_terms(0, [t.clone()]).is_uniform());
        let mut sum: Option<ValueId> = None;
        for term in varying {
            let (uniform, varying): (Vec<Atom>, Vec<Atom>) =
                term.factors.into_iter().partition(|f| Dim::atom(f.clone()).is_uniform());
            let coefficient = uniform
                .into_iter()
                .fold(Dim::from(term.coefficient), |product, f| product * Dim::atom(f));
            let mut product =
                if coefficient.is(1) { None } else { Some(self.emit_dim(&coefficient, target)?) };
            for factor in varying {
                let factor = self.emit_atom(&factor, target)?;
                product = Some(match product {
                    None => factor,
                    Some(p) => self.add(Op::Binary(BinaryOp::Mul), &[factor, p])?,
                });
            }
            if let Some(product) = product {
                sum = Some(match sum {
                    None => product,
                    Some(sum) => self.add(Op::Binary(BinaryOp::Add), &[sum, product])?,
                });
            }
        }
        let rest = Dim::from_terms(d.constant_part(), uniform);
        match sum {
            Some(sum) if rest.is(0) => Ok(sum),
            Some(sum) => {
                let rest = self.emit_dim(&rest, target)?;
                self.add(Op::Binary(BinaryOp::Add), &[sum, rest])
            }
            None => self.emit_dim(&rest, target),
        }
    }

    fn emit_atom(&mut self, atom: &Atom, target: &Target) -> OpResult<ValueId> {
        match atom {
            Atom::Var(v) => {
                let axis = v.0 as usize;
                let Some(extent) = target.shape.get(axis) else {
                    return wrong("an index expression over an axis that does not exist");
                };
                // Only this axis: the rest broadcasts.
                let mut shape = vec![Dim::ONE; target.shape.len()];
                shape[axis] = extent.clone();
                self.add(Op::Iota { shape, axis, dtype: DType::I64 }, &[])
            }
            Atom::Sym(_) | Atom::Value(_) => self.emit_dim(&Dim::atom(atom.clone()), target),
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let op = if matches!(atom, Atom::Min(..)) { BinaryOp::Min } else { BinaryOp::Max };
                let (a, b) = (self.emit_dim(a, target)?, self.emit_dim(b, target)?);
                self.add(Op::Binary(op), &[a, b])
            }
            Atom::Mod(a, b) => {
                let (a, b) = (self.emit_dim(a, target)?, self.emit_dim(b, target)?);
                self.add(Op::Binary(BinaryOp::Mod), &[a, b])
            }
            Atom::FloorDiv(a, b) => {
                let scope = Scope { symbols: self.symbols(), extents: &target.shape };
                let truncates = scope.proves_nonneg(a);
                let (mut x, y) = (self.emit_dim(a, target)?, self.emit_dim(b, target)?);
                if !truncates {
                    let rest = self.add(Op::Binary(BinaryOp::Mod), &[x, y])?;
                    x = self.add(Op::Binary(BinaryOp::Sub), &[x, rest])?;
                }
                self.add(Op::Binary(BinaryOp::Div), &[x, y])
            }
            Atom::Select(c, a, b) => {
                let c = self.emit_cond(c, target)?;
                let (a, b) = (self.emit_dim(a, target)?, self.emit_dim(b, target)?);
                self.add(Op::Select, &[c, a, b])
            }
        }
    }
}

fn constant_scalar(e: &Elem) -> Option<Scalar> {
    match e {
        Elem::Int(d) => d.as_const().map(Scalar::Int),
        Elem::Bool(_) => e.as_bool().map(Scalar::Bool),
        Elem::Float(v) => Some(Scalar::Float(*v)),
        Elem::Ratio(..) => None,
    }
}

/// The elements' bytes, if all are constant.
fn literal(list: &[Elem], dtype: DType) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for e in list {
        let int = || e.as_int().and_then(Dim::as_const);
        let float = || match e {
            Elem::Float(v) => Some(*v),
            _ => None,
        };
        match dtype {
            DType::Bool => bytes.push(u8::from(e.as_bool()?)),
            DType::I8 | DType::U8 => bytes.push(int()? as u8),
            DType::I16 | DType::U16 => bytes.extend((int()? as u16).to_le_bytes()),
            DType::I32 | DType::U32 => bytes.extend((int()? as u32).to_le_bytes()),
            DType::I64 | DType::U64 => bytes.extend(int()?.to_le_bytes()),
            DType::F16 => bytes.extend(half::f16::from_f64(float()?).to_le_bytes()),
            DType::Bf16 => bytes.extend(half::bf16::from_f64(float()?).to_le_bytes()),
            DType::F32 => bytes.extend((float()? as f32).to_le_bytes()),
            DType::F64 => bytes.extend(float()?.to_le_bytes()),
            _ => return None,
        }
    }
    Some(bytes)
}
