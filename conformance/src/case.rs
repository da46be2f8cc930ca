//! Where cases lie and how one is run.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::import::{Sizes, Trial, read_set};
use crate::outcome::Outcome;

/// A folder of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// One operator each.
    Node,
    /// Small models.
    Simple,
    /// Modules of PyTorch as an old exporter wrote them.
    PytorchConverted,
    /// Functions of PyTorch as an old exporter wrote them.
    PytorchOperator,
    /// Image classifiers whose weights are constants.
    Light,
    /// Operators of onnxruntime's own domain, against onnxruntime.
    Microsoft,
    /// Operators of classical machine learning, against onnxruntime.
    Classical,
    /// Operators that draw random numbers, against another implementation of the generator.
    Drawn,
}

impl Suite {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Node,
        Self::Simple,
        Self::PytorchConverted,
        Self::PytorchOperator,
        Self::Light,
        Self::Microsoft,
        Self::Classical,
        Self::Drawn,
    ];

    /// The folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Simple => "simple",
            Self::PytorchConverted => "pytorch-converted",
            Self::PytorchOperator => "pytorch-operator",
            Self::Light => "light",
            Self::Microsoft => "microsoft",
            Self::Classical => "classical",
            Self::Drawn => "drawn",
        }
    }

    /// Its folder below the assets.
    fn folder(self) -> PathBuf {
        let parent = match self {
            Self::Microsoft | Self::Classical | Self::Drawn => "reference",
            _ => "onnx-backend",
        };
        Path::new(parent).join(self.name())
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A model with inputs and what they must give.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Where it is from.
    pub suite: Suite,
    /// Its name, unique in the suite.
    pub name: String,
    /// The model.
    pub(crate) model: PathBuf,
    /// Folders of `input_N.pb` and `output_N.pb`; of [`Suite::Light`] the file of the only output.
    pub(crate) data: Vec<PathBuf>,
}

/// A suite's cases in the folder of assets, sorted by name.
///
/// # Errors
/// When the suite's folder can't be listed.
pub fn cases(assets: &Path, suite: Suite) -> std::io::Result<Vec<Case>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(assets.join(suite.folder()))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if suite == Suite::Light {
            if path.extension().is_some_and(|e| e == "onnx") {
                let data = vec![path.with_file_name(format!("{stem}_output_0.pb"))];
                found.push(Case { suite, name: stem, model: path, data });
            }
            continue;
        }
        let model = path.join("model.onnx");
        if model.is_file() {
            let sets = (0..).map(|n| path.join(format!("test_data_set_{n}")));
            let data = sets.take_while(|set| set.is_dir()).collect();
            found.push(Case { suite, name: stem, model, data });
        }
    }
    found.sort();
    Ok(found)
}

impl Case {
    /// The operators of its main graph, as [`cargo_aot::import::Description`] has them.
    pub fn operators(&self) -> Vec<String> {
        cargo_aot::import::describe(&self.model).map(|d| d.operators).unwrap_or_default()
    }

    /// The operator that the case is about: the first that its model has besides constants.
    pub fn operator(&self) -> String {
        let mut found = self.operators().into_iter().filter(|op| op != "Constant");
        found.next().unwrap_or_else(|| "none".to_owned())
    }

    /// The model once for each set of data, with the inputs left that can be.
    ///
    /// # Errors
    /// How the case went, where it did not come to a graph.
    pub fn trials(&self, sizes: Sizes) -> Result<Vec<Trial>, Outcome> {
        if self.data.is_empty() {
            return Err(Outcome::Data("no data".to_owned()));
        }
        let trial = |set: &PathBuf| {
            let (inputs, expected) = read_set(self, set)?;
            Trial::new(&self.model, &inputs, expected, sizes)
        };
        self.data.iter().map(trial).collect()
    }

    /// Runs the case on the reference executor.
    pub fn run(&self, sizes: Sizes) -> Report {
        let trials = match self.trials(sizes) {
            Ok(trials) => trials,
            Err(outcome) => {
                return Report { outcome, fixed: false, fixed_extents: false, constant: false };
            }
        };
        let outcomes = trials.iter().map(Trial::run);
        let outcome = outcomes.into_iter().find(|o| *o != Outcome::Passed);
        Report {
            outcome: outcome.unwrap_or(Outcome::Passed),
            fixed: trials.iter().any(|t| !t.fixed.is_empty()),
            fixed_extents: trials.iter().any(|t| t.fixed_extents),
            constant: trials.iter().any(Trial::is_constant),
        }
    }
}

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first of its trials that did not pass, or that they did.
    pub outcome: Outcome,
    /// Inputs were fixed at build.
    pub fixed: bool,
    /// Extents were, of a case whose sizes are left to run time.
    pub fixed_extents: bool,
    /// All inputs were.
    pub constant: bool,
}
