//! A case's model as a graph.

use std::path::Path;

use aot_ir::exec::{ExecError, Executor, Tensor};
use aot_ir::{Constant, DType};
use aot_tests::compare::first_difference;
use cargo_aot::import::{
    AxisSpec, DimInfo, DimSpec, Form, ImportError, ImportOptions, Imported, StoredValue, Structure,
    TensorInfo, describe, import, read_value,
};
use cargo_aot::passes;

use crate::case::{Case, Suite};
use crate::outcome::Outcome;

/// What the dims of inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The sizes that the case has.
    Constant,
    /// Run-time sizes, each axis its own (but for extents of 1 and 0), as far as the model can have them.
    Symbolic,
}

/// Which axes are left to run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axes {
    All,
    /// All but the last one of each input: where its extent determines what is computed.
    Leading,
    None,
}

/// A way to import a case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    /// Inputs whose values are fixed.
    fixed: Vec<usize>,
    axes: Axes,
}

/// A case's model with the data of one set.
#[derive(Debug)]
pub struct Trial {
    /// The model.
    pub imported: Imported,
    /// Which inputs are part of the graph, for the model needs their values at build time.
    pub fixed: Vec<usize>,
    /// Whether extents are, of inputs that are to have run-time sizes.
    pub fixed_extents: bool,
    /// The others.
    pub inputs: Vec<Constant>,
    /// What they must give.
    pub expected: Vec<Constant>,
}

impl Trial {
    pub(crate) fn new(
        model: &Path,
        inputs: &[StoredValue],
        expected: Vec<Constant>,
        sizes: Sizes,
    ) -> Result<Self, Outcome> {
        let mut outcome = Outcome::Passed;
        let most = data_most(inputs, &expected);
        for Way { fixed, axes } in ways(inputs.len(), sizes) {
            let last = axes == Axes::None;
            outcome = match import_case(model, inputs, &fixed, axes, most) {
                Ok((imported, inputs)) => {
                    let fixed_extents = sizes == Sizes::Symbolic && axes != Axes::All;
                    let expected = expected.clone();
                    let trial = Self { imported, fixed, fixed_extents, inputs, expected };
                    // What is taken to be equal may not be.
                    match last || !matches!(trial.run(), Outcome::Unequal(_)) {
                        true => return Ok(trial),
                        false => continue,
                    }
                }
                Err(ImportError::Unsupported { nodes, .. }) => {
                    let reasons = nodes.iter().map(|n| format!("{}: {}", n.operator, n.reason));
                    Outcome::Unsupported(reasons.collect::<Vec<_>>().join("; "))
                }
                Err(error) if last => return Err(Outcome::Import(error.to_string())),
                Err(_) => continue,
            };
        }
        Err(outcome)
    }

    /// Whether the case has inputs and all of them are part of the graph: then nothing is computed at
    /// run time.
    pub fn is_constant(&self) -> bool {
        !self.fixed.is_empty() && self.inputs.is_empty()
    }

    /// Whether the graph is sound, and what the passes make of it.
    fn check(&self) -> Result<(), String> {
        self.imported.graph.check()?;
        let passed = passes::run(&self.imported.graph, &passes::Options::default());
        passed.map_err(|e| e.to_string())?.check().map_err(|e| format!("after the passes: {e}"))
    }

    /// Runs it on the reference executor.
    pub fn run(&self) -> Outcome {
        if let Err(reason) = self.check() {
            return Outcome::Run(reason);
        }
        let run = || -> Result<Vec<Tensor>, ExecError> {
            let inputs = self.inputs.iter().map(Tensor::from_constant);
            Executor::new(&self.imported.graph)?.run(&inputs.collect::<Result<Vec<_>, _>>()?)
        };
        let found = match run() {
            Ok(found) => found,
            Err(error @ ExecError::Guard(_)) => return Outcome::Unequal(error.to_string()),
            Err(error) => return Outcome::Run(error.to_string()),
        };
        if found.len() != self.expected.len() {
            let (found, expected) = (found.len(), self.expected.len());
            return Outcome::Wrong(format!("{found} outputs, expected {expected}"));
        }
        for (i, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            if found.dtype() != expected.dtype || found.shape() != expected.shape {
                return Outcome::Wrong(format!(
                    "output {i} is {} {:?}, expected {} {:?}",
                    found.dtype(),
                    found.shape(),
                    expected.dtype,
                    expected.shape
                ));
            }
            let expected = match Tensor::from_constant(expected) {
                Ok(expected) => expected,
                Err(error) => return Outcome::Data(error.to_string()),
            };
            if let Some(at) = first_difference(found, &expected) {
                let (a, b) = (found.to_f64()[at], expected.to_f64()[at]);
                return Outcome::Wrong(format!("output {i}, element {at}: {a}, expected {b}"));
            }
        }
        Outcome::Passed
    }
}

