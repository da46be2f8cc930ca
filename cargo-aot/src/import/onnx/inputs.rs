//! The model's inputs, and what their dims are.

use super::super::error::{ImportError, Unbound};
use super::super::options::{
    AxisSpec, DimInfo, DimSpec, Form, ImportOptions, Structure, TensorInfo,
};
use super::proto::{Dimension, GraphProto, ValueInfo};
use super::tensor::{self, MAX_RANK};
use aot_ir::dim::{ParseDimError, Symbol, expression_names};
use aot_ir::{Constant, DType, Dim, Scope, Symbols};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// Greatest size of a dim.
const MAX_SIZE: i64 = 1 << 40;

/// What stands for an input of the model.
pub(super) enum Bound {
    /// An input of the graph.
    Input(DType, Vec<Dim>),
    /// A value fixed when the model is built.
    Constant(Constant),
    /// As many tensors as the options say.
    Sequence(Vec<Element>),
    /// An optional without element.
    Absent,
}

/// A tensor of a sequence.
pub(super) enum Element {
    /// An input of the graph.
    Input(DType, Vec<Dim>),
    /// A value fixed when the model is built.
    Constant(Constant),
}

/// The name of a tensor of a sequence.
pub(super) fn element_name(sequence: &str, i: usize) -> String {
    format!("{sequence}.{i}")
}

/// All inputs, in the model's order.
pub(super) struct BoundInputs {
    pub(super) symbols: Symbols,
    pub(super) inputs: Vec<(String, Bound)>,
    /// The names of dims of inputs.
    pub(super) dims: BTreeSet<String>,
}

/// The inputs that have no default value.
pub(super) fn required(graph: &GraphProto) -> impl Iterator<Item = &ValueInfo> {
    let stored: HashSet<&str> = graph
        .initializer
        .iter()
        .map(|t| t.name.as_str())
        .chain(
            graph.sparse_initializer.iter().filter_map(|s| Some(s.values.as_ref()?.name.as_str())),
        )
        .collect();
    graph.input.iter().filter(move |i| !stored.contains(i.name.as_str()))
}

/// What the model says of an input or output.
pub(super) fn describe(value: &ValueInfo) -> TensorInfo {
    let mut of = value.r#type.as_ref();
    let mut form = Form::default();
    while let Some(t) = of
        && t.tensor_type.is_none()
    {
        let inner = match (&t.optional_type, &t.sequence_type) {
            (Some(inner), _) if form == Form::default() => {
                form.optional = true;
                inner
            }
            (None, Some(inner)) if !form.sequence => {
                form.sequence = true;
                inner
            }
            _ => break,
        };
        of = inner.elem_type.as_deref();
    }
    let kind = of.and_then(|t| t.tensor_type.as_ref());
    let dims = kind.and_then(|t| t.shape.as_ref()).map(|s| {
        s.dim.iter().enumerate().map(|(axis, d)| dim_info(&value.name, axis, d)).collect()
    });
    let dtype = kind.and_then(|t| tensor::dtype(t.elem_type).ok());
    TensorInfo { name: value.name.clone(), form, dtype, dims }
}

fn dim_info(input: &str, axis: usize, dim: &Dimension) -> DimInfo {
    match (dim.dim_value, dim.dim_param.as_deref().map(str::trim)) {
        (Some(size), _) if size >= 0 => DimInfo::Fixed(size),
        (None, Some(text)) if !matches!(text, "" | "?" | "-1" | "None") => named(text),
        _ => DimInfo::Unnamed(default_name(input, axis)),
    }
}

/// A name for an axis that the model leaves unnamed.
pub(super) fn default_name(input: &str, axis: usize) -> String {
    let mut name: String =
        input.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    format!("{name}_{axis}")
}

/// A name, or an expression when it has an operator (`-` counts between blanks only: names have it).
fn named(text: &str) -> DimInfo {
    let operators = text.contains(['*', '/', '+', '%', '(']) || text.contains(" - ");
    match expression_names(text) {
        Ok(names) if operators && !names.is_empty() => {
            DimInfo::Expression { text: text.to_owned(), names }
        }
        _ => DimInfo::Named(text.to_owned()),
    }
}

