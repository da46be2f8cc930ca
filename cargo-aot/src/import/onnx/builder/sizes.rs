//! Sizes that data gives: symbols that the run binds.

use super::super::known::{Body, Content, Elem};
use super::tensors::{Builder, OpResult, Tensor, unsupported, wrong};
use aot_ir::{Binding, DType, Dim, Symbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Greatest size that is accepted without a range in the manifest.
const MAX_SIZE: i64 = 1 << 40;

/// What import knows of sizes from data.
#[derive(Debug, Default)]
pub(in super::super) struct DataSizes {
    /// Least and greatest size by name.
    ranges: BTreeMap<String, (i64, i64)>,
    /// The greatest size of those that nothing else bounds.
    most: Option<i64>,
    /// Names that the model gives to axes of its outputs.
    declared: HashMap<String, Vec<Option<String>>>,
    /// The names of `ranges` that were used.
    pub(super) used: BTreeSet<String>,
    /// Elements that were taken out of vectors.
    picked: HashMap<(Tensor, usize), Tensor>,
}

impl DataSizes {
    /// Least and greatest sizes by name, the greatest of those that nothing else bounds, and the names that the model
    /// gives to axes of its outputs.
    pub(in super::super) fn new(
        ranges: BTreeMap<String, (i64, i64)>,
        most: Option<i64>,
        declared: HashMap<String, Vec<Option<String>>>,
    ) -> Self {
        Self { ranges, most, declared, ..Self::default() }
    }
}

/// What is known of how great a size from data can be.
#[derive(Clone, Debug)]
pub(in super::super) enum Most {
    /// Nothing.
    Unknown,
    /// No valid model gives more than this; the run checks it.
    Valid(Dim),
    /// It was computed so that it is never more than this.
    Proved(Dim),
}

/// An element of a small integer tensor.
#[derive(Clone, Debug)]
pub(in super::super) enum Element {
    /// An expression of sizes.
    Known(Dim),
    /// Data: a tensor of rank 0.
    Data(Tensor),
}

impl Element {
    /// The expression, if it is known.
    pub(in super::super) fn known(&self) -> Option<&Dim> {
        match self {
            Self::Known(dim) => Some(dim),
            Self::Data(_) => None,
        }
    }
}

impl Builder {
    /// The elements of an integer tensor of rank 0 or 1; `what` it is goes into errors.
    pub(in super::super) fn elements(&mut self, t: Tensor, what: &str) -> OpResult<Vec<Element>> {
        if let Some(dims) = self.ints(t) {
            return Ok(dims.into_iter().map(Element::Known).collect());
        }
        let parts = self.made_of(t).to_vec();
        if !parts.is_empty() {
            let mut out = Vec::new();
            for part in parts {
                out.extend(self.elements(part, what)?);
            }
            return Ok(out);
        }
        if !self.dtype(t).is_int() {
            return wrong(format!("{what} has to be integers"));
        }
        Ok(self.pick_elements(t, what)?.into_iter().map(Element::Data).collect())
    }

    /// The elements of a tensor of rank 0 or 1, each of rank 0, known where they are; `what` it is goes into errors.
    pub(in super::super) fn scalars(&mut self, t: Tensor, what: &str) -> OpResult<Vec<Tensor>> {
        let dtype = self.dtype(t);
        if let Some(list) = self.content(t).as_ref().and_then(|content| content.list()) {
            let known = list.iter().map(|elem| {
                let body = Body::List(vec![elem.clone()]);
                self.known(dtype, Content { shape: Vec::new(), body })
            });
            return Ok(known.collect());
        }
        let mut out = Vec::new();
        for part in self.made_of(t).to_vec() {
            out.extend(self.scalars(part, what)?);
        }
        if out.is_empty() { self.pick_elements(t, what) } else { Ok(out) }
    }

    /// The elements of a tensor of rank 0 or 1, each of rank 0, of which nothing is known.
    fn pick_elements(&mut self, t: Tensor, what: &str) -> OpResult<Vec<Tensor>> {
        let count = match self.shape(t) {
            [] => 1,
            [n] => match n.as_const() {
                Some(n @ 0..=64) => n,
                Some(_) => return wrong(format!("{what} has too many elements")),
                None => {
                    return unsupported(format!("the number of elements of {what} is no constant"));
                }
            },
            _ => return wrong(format!("{what} has to be a vector")),
        };
        (0..count as usize).map(|i| self.pick_element(t, i)).collect()
    }

    /// An element of a vector as a tensor of rank 0, the same one every time.
    fn pick_element(&mut self, t: Tensor, i: usize) -> OpResult {
        if self.rank(t) == 0 {
            return Ok(t);
        }
        if let Some(&picked) = self.data_sizes.picked.get(&(t, i)) {
            return Ok(picked);
        }
        let picked = self.pick(t, 0, Dim::from(i as i64))?;
        // What is made in a body stays there.
        if self.frame.number == 0 {
            self.data_sizes.picked.insert((t, i), picked);
        }
        Ok(picked)
    }

    /// An element as an `I64` of rank 0.
    pub(in super::super) fn element(&mut self, element: &Element) -> OpResult {
        match element {
            Element::Known(dim) => {
                let t = self.dims(std::slice::from_ref(dim));
                self.reshape(t, &[])
            }
            Element::Data(t) => self.cast(*t, DType::I64),
        }
    }

    /// The size that an integer tensor of one element gives: an expression where it is known, else a symbol that the
    /// run binds, from `least` on.
    pub(in super::super) fn size(
        &mut self,
        value: Tensor,
        name: &str,
        least: i64,
        most: &Most,
    ) -> OpResult<Dim> {
        match self.size_or_name(value, name, least, most)? {
            Ok(dim) => Ok(dim),
            Err(name) => self.unbounded(&[name], least),
        }
    }

    /// As [`Builder::size`]; gives the name of a size that nothing bounds.
    fn size_or_name(
        &mut self,
        value: Tensor,
        name: &str,
        least: i64,
        most: &Most,
    ) -> OpResult<Result<Dim, String>> {
        if let Some([dim]) = self.ints(value).as_deref() {
            return Ok(Ok(dim.clone()));
        }
        let name = self.free_name(name);
        let given = self.data_sizes.ranges.get(&name).copied();
        let proved = match most {
            Most::Unknown => None,
            Most::Valid(dim) | Most::Proved(dim) => {
                Some(self.scope().interval(dim).hi).filter(|hi| *hi <= MAX_SIZE)
            }
        };
        let (lo, hi) = match (given, proved) {
            // What must be positive is, whatever the range says.
            (Some((lo, hi)), proved) => {
                let lo = if least > 0 { lo.max(least) } else { lo };
                (lo, proved.map_or(hi, |most| most.min(hi)))
            }
            (None, Some(most)) => (least, most),
            (None, None) => match self.data_sizes.most {
                Some(most) => (if least < 0 { -most } else { least }, most),
                None => return Ok(Err(name)),
            },
        };
        self.data_sizes.used.insert(name.clone());
        let scalar = self.cast(value, DType::I64)?;
        let scalar = self.reshape(scalar, &[])?;
        let below = match most {
            Most::Proved(dim) if lo >= 0 => Some(dim + 1),
            _ => None,
        };
        let symbol = Symbol { below, ..Symbol::in_run(name, lo.min(hi), hi) };
        let dim = self.bound(symbol, scalar)?;
        for t in [value, scalar] {
            if self.dtype(t).is_int() && self.is_here(t) {
                let shape = self.shape(t).to_vec();
                let body = Body::List(vec![Elem::Int(dim.clone())]);
                self.set_known(t, Rc::new(Content { shape, body }));
            }
        }
        Ok(Ok(dim))
    }

    /// The size that the run takes from `size`, an `I64` of rank 0.
    pub(in super::super) fn bound(&mut self, symbol: Symbol, size: Tensor) -> OpResult<Dim> {
        let size = self.value(size)?;
        let graph = self.graph_mut();
        let symbol = graph.symbols.add(symbol);
        graph.bindings.push(Binding { symbol, size });
        Ok(graph.symbols.dim(symbol))
    }

    fn unbounded<T>(&self, names: &[String], least: i64) -> OpResult<T> {
        let each =
            |f: &dyn Fn(&String) -> String| names.iter().map(f).collect::<Vec<_>>().join(", ");
        let (quoted, lines) = (
            each(&|name| format!("`{name}`")),
            each(&|name| format!("{name:?} = \"{}..=N\"", least.max(0))),
        );
        let model = &self.graph().name;
        unsupported(format!(
            "data gives the size {quoted}, and nothing bounds it: add {lines} to `dims` of \
             [models.{model}] in Aot.toml, where N is the greatest size that can be"
        ))
    }

    /// The sizes that a small integer tensor gives; the n-th goes by the n-th name.
    pub(in super::super) fn sizes(
        &mut self,
        elements: &[Element],
        least: i64,
        most: &Most,
        names: &[String],
    ) -> OpResult<Vec<Dim>> {
        let mut unbound = Vec::new();
        let mut sizes = Vec::with_capacity(elements.len());
        for (i, element) in elements.iter().enumerate() {
            match element {
                Element::Known(dim) => sizes.push(dim.clone()),
                Element::Data(t) => match self.size_or_name(*t, &names[i], least, most)? {
                    Ok(dim) => sizes.push(dim),
                    Err(name) => unbound.push(name),
                },
            }
        }
        if unbound.is_empty() { Ok(sizes) } else { self.unbounded(&unbound, least) }
    }

    /// The name of a size that is the extent of an axis of a value of the model: the model's own, if it has one.
    pub(in super::super) fn extent_name(&self, value: &str, axis: usize) -> String {
        let declared = self.data_sizes.declared.get(value);
        let own = declared.and_then(|axes| axes.get(axis)?.clone());
        match own.filter(|name| self.symbols().find(name).is_none()) {
            Some(name) => name,
            None => element_name(value, axis),
        }
    }

    /// A name that no symbol has.
    pub(super) fn free_name(&self, name: &str) -> String {
        unless_taken(name, |name| self.symbols().find(name).is_some())
    }
}

/// The name, or the first of those with a number behind it, `NAME_2` and so on, that is not taken.
pub(super) fn unless_taken(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|n| format!("{name}_{n}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_default()
}

/// The name of an element of a value of the model.
pub(in super::super) fn element_name(value: &str, i: usize) -> String {
    super::super::inputs::default_name(value, i)
}