/// A bound of sizes that data gives: beyond all sizes that the case has.
fn data_most(inputs: &[StoredValue], expected: &[Constant]) -> i64 {
    let tensors = inputs.iter().flat_map(|value| match value {
        StoredValue::Tensor(tensor) => std::slice::from_ref(tensor),
        StoredValue::Sequence(tensors) => tensors.as_slice(),
        StoredValue::Absent => &[],
    });
    let extents = tensors.chain(expected).flat_map(|tensor| &tensor.shape);
    2 * extents.max().map_or(0, |n| *n as i64) + 3
}

/// The ways in the order in which they are tried: extents are fixed before values are, but not all of them.
fn ways(inputs: usize, sizes: Sizes) -> Vec<Way> {
    let choices = choices(inputs);
    let with = |axes: Axes| choices.iter().map(move |fixed| Way { fixed: fixed.clone(), axes });
    if sizes == Sizes::Constant {
        return with(Axes::None).collect();
    }
    let nothing = |axes: Axes| Way { fixed: Vec::new(), axes };
    let mut ways = vec![nothing(Axes::All), nothing(Axes::Leading)];
    let some = |way: &Way| way.fixed.len() < inputs;
    let some = with(Axes::All).chain(with(Axes::Leading)).filter(some);
    for way in some.chain(with(Axes::None)) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// Sets of inputs to fix, in the order in which they are tried: none, then few before many and later
/// inputs, which are parameters, before earlier ones; of many inputs up to three, or all.
fn choices(inputs: usize) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new()];
    let mut sized = vec![Vec::new()];
    for size in 1..=inputs.min(3) {
        let grown = sized.iter().flat_map(|set: &Vec<usize>| {
            let below = set.last().copied().unwrap_or(inputs);
            (0..below).rev().map(|next| [set.as_slice(), &[next]].concat())
        });
        sized = grown.collect();
        debug_assert!(sized.iter().all(|set| set.len() == size));
        out.extend(sized.iter().cloned());
    }
    if inputs > 3 {
        out.push((0..inputs).collect());
    }
    out
}

/// Inputs and expected outputs.
pub(crate) fn read_set(
    case: &Case,
    set: &Path,
) -> Result<(Vec<StoredValue>, Vec<Constant>), Outcome> {
    let described = describe(&case.model).map_err(|e| Outcome::Import(e.to_string()))?;
    if case.suite == Suite::Light {
        let output = read_value(set, Form::default()).map_err(|e| Outcome::Data(e.to_string()))?;
        return Ok((light_inputs(&described.inputs)?, tensors(vec![output])));
    }
    let inputs = values(set, "input", &described.inputs)?;
    Ok((inputs, tensors(values(set, "output", &described.outputs)?)))
}

/// The values of the files `KIND_0.pb` … that the model declares.
fn values(set: &Path, kind: &str, declared: &[TensorInfo]) -> Result<Vec<StoredValue>, Outcome> {
    let files = (0..).map(|n| set.join(format!("{kind}_{n}.pb"))).take_while(|f| f.is_file());
    let form = |n: usize| declared.get(n).map_or(Form::default(), |info| info.form);
    let values = files.enumerate().map(|(n, file)| read_value(&file, form(n)));
    values.map(|value| value.map_err(|e| Outcome::Data(e.to_string()))).collect()
}

/// All tensors of values, in the order that the graph has them as outputs.
fn tensors(values: Vec<StoredValue>) -> Vec<Constant> {
    let one = |value| match value {
        StoredValue::Tensor(tensor) => vec![tensor],
        StoredValue::Sequence(tensors) => tensors,
        StoredValue::Absent => Vec::new(),
    };
    values.into_iter().flat_map(one).collect()
}

/// What ONNX's runner gives to light models: 0, 1/n, 2/n … of the n elements of each input.
fn light_inputs(declared: &[TensorInfo]) -> Result<Vec<StoredValue>, Outcome> {
    let wrong = |text: String| Outcome::Import(text);
    let input = |info: &TensorInfo| {
        let dims = info.dims.iter().flatten();
        let shape: Option<Vec<usize>> = dims
            .map(|dim| match dim {
                DimInfo::Fixed(size) => usize::try_from(*size).ok(),
                _ => None,
            })
            .collect();
        let shape = shape.ok_or_else(|| wrong(format!("`{}` has no fixed shape", info.name)))?;
        let count: usize = shape.iter().product();
        let elements = (0..count).map(|i| (i as f64 / count as f64) as f32);
        Ok(StoredValue::Tensor(Constant {
            name: info.name.clone(),
            dtype: DType::F32,
            shape,
            bytes: elements.flat_map(f32::to_le_bytes).collect::<Vec<u8>>().into(),
        }))
    };
    declared.iter().map(input).collect()
}

