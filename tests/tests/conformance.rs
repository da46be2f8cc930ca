//! ONNX's own backend tests: import, run on the reference executor, compare.
//!
//! A case is a folder with `model.onnx` and `test_data_set_N/{input,output}_M.pb`. Inputs stay
//! inputs; where an operator needs a value at build time (a shape, an axis), the integer inputs of
//! the case are fixed instead, and where that does not do, all of them. Sequences and optionals have
//! the structure that they have in the case.
//!
//! `conformance.txt` lists the cases that do not pass, each with the reason.

use aot_ir::exec::{Executor, Tensor};
use aot_ir::{Constant, DType};
use cargo_aot::import::{
    AxisSpec, DimInfo, DimSpec, Form, ImportError, ImportOptions, Imported, StoredValue, Structure,
    TensorInfo, describe, import, read_value,
};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// All outputs are right.
    Passed,
    /// The importer says that it does not support the model.
    Unsupported(String),
    /// The case's data is no tensors of supported types.
    Data(String),
    /// The importer says that the model is wrong.
    Import(String),
    /// The executor failed.
    Run(String),
    /// An output is wrong.
    Wrong(String),
}

impl Outcome {
    /// One word for it.
    fn kind(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unsupported(_) => "unsupported",
            Self::Data(_) => "data",
            Self::Import(_) => "import",
            Self::Run(_) => "run",
            Self::Wrong(_) => "wrong",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Unsupported(text)
            | Self::Data(text)
            | Self::Import(text)
            | Self::Run(text)
            | Self::Wrong(text) => write!(f, "{}: {text}", self.kind()),
        }
    }
}