/// Settles what every input is.
pub(super) fn bind(
    path: &Path,
    graph: &GraphProto,
    options: &ImportOptions,
    warnings: &mut Vec<String>,
) -> Result<BoundInputs, ImportError> {
    let declared: Vec<TensorInfo> = required(graph).map(describe).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = declared.iter().find(|i| !seen.insert(i.name.clone())) {
        let reason = format!("two inputs are named `{}`", twice.name);
        return Err(ImportError::Malformed { path: path.to_owned(), reason });
    }
    for (name, structure) in &options.structures {
        if let Structure::Sequence(n) = structure {
            seen.extend((0..*n).map(|i| element_name(name, i)));
        }
    }
    let named = options.inputs.keys().chain(options.constants.keys());
    let named = named.chain(options.structures.keys());
    let unknown: BTreeSet<&String> = named.filter(|n| !seen.contains(n.as_str())).collect();
    if !unknown.is_empty() {
        return Err(ImportError::Unknown {
            what: "input",
            names: unknown.into_iter().cloned().collect(),
            known: declared.iter().map(|i| i.name.clone()).collect(),
        });
    }
    let mut binder = Binder {
        options,
        symbols: Symbols::default(),
        sizes: BTreeMap::new(),
        unbound: Vec::new(),
    };
    let mut inputs = Vec::new();
    for info in &declared {
        let bound = binder.bind(info, warnings)?;
        inputs.push((info.name.clone(), bound));
    }
    let Binder { symbols, sizes, unbound, .. } = binder;
    let unknown: Vec<String> =
        options.dims.keys().filter(|n| !sizes.contains_key(*n)).cloned().collect();
    let missing: BTreeSet<String> = unbound.iter().map(|u| u.dim.clone()).collect();
    if !unbound.is_empty() && !unknown.is_empty() {
        let known = sizes.into_keys().chain(missing).collect();
        return Err(ImportError::Unknown { what: "dim", names: unknown, known });
    }
    if !unbound.is_empty() {
        return Err(ImportError::UnboundDims { dims: unbound });
    }
    Ok(BoundInputs { symbols, inputs, dims: sizes.into_keys().collect() })
}

/// The names that the model gives to axes of its outputs.
pub(super) fn declared(graph: &GraphProto) -> HashMap<String, Vec<Option<String>>> {
    let named = graph.output.iter().map(|value| {
        let axes = describe(value).dims.unwrap_or_default().into_iter().map(|dim| match dim {
            DimInfo::Named(name) => Some(name),
            _ => None,
        });
        (value.name.clone(), axes.collect())
    });
    named.collect()
}

/// The fixed value of an input, if it fits what the model says.
fn fitting(info: &TensorInfo, constant: &Constant) -> Result<Constant, ImportError> {
    let wrong = |reason: String| Err(ImportError::Input { input: info.name.clone(), reason });
    if info.dtype != Some(constant.dtype) {
        let expected = info.dtype.map_or("no tensor".to_owned(), |t| t.to_string());
        return wrong(format!("its fixed value is {}, the model has {expected}", constant.dtype));
    }
    if let Some(dims) = &info.dims {
        let fits = dims.len() == constant.shape.len()
            && dims.iter().zip(&constant.shape).all(|(d, &n)| match d {
                DimInfo::Fixed(size) => *size == n as i64,
                _ => true,
            });
        if !fits {
            return wrong(format!(
                "its fixed value has shape {:?}, the model's differs",
                constant.shape
            ));
        }
    }
    Ok(Constant { name: info.name.clone(), ..constant.clone() })
}

struct Binder<'a> {
    options: &'a ImportOptions,
    symbols: Symbols,
    /// Sizes of the names met so far.
    sizes: BTreeMap<String, Dim>,
    unbound: Vec<Unbound>,
}