/// The model with the case's sizes, and the inputs that are still inputs.
fn import_case(
    model: &Path,
    inputs: &[StoredValue],
    fixed: &[usize],
    axes: Axes,
    data_most: i64,
) -> Result<(Imported, Vec<Constant>), ImportError> {
    let (name, data_most) = ("case".to_owned(), Some(data_most));
    let mut case = Setup {
        options: ImportOptions { name, data_most, ..ImportOptions::default() },
        kept: Vec::new(),
        fixed: false,
        axes,
    };
    let declared = describe(model)?.inputs;
    for (n, (info, value)) in declared.iter().zip(inputs).enumerate() {
        case.fixed = fixed.contains(&n);
        match value {
            StoredValue::Absent => {
                case.options.structures.insert(info.name.clone(), Structure::Absent);
            }
            StoredValue::Tensor(value) => case.tensor(info, &info.name, value),
            StoredValue::Sequence(values) => {
                let structure = Structure::Sequence(values.len());
                case.options.structures.insert(info.name.clone(), structure);
                for (i, value) in values.iter().enumerate() {
                    case.tensor(info, &format!("{}.{i}", info.name), value);
                }
            }
        }
    }
    // Behind those that the model declares stands what import adds: the seed.
    let added = inputs.get(declared.len()..).unwrap_or_default().iter().cloned();
    case.kept.extend(tensors(added.collect()));
    Ok((import(model, &case.options)?, case.kept))
}

/// How a case is imported.
struct Setup {
    options: ImportOptions,
    /// The inputs that are still inputs.
    kept: Vec<Constant>,
    /// Whether the input at hand becomes part of the graph.
    fixed: bool,
    axes: Axes,
}

impl Setup {
    /// Settles what the input `name` is, which is what the model declares as `info` or a part of it.
    fn tensor(&mut self, info: &TensorInfo, name: &str, value: &Constant) {
        let options = &mut self.options;
        if self.fixed {
            options.constants.insert(name.to_owned(), value.clone());
            return;
        }
        self.kept.push(value.clone());
        if self.axes != Axes::None {
            let mut axes = Vec::new();
            for (axis, &size) in value.shape.iter().enumerate() {
                let last = axis + 1 == value.shape.len();
                // A run-time size is taken not to be broadcast.
                if size <= 1 || last && self.axes == Axes::Leading {
                    axes.push(AxisSpec::Fixed(size as i64));
                    continue;
                }
                let dim = format!("{name}.{axis}");
                let spec = DimSpec::Range { lo: 1, hi: 2 * size as i64 + 3, step: 1 };
                options.dims.insert(dim.clone(), spec);
                axes.push(AxisSpec::Named(dim));
            }
            options.inputs.insert(name.to_owned(), axes);
        } else if info.form.sequence {
            let axes = value.shape.iter().map(|&size| AxisSpec::Fixed(size as i64));
            options.inputs.insert(name.to_owned(), axes.collect());
        } else {
            for (dim, &size) in info.dims.iter().flatten().zip(&value.shape) {
                if let DimInfo::Named(name) | DimInfo::Unnamed(name) = dim {
                    options.dims.insert(name.clone(), DimSpec::Fixed(size as i64));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Axes, Sizes, choices, ways};

    #[test]
    fn extents_are_fixed_before_values_are() {
        let all = ways(2, Sizes::Symbolic);
        let order: Vec<(usize, Axes)> = all.iter().map(|way| (way.fixed.len(), way.axes)).collect();
        let (all, leading, none) = (Axes::All, Axes::Leading, Axes::None);
        let one = [(1, all), (1, all), (1, leading), (1, leading)];
        let last = [(0, none), (1, none), (1, none), (2, none)];
        assert_eq!(order, [&[(0, all), (0, leading)][..], &one, &last].concat());
        assert!(ways(2, Sizes::Constant).iter().all(|way| way.axes == Axes::None));
    }

    #[test]
    fn few_and_later_inputs_are_fixed_first() {
        assert_eq!(choices(0), [Vec::<usize>::new()]);
        assert_eq!(choices(2), [vec![], vec![1], vec![0], vec![1, 0]]);
        let four = choices(4);
        assert_eq!(four.len(), 1 + 4 + 6 + 4 + 1);
        assert_eq!(four.last(), Some(&vec![0, 1, 2, 3]));
    }
}