/// The folders of all cases below `root`, sorted.
///
/// # Errors
/// When the folder can't be listed.
fn cases(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if path.join("model.onnx").is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Runs one case.
fn run(case: &Path, sizes: Sizes) -> Outcome {
    let sets = (0..).map(|n| case.join(format!("test_data_set_{n}")));
    let sets: Vec<PathBuf> = sets.take_while(|set| set.is_dir()).collect();
    if sets.is_empty() {
        return Outcome::Data("no data".to_owned());
    }
    for set in sets {
        match run_set(&case.join("model.onnx"), &set, sizes) {
            Outcome::Passed => {}
            other => return other,
        }
    }
    Outcome::Passed
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

fn run_set(model: &Path, set: &Path, sizes: Sizes) -> Outcome {
    let described = match describe(model) {
        Ok(described) => described,
        Err(error) => return Outcome::Import(error.to_string()),
    };
    let inputs = values(set, "input", &described.inputs);
    let outputs = values(set, "output", &described.outputs);
    let (inputs, outputs) = match (inputs, outputs) {
        (Ok(inputs), Ok(outputs)) => (inputs, tensors(outputs)),
        (Err(outcome), _) | (_, Err(outcome)) => return outcome,
    };
    let mut outcome = Outcome::Passed;
    for fixed in [Fixed::None, Fixed::Integers, Fixed::All] {
        outcome = match import_case(model, &inputs, fixed, sizes) {
            Ok((imported, kept)) => return compare(&imported, &kept, &outputs),
            Err(ImportError::Unsupported { nodes, .. }) => {
                let reasons = nodes.iter().map(|n| format!("{}: {}", n.operator, n.reason));
                Outcome::Unsupported(reasons.collect::<Vec<_>>().join("; "))
            }
            Err(error) => return Outcome::Import(error.to_string()),
        };
    }
    outcome
}

/// What the dims of inputs are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    /// The sizes that the case has.
    Constant,
    /// Run-time sizes, each axis its own (but for extents of 1 and 0).
    Symbolic,
}

#[derive(Clone, Copy)]
enum Fixed {
    None,
    Integers,
    All,
}

/// The model with the case's sizes, and the inputs that are still inputs.
fn import_case(
    model: &Path,
    inputs: &[StoredValue],
    fixed: Fixed,
    sizes: Sizes,
) -> Result<(Imported, Vec<Constant>), ImportError> {
    let mut case = Case {
        options: ImportOptions { name: "case".to_owned(), ..ImportOptions::default() },
        kept: Vec::new(),
        fixed,
        sizes,
    };
    for (info, value) in describe(model)?.inputs.iter().zip(inputs) {
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
    Ok((import(model, &case.options)?, case.kept))
}

/// How a case is imported.
struct Case {
    options: ImportOptions,
    /// The inputs that are still inputs.
    kept: Vec<Constant>,
    fixed: Fixed,
    sizes: Sizes,
}

impl Case {
    /// Settles what the input `name` is, which is what the model declares as `info` or a part of it.
    fn tensor(&mut self, info: &TensorInfo, name: &str, value: &Constant) {
        let options = &mut self.options;
        let integer = value.dtype.is_int() || value.dtype == DType::Bool;
        if match self.fixed {
            Fixed::None => false,
            Fixed::Integers => integer,
            Fixed::All => true,
        } {
            options.constants.insert(name.to_owned(), value.clone());
            return;
        }
        self.kept.push(value.clone());
        if self.sizes == Sizes::Symbolic {
            let mut axes = Vec::new();
            for (axis, &size) in value.shape.iter().enumerate() {
                // A run-time size is taken not to be broadcast.
                if size <= 1 {
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

fn compare(imported: &Imported, inputs: &[Constant], expected: &[Constant]) -> Outcome {
    let run = || -> Result<Vec<Tensor>, aot_ir::exec::ExecError> {
        let inputs = inputs.iter().map(Tensor::from_constant).collect::<Result<Vec<_>, _>>()?;
        Executor::new(&imported.graph)?.run(&inputs)
    };
    let found = match run() {
        Ok(found) => found,
        Err(error) => return Outcome::Run(error.to_string()),
    };
    if found.len() != expected.len() {
        return Outcome::Wrong(format!("{} outputs, expected {}", found.len(), expected.len()));
    }
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
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

/// The place of the first element that is off by more than ONNX's own runner allows (1e-3 relative,
/// 1e-7 absolute, or of the largest element where that is above 1: sums that cancel leave so much), or by
/// more than a unit in the last place of a narrow float.
fn first_difference(found: &Tensor, expected: &Tensor) -> Option<usize> {
    let (relative, absolute) = match found.dtype() {
        DType::F16 => (2e-3, 1e-6),
        DType::Bf16 => (1.6e-2, 1e-6),
        _ => (1e-3, 1e-7),
    };
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let largest = expected.iter().map(|x| x.abs()).filter(|x| x.is_finite()).fold(1.0, f64::max);
    let absolute = absolute * largest;
    found.iter().zip(&expected).position(|(&a, &b)| {
        let near = (a - b).abs() <= absolute + relative * b.abs();
        !(a == b || near || (a.is_nan() && b.is_nan()))
    })
}

/// The folder of cases; `ONNX_CASES` names another one.
fn root() -> PathBuf {
    if let Some(other) = std::env::var_os("ONNX_CASES") {
        return other.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/onnx-backend/node");
    assert!(root.is_dir(), "{} is missing: run `cargo xtask fetch`", root.display());
    root
}

fn outcomes(sizes: Sizes) -> BTreeMap<String, Outcome> {
    let all = cases(&root()).expect("the cases can be listed");
    let name = |case: &Path| case.file_name().unwrap_or_default().to_string_lossy().into_owned();
    all.par_iter().map(|case| (name(case), run(case, sizes))).collect()
}

/// Lines of `conformance.txt`: `# reason` starts a section of case names.
fn listed() -> BTreeMap<&'static str, &'static str> {
    let mut reason = "";
    let mut listed = BTreeMap::new();
    for line in include_str!("conformance.txt").lines() {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None if !line.is_empty() => {
                assert!(!reason.is_empty(), "`{line}` stands under no reason");
                listed.insert(line, reason);
            }
            None => {}
        }
    }
    listed
}

/// What is listed does not pass, and everything else does.
#[test]
fn onnx_backend_tests_pass_but_for_the_listed_ones() {
    let (outcomes, listed) = (outcomes(Sizes::Constant), listed());
    let mut problems = Vec::new();
    for (name, outcome) in &outcomes {
        match (outcome, listed.get(name.as_str())) {
            (Outcome::Passed, Some(_)) => problems.push(format!("{name} passes: take it off")),
            (Outcome::Passed, None) | (_, Some(_)) => {}
            (other, None) => problems.push(format!("{name}: {other}")),
        }
    }
    let unknown = listed.keys().filter(|name| !outcomes.contains_key(**name));
    problems.extend(unknown.map(|name| format!("{name} is listed but does not exist")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(outcomes.len() >= 1600, "only {} cases were found", outcomes.len());
}

/// Where a model can be imported with run-time sizes it gives the same results.
#[test]
fn sizes_left_to_run_time_do_not_change_results() {
    let listed = listed();
    let (mut problems, mut passed) = (Vec::new(), 0);
    for (name, outcome) in outcomes(Sizes::Symbolic) {
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Wrong(_) | Outcome::Run(_) if !listed.contains_key(name.as_str()) => {
                problems.push(format!("{name}: {outcome}"));
            }
            _ => {}
        }
    }
    assert!(problems.is_empty(), "{passed} passed, but\n{}", problems.join("\n"));
    assert!(passed >= 1000, "only {passed} cases passed");
}

/// Prints how the cases that do not pass fail: `cargo test -p aot-tests -- --ignored --nocapture`.
#[test]
#[ignore = "prints a listing"]
fn list_what_does_not_pass() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, outcome) in outcomes(Sizes::Constant) {
        *counts.entry(outcome.kind()).or_default() += 1;
        if outcome != Outcome::Passed {
            println!("{name}: {outcome}");
        }
    }
    println!("{counts:?}");
}
