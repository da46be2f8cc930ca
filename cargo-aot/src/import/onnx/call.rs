//! What an operator's rule sees of a node: inputs, attributes, the version in force.

use super::builder::{Builder, Element, Most, OpResult, Tensor, element_name, unsupported, wrong};
use super::file::Files;
use super::proto::{AttributeProto, GraphProto, NodeProto};
use super::tensor;
use aot_ir::{Constant, DType, Dim};
use std::ops::{Deref, DerefMut};

/// A node about to be imported. Operations of the [`Builder`] are available directly.
pub(super) struct Call<'a> {
    pub(super) builder: &'a mut Builder,
    pub(super) node: &'a NodeProto,
    /// Version of the operator set of the node's domain.
    pub(super) opset: i64,
    /// Inputs in order; `None` for those left out.
    pub(super) inputs: &'a [Option<Tensor>],
    /// Which outputs something reads.
    pub(super) wanted: &'a [bool],
    pub(super) files: &'a mut Files,
}

impl Deref for Call<'_> {
    type Target = Builder;
    fn deref(&self) -> &Builder {
        self.builder
    }
}

impl DerefMut for Call<'_> {
    fn deref_mut(&mut self) -> &mut Builder {
        self.builder
    }
}

/// An operator's rule: the node's outputs, as many as it makes (trailing ones may be left out).
pub(super) type Rule = fn(&mut Call<'_>) -> OpResult<Vec<Tensor>>;

impl Call<'_> {
    /// The n-th input, which must be there.
    pub(super) fn x(&self, n: usize) -> OpResult {
        match self.opt(n) {
            Some(t) => Ok(t),
            None => wrong(format!("input {n} is missing")),
        }
    }

    /// The n-th input, if it is there.
    pub(super) fn opt(&self, n: usize) -> Option<Tensor> {
        self.inputs.get(n).copied().flatten()
    }

    /// All inputs; none may be left out, and there must be one.
    pub(super) fn all(&self) -> OpResult<Vec<Tensor>> {
        match self.inputs.iter().copied().collect::<Option<Vec<_>>>() {
            Some(all) if !all.is_empty() => Ok(all),
            _ => wrong("an input is missing"),
        }
    }

    /// Whether something reads the n-th output.
    pub(super) fn wants(&self, n: usize) -> bool {
        self.wanted.get(n).copied().unwrap_or(false)
    }

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|a| a.name == name)
    }

    /// An integer attribute, if it is there.
    pub(super) fn int_opt(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|a| a.i)
    }

    /// An integer attribute.
    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.int_opt(name).unwrap_or(default)
    }

    /// A yes-or-no attribute.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.int(name, i64::from(default)) != 0
    }

    /// A float attribute.
    pub(super) fn float(&self, name: &str, default: f64) -> f64 {
        self.attribute(name).map_or(default, |a| f64::from(a.f))
    }

    /// A list attribute of integers, if it is there.
    pub(super) fn ints_attr(&self, name: &str) -> Option<Vec<i64>> {
        self.attribute(name).map(|a| a.ints.clone())
    }

    /// A list attribute of floats, if it is there.
    pub(super) fn floats_attr(&self, name: &str) -> Option<Vec<f32>> {
        self.attribute(name).map(|a| a.floats.clone())
    }

    /// A text attribute.
    pub(super) fn text(&self, name: &str, default: &str) -> String {
        let text = self.attribute(name).map(|a| String::from_utf8_lossy(&a.s).into_owned());
        text.filter(|t| !t.is_empty()).unwrap_or_else(|| default.to_owned())
    }

    /// A list attribute of texts.
    pub(super) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let attribute = self.attribute(name)?;
        Some(attribute.strings.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect())
    }

    /// Whether an attribute is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// Whether an attribute is there and holds a tensor.
    pub(super) fn is_tensor_attr(&self, name: &str) -> bool {
        self.node.attribute.iter().any(|a| a.name == name && a.t.is_some())
    }

    /// A tensor attribute, if it is there.
    pub(super) fn tensor_attr(&mut self, name: &str) -> OpResult<Option<Constant>> {
        let Some(a) = self.node.attribute.iter().find(|a| a.name == name) else { return Ok(None) };
        let Some(t) = &a.t else { return wrong(format!("attribute `{name}` is no tensor")) };
        match tensor::constant(t, self.files) {
            Ok(constant) => Ok(Some(constant)),
            Err(reason) => wrong(format!("attribute `{name}`: {reason}")),
        }
    }

    /// A tensor attribute, if it is there and holds texts.
    pub(super) fn stored_texts(&self, name: &str) -> OpResult<Option<tensor::Texts>> {
        let stored = self.node.attribute.iter().find(|a| a.name == name).and_then(|a| a.t.as_ref());
        match stored.map_or(Ok(None), tensor::texts) {
            Ok(texts) => Ok(texts),
            Err(reason) => wrong(format!("attribute `{name}`: {reason}")),
        }
    }

    /// A graph attribute.
    pub(super) fn graph_attr<'g>(node: &'g NodeProto, name: &str) -> Option<&'g GraphProto> {
        node.attribute.iter().find(|a| a.name == name)?.g.as_deref()
    }

    /// An element type attribute, if it is there: the type to compute in, see [`Builder::widened`].
    pub(super) fn dtype_attr(&self, name: &str) -> OpResult<Option<DType>> {
        match self.int_opt(name) {
            None | Some(0) => Ok(None),
            Some(code) => match tensor::dtype(i32::try_from(code).unwrap_or(-1)) {
                Ok(DType::F16) => Ok(Some(DType::F32)),
                Ok(dtype) => Ok(Some(dtype)),
                Err(reason) => unsupported(format!("attribute `{name}`: {reason}")),
            },
        }
    }

    /// An axis, counted from the end when negative.
    pub(super) fn axis_of(&self, axis: i64, rank: usize) -> OpResult<usize> {
        let wrapped = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        match usize::try_from(wrapped) {
            Ok(a) if a < rank => Ok(a),
            _ => wrong(format!("axis {axis} is out of range for rank {rank}")),
        }
    }

    /// The attribute `axis` for a tensor.
    pub(super) fn axis(&self, of: Tensor, default: i64) -> OpResult<usize> {
        self.axis_of(self.int("axis", default), self.rank(of))
    }

    /// Axes of a rank, each once, ascending.
    pub(super) fn axes_of(&self, axes: &[i64], rank: usize) -> OpResult<Vec<usize>> {
        let mut out = axes.iter().map(|&a| self.axis_of(a, rank)).collect::<OpResult<Vec<_>>>()?;
        out.sort_unstable();
        if out.windows(2).any(|w| w[0] == w[1]) {
            return wrong(format!("axes {axes:?} name one twice"));
        }
        Ok(out)
    }

    /// The integers of the n-th input, which may be expressions of run-time sizes; `None` when the
    /// input is left out.
    pub(super) fn input_dims(&mut self, n: usize, what: &str) -> OpResult<Option<Vec<Dim>>> {
        let Some(t) = self.opt(n) else { return Ok(None) };
        match self.builder.ints(t) {
            Some(dims) => Ok(Some(dims)),
            None => depends(what),
        }
    }

    /// The model's name for the n-th output.
    pub(super) fn output(&self, n: usize) -> String {
        let name = self.node.output.get(n).filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| self.node.op_type.clone())
    }

    /// The integers of the n-th input, where data is left as it is; `None` when the input is left out.
    pub(super) fn input_elements(
        &mut self,
        n: usize,
        what: &str,
    ) -> OpResult<Option<Vec<Element>>> {
        match self.opt(n) {
            Some(t) => self.builder.elements(t, what).map(Some),
            None => Ok(None),
        }
    }

    /// The integers of the n-th input, from `least` on: expressions, or symbols that go by the input's name where data
    /// gives them; `None` when the input is left out.
    pub(super) fn input_sizes(
        &mut self,
        n: usize,
        what: &str,
        least: i64,
        most: &Most,
    ) -> OpResult<Option<Vec<Dim>>> {
        let Some(elements) = self.input_elements(n, what)? else { return Ok(None) };
        let name = self.node.input.get(n).cloned().unwrap_or_default();
        let names: Vec<String> = (0..elements.len()).map(|i| element_name(&name, i)).collect();
        self.builder.sizes(&elements, least, most, &names).map(Some)
    }

    /// The integers of the n-th input, each the extent of an axis of the first output: expressions, or symbols that go
    /// by the output's name where data gives them; `None` when the input is left out.
    pub(super) fn output_sizes(&mut self, n: usize, what: &str) -> OpResult<Option<Vec<Dim>>> {
        let Some(elements) = self.input_elements(n, what)? else { return Ok(None) };
        let output = self.output(0);
        let names = (0..elements.len()).map(|axis| self.extent_name(&output, axis));
        let names: Vec<String> = names.collect();
        self.builder.sizes(&elements, 0, &Most::Unknown, &names).map(Some)
    }

    /// The constant integers of the n-th input; `None` when the input is left out.
    pub(super) fn input_ints(&mut self, n: usize, what: &str) -> OpResult<Option<Vec<i64>>> {
        let Some(dims) = self.input_dims(n, what)? else { return Ok(None) };
        match dims.iter().map(Dim::as_const).collect::<Option<Vec<_>>>() {
            Some(ints) => Ok(Some(ints)),
            None => unsupported(format!("{what} depends on run-time sizes; make it constant")),
        }
    }

    /// The constant numbers of the n-th input; `None` when the input is left out.
    pub(super) fn input_numbers(&mut self, n: usize, what: &str) -> OpResult<Option<Vec<f64>>> {
        let Some(t) = self.opt(n) else { return Ok(None) };
        match self.builder.numbers(t) {
            Some(numbers) => Ok(Some(numbers)),
            None => depends(what),
        }
    }

    /// Integers that were an attribute in older versions and are the n-th input in later ones.
    pub(super) fn ints_moved(
        &mut self,
        name: &str,
        n: usize,
        input_since: i64,
    ) -> OpResult<Option<Vec<i64>>> {
        if self.opset >= input_since {
            self.input_ints(n, &format!("input `{name}`"))
        } else {
            Ok(self.ints_attr(name))
        }
    }
}

/// Something that must be known at build time depends on data.
pub(super) fn depends<T>(what: &str) -> OpResult<T> {
    unsupported(format!(
        "{what} depends on the model's input data, but must be known when the model is built; \
         export the model with static values"
    ))
}