impl Binder<'_> {
    /// Settles what an input is.
    fn bind(
        &mut self,
        info: &TensorInfo,
        warnings: &mut Vec<String>,
    ) -> Result<Bound, ImportError> {
        let wrong = |reason: &str| {
            let (input, reason) = (info.name.clone(), reason.to_owned());
            Err(ImportError::Input { input, reason })
        };
        match self.options.structures.get(&info.name) {
            Some(Structure::Absent) if info.form.optional => Ok(Bound::Absent),
            Some(Structure::Absent) => wrong("it is no optional, but is said to be left out"),
            Some(&Structure::Sequence(n)) if info.form.sequence => {
                let one = |i| {
                    let name = element_name(&info.name, i);
                    let info = TensorInfo { name, form: Form::default(), ..info.clone() };
                    self.element(&info, warnings)
                };
                Ok(Bound::Sequence((0..n).map(one).collect::<Result<_, _>>()?))
            }
            Some(Structure::Sequence(_)) => wrong("it is no sequence, but is said to be one"),
            None if info.form.sequence => {
                wrong("it is a sequence: say how many tensors it has when the model is built")
            }
            None => Ok(match self.element(info, warnings)? {
                Element::Input(dtype, shape) => Bound::Input(dtype, shape),
                Element::Constant(constant) => Bound::Constant(constant),
            }),
        }
    }

    /// Settles what a tensor is.
    fn element(
        &mut self,
        info: &TensorInfo,
        warnings: &mut Vec<String>,
    ) -> Result<Element, ImportError> {
        if let Some(constant) = self.options.constants.get(&info.name) {
            return Ok(Element::Constant(fitting(info, constant)?));
        }
        let wrong = |reason: String| ImportError::Input { input: info.name.clone(), reason };
        let Some(dtype) = info.dtype else {
            return Err(wrong("it is no tensor of a supported type".to_owned()));
        };
        let shape = self.shape(info, warnings).map_err(wrong)?;
        Ok(Element::Input(dtype, shape))
    }

    /// The shape of an input. Dims without size are noted and become 1.
    fn shape(&mut self, info: &TensorInfo, warnings: &mut Vec<String>) -> Result<Vec<Dim>, String> {
        let given = self.options.inputs.get(&info.name);
        let dims: Vec<DimInfo> = match (&info.dims, given) {
            (Some(dims), Some(given)) if dims.len() != given.len() => {
                return Err(format!(
                    "{} axes are given, the model has {}",
                    given.len(),
                    dims.len()
                ));
            }
            (Some(dims), _) => dims.clone(),
            (None, Some(given)) => {
                (0..given.len()).map(|i| DimInfo::Unnamed(default_name(&info.name, i))).collect()
            }
            (None, None) => {
                return Err("the model gives it no rank: give its axes in `inputs`".to_owned());
            }
        };
        if dims.len() > MAX_RANK {
            return Err(format!("its rank {} is above {MAX_RANK}", dims.len()));
        }
        let mut shape = Vec::new();
        for (axis, dim) in dims.iter().enumerate() {
            let spec = given.and_then(|g| g.get(axis)).unwrap_or(&AxisSpec::Keep);
            if let (DimInfo::Fixed(size), AxisSpec::Named(_) | AxisSpec::Fixed(_)) = (dim, spec)
                && *spec != AxisSpec::Fixed(*size)
            {
                warnings.push(format!(
                    "input `{}`: axis {axis} is {size} in the model and was changed",
                    info.name
                ));
            }
            let place = (info.name.as_str(), axis);
            shape.push(match (spec, dim) {
                (AxisSpec::Fixed(size), _) | (AxisSpec::Keep, DimInfo::Fixed(size)) => {
                    check_size(*size)?;
                    Dim::from(*size)
                }
                (AxisSpec::Named(name), _)
                | (AxisSpec::Keep, DimInfo::Named(name) | DimInfo::Unnamed(name)) => {
                    self.size(name, place)?
                }
                (AxisSpec::Keep, DimInfo::Expression { text, .. })
                    if self.options.dims.contains_key(text) =>
                {
                    self.size(text, place)?
                }
                (AxisSpec::Keep, DimInfo::Expression { text, names }) => {
                    self.expression(text, names, place)?
                }
            });
        }
        let largest = shape.iter().try_fold(1i64, |n, d| {
            let hi = Scope::new(&self.symbols).interval(d).hi;
            n.checked_mul(hi).filter(|n| *n <= MAX_SIZE)
        });
        match largest {
            Some(_) => Ok(shape),
            None => {
                Err(format!("it may have more than {MAX_SIZE} elements: lower its dims' ranges"))
            }
        }
    }

    fn size(&mut self, name: &str, (input, axis): (&str, usize)) -> Result<Dim, String> {
        if let Some(dim) = self.sizes.get(name) {
            return Ok(dim.clone());
        }
        let dim = match self.options.dims.get(name) {
            Some(DimSpec::Fixed(size)) => {
                check_size(*size)?;
                Dim::from(*size)
            }
            Some(DimSpec::Range { lo, hi, step }) => {
                check_size(*lo)?;
                check_size(*hi)?;
                if hi < lo || *step < 1 {
                    return Err(format!("dim `{name}` has an empty range"));
                }
                if hi == lo {
                    Dim::from(*lo)
                } else {
                    let id = self.symbols.add(Symbol::new(name, *lo, *hi, *step));
                    self.symbols.dim(id)
                }
            }
            None => {
                let unbound = Unbound { dim: name.to_owned(), input: input.to_owned(), axis };
                if !self.unbound.iter().any(|u| u.dim == name) {
                    self.unbound.push(unbound);
                }
                return Ok(Dim::ONE);
            }
        };
        self.sizes.insert(name.to_owned(), dim.clone());
        Ok(dim)
    }

    fn expression(
        &mut self,
        text: &str,
        names: &[String],
        place: (&str, usize),
    ) -> Result<Dim, String> {
        let before = self.unbound.len();
        for name in names {
            self.size(name, place)?;
        }
        if self.unbound.len() > before || names.iter().any(|n| !self.sizes.contains_key(n)) {
            return Ok(Dim::ONE);
        }
        let scope = Scope::new(&self.symbols);
        let sizes = &self.sizes;
        Dim::parse(text, &scope, &mut |name| sizes.get(name).cloned())
            .map_err(|e: ParseDimError| e.to_string())
    }
}

fn check_size(size: i64) -> Result<(), String> {
    if (0..=MAX_SIZE).contains(&size) {
        return Ok(());
    }
    Err(format!("a size of {size} is outside 0..={MAX_SIZE}"))
}
