//! The module of one model.

use aot_ir::{DType, Symbols};
use aot_runtime::program::Port;
use minijinja::{Value, context};

use super::fields::field_names;
use super::template::{code_cell, literal, plain, render};
use crate::manifest::{PackageName, Precision, RustName};

const TEMPLATE: &str = include_str!("../../../templates/crate/model.rs.j2");
const EXAMPLE: &str = include_str!("../../../templates/crate/example.rs.j2");

/// Why a model can't have a Rust type.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// An element type that Rust code can't have tensors of.
    #[error("`{tensor}` has elements of type {dtype}, which Rust has no type for")]
    DType {
        /// The input or output.
        tensor: String,
        /// Its type.
        dtype: DType,
    },
    /// A model without inputs, which always gives the same.
    #[error("the model has no inputs: its outputs are constants")]
    NoInputs,
    /// A model all of whose outputs are kept.
    #[error("all outputs of the model are kept from run to run: there is none to see")]
    NoOutputs,
    /// A template of ours is wrong.
    #[error("failed to write from a template")]
    Template(#[from] minijinja::Error),
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// The name in the model's file.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents as text.
    pub shape: Vec<String>,
    /// A shape that it can have.
    pub example: Vec<i64>,
    /// Its place among all inputs or outputs of the model.
    pub index: usize,
    /// The texts that its elements are places of, if they are.
    pub labels: Vec<String>,
}

impl PortSpec {
    /// Those of a program. The example has every size at its smallest.
    pub fn of(ports: &[Port], symbols: &Symbols) -> Vec<Self> {
        let atoms: Vec<i64> = symbols.iter().map(|(_, symbol)| symbol.lo).collect();
        let one = |(index, port): (usize, &Port)| Self {
            name: port.name.clone(),
            dtype: port.dtype,
            shape: port.shape.iter().map(|dim| symbols.show(dim)).collect(),
            example: port.shape.iter().map(|dim| dim.eval(&atoms[..]).unwrap_or(1)).collect(),
            index,
            labels: Vec::new(),
        };
        ports.iter().enumerate().map(one).collect()
    }
}

/// A size that is chosen at run time.
#[derive(Clone, Debug)]
pub struct DimSpec {
    /// Its name.
    pub name: String,
    /// Least size.
    pub min: i64,
    /// Greatest size.
    pub max: i64,
    /// Distance of sizes.
    pub step: i64,
    /// Bounds that are planned for, ascending.
    pub buckets: Vec<u64>,
    /// The line of Aot.toml that gives the range.
    pub line: Option<usize>,
    /// Whether the run computes it from data.
    pub from_data: bool,
}

/// What a model's module is written from.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// The name in the manifest.
    pub name: String,
    /// Its names in Rust.
    pub rust: RustName,
    /// The model file as the manifest names it.
    pub source: String,
    /// Inputs in order.
    pub inputs: Vec<PortSpec>,
    /// Outputs in order.
    pub outputs: Vec<PortSpec>,
    /// Inputs and outputs of the file that are kept from run to run, in pairs; they are none of the above.
    pub state: Vec<(PortSpec, PortSpec)>,
    /// Sizes chosen at run time.
    pub dims: Vec<DimSpec>,
    /// What matrix units compute in.
    pub precision: Precision,
    /// Whether some nodes have another precision.
    pub exceptions: bool,
    /// The input that random numbers come from, if the model draws any.
    pub seed: Option<String>,
    /// Names and values that the model file carries.
    pub metadata: Vec<(String, String)>,
    /// Whether the weights are within the executable.
    pub embedded: bool,
}

/// The name of a model's weights file within `artifacts`: one that is unique beside executables.
pub fn weights_file(package: &str, model: &ModelSpec) -> String {
    format!("{package}-{}.weights", model.rust.module)
}

/// The text of `src/MODULE.rs`; `images` are features that have kernels.
pub(super) fn text(
    package: &PackageName,
    model: &ModelSpec,
    images: &[String],
) -> Result<String, EmitError> {
    if model.inputs.is_empty() {
        return Err(EmitError::NoInputs);
    }
    if model.outputs.is_empty() {
        return Err(EmitError::NoOutputs);
    }
    let dims: Vec<Value> = model
        .dims
        .iter()
        .map(|dim| {
            let buckets: Vec<_> = dim.buckets.iter().map(ToString::to_string).collect();
            context!(
                cell => code_cell(&dim.name),
                quoted => literal(&dim.name),
                min => dim.min,
                max => dim.max,
                step => dim.step,
                buckets => buckets.join(", "),
                line => dim.line,
                from_data => dim.from_data,
            )
        })
        .collect();
    let metadata: Vec<Value> = model
        .metadata
        .iter()
        .map(|(name, value)| {
            let code = format!("`{}`", plain(name));
            context!(code, name => literal(name), value => literal(value))
        })
        .collect();
    let kept = model.state.iter().map(|(input, _)| input);
    let mut shapes =
        model.inputs.iter().chain(&model.outputs).chain(kept).flat_map(|port| &port.shape);
    let divides = shapes.any(|extent| extent.contains("//"));
    let context = context!(
        name => plain(&model.name),
        quoted_name => literal(&model.name),
        source => plain(&model.source),
        precision => model.precision.name(),
        exceptions => model.exceptions,
        example => example(&package.krate, model)?,
        module => &model.rust.module,
        type_name => &model.rust.type_name,
        inputs => ports(&model.inputs)?,
        outputs => ports(&model.outputs)?,
        state => state(&model.state)?,
        computed => model.dims.iter().any(|dim| dim.from_data),
        dims,
        divides,
        seed => seed_field(model),
        metadata,
        embedded => model.embedded,
        weights => weights_file(&package.package, model),
        images => images.to_vec(),
    );
    Ok(render(TEMPLATE, context)?)
}

/// A run of the model, as lines of an inner doc comment.
pub(super) fn example(krate: &str, model: &ModelSpec) -> Result<String, EmitError> {
    let context = context!(
        krate,
        module => &model.rust.module,
        type_name => &model.rust.type_name,
        inputs => ports(&model.inputs)?,
        outputs => ports(&model.outputs)?,
    );
    let code = render(EXAMPLE, context)?;
    let lines: Vec<_> = code.lines().map(|line| format!("//! {line}")).collect();
    Ok(lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n"))
}

fn ports(ports: &[PortSpec]) -> Result<Vec<Value>, EmitError> {
    let fields = field_names(ports.iter().map(|port| port.name.as_str()));
    ports
        .iter()
        .zip(fields)
        .map(|(port, field)| {
            let (rust, dtype) = rust_type(port.dtype)
                .ok_or_else(|| EmitError::DType { tensor: port.name.clone(), dtype: port.dtype })?;
            let extents: Vec<_> = port.shape.iter().map(|extent| literal(extent)).collect();
            let example: Vec<_> = port.example.iter().map(ToString::to_string).collect();
            let shape = format!("[{}]", port.shape.join(", "));
            Ok(context!(
                name => plain(&port.name),
                quoted => literal(&port.name),
                rust,
                element => rust.trim_start_matches("aot_runtime::"),
                dtype,
                rank => port.shape.len(),
                shape => format!("`{}`", plain(&shape)),
                cell => code_cell(&shape),
                extents => extents.join(", "),
                example => example.join(", "),
                index => port.index,
                constant => format!("{}_LABELS", field.trim_start_matches("r#").to_uppercase()),
                labels => port.labels.iter().map(|label| literal(label)).collect::<Vec<_>>(),
                field,
            ))
        })
        .collect()
}

/// The field of the input that random numbers come from.
fn seed_field(model: &ModelSpec) -> Option<String> {
    let seed = model.seed.as_deref()?;
    let fields = field_names(model.inputs.iter().map(|port| port.name.as_str()));
    let mut named = model.inputs.iter().zip(fields);
    named.find(|(port, _)| port.name == seed).map(|(_, field)| field)
}

fn state(pairs: &[(PortSpec, PortSpec)]) -> Result<Vec<Value>, EmitError> {
    let one = |(input, output): &(PortSpec, PortSpec)| {
        let (rust, dtype) = rust_type(input.dtype)
            .ok_or_else(|| EmitError::DType { tensor: input.name.clone(), dtype: input.dtype })?;
        let extents: Vec<_> = input.shape.iter().map(|extent| literal(extent)).collect();
        Ok(context!(
            input => plain(&input.name),
            output => plain(&output.name),
            quoted_input => literal(&input.name),
            quoted_output => literal(&output.name),
            element => rust.trim_start_matches("aot_runtime::"),
            dtype,
            cell => code_cell(&format!("[{}]", input.shape.join(", "))),
            extents => extents.join(", "),
        ))
    };
    pairs.iter().map(one).collect()
}

/// The Rust type of elements, and the variant of `DType`.
fn rust_type(dtype: DType) -> Option<(&'static str, &'static str)> {
    Some(match dtype {
        DType::Bool => ("bool", "Bool"),
        DType::I8 => ("i8", "I8"),
        DType::U8 => ("u8", "U8"),
        DType::I16 => ("i16", "I16"),
        DType::U16 => ("u16", "U16"),
        DType::I32 => ("i32", "I32"),
        DType::U32 => ("u32", "U32"),
        DType::I64 => ("i64", "I64"),
        DType::U64 => ("u64", "U64"),
        DType::F16 => ("aot_runtime::f16", "F16"),
        DType::Bf16 => ("aot_runtime::bf16", "Bf16"),
        DType::F32 => ("f32", "F32"),
        DType::F64 => ("f64", "F64"),
        _ => return None,
    })
}
