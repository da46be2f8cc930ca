//! Checks of a model's `dims` and `inputs` against what its file turned out to hold.

use std::collections::HashSet;

use super::diagnostic::Diagnostic;
use super::reader::{list, nearest};
use super::schema::{InputDim, Model};

/// A symbolic dim of an imported model's inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDim {
    /// Its name, from the file or from the manifest's `inputs`.
    pub name: String,
    /// An input that has it.
    pub input: String,
    /// The axis of that input.
    pub axis: usize,
}

/// An input of an imported model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownInput {
    /// The tensor's name.
    pub name: String,
    /// Its number of axes, where the file says.
    pub rank: Option<usize>,
}

/// Every entry of `dims` that no input has, and every dim without sizes.
pub fn check_dims(model: &Model, known: &[KnownDim]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut seen = HashSet::new();
    let names: Vec<&str> =
        known.iter().map(|dim| dim.name.as_str()).filter(|name| seen.insert(*name)).collect();
    for dim in &model.dims {
        let name = dim.name.get_ref();
        if names.contains(&name.as_str()) {
            continue;
        }
        let free = names.iter().copied().filter(|name| model.dim(name).is_none());
        let diagnostic = Diagnostic::error(format!(
            "no input of model `{}` has a dim `{name}`",
            model.name.get_ref()
        ));
        diagnostics.push(match nearest(name, free) {
            Some(near) => diagnostic.at(dim.name.span(), format!("did you mean `{near}`?")),
            None if names.is_empty() => {
                diagnostic.at(dim.name.span(), "all dims of its inputs are fixed")
            }
            None => diagnostic
                .at(dim.name.span(), "not a dim of any input")
                .help(format!("the dims are {}", list(&names))),
        });
    }
    for name in names.iter().filter(|name| model.dim(name).is_none()) {
        let Some(dim) = known.iter().find(|dim| dim.name == *name) else { continue };
        diagnostics.push(
            Diagnostic::error(format!(
                "dim `{name}` of model `{}` has no range",
                model.name.get_ref()
            ))
            .at(model.name.span(), format!("it is axis {} of input `{}`", dim.axis, dim.input))
            .help(format!("add `dims.{} = \"1..=64\"` or a fixed size", key(name))),
        );
    }
    diagnostics
}

/// Every entry of `inputs` that the model has no input for, or with another number of axes.
pub fn check_inputs(model: &Model, known: &[KnownInput]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for spec in &model.inputs {
        let name = spec.name.get_ref();
        match known.iter().find(|input| input.name == *name) {
            None => {
                let names: Vec<&str> = known.iter().map(|input| input.name.as_str()).collect();
                let diagnostic = Diagnostic::error(format!(
                    "model `{}` has no input `{name}`",
                    model.name.get_ref()
                ));
                diagnostics.push(match nearest(name, names.iter().copied()) {
                    Some(near) => {
                        diagnostic.at(spec.name.span(), format!("did you mean `{near}`?"))
                    }
                    None => diagnostic
                        .at(spec.name.span(), "not an input")
                        .help(format!("the inputs are {}", list(&names))),
                });
            }
            Some(KnownInput { rank: Some(rank), .. }) if *rank != spec.dims.len() => {
                diagnostics.push(
                    Diagnostic::error(format!("input `{name}` has {rank} axes"))
                        .at(spec.span.clone(), format!("{} dims are given here", spec.dims.len())),
                );
            }
            Some(_) => {}
        }
        for dim in &spec.dims {
            if let InputDim::Name(dim_name) = dim.get_ref()
                && model.dim(dim_name).is_none()
            {
                diagnostics.push(
                    Diagnostic::error(format!("dim `{dim_name}` has no range"))
                        .at(dim.span(), "named here")
                        .help(format!("add `dims.{} = \"1..=64\"` or a fixed size", key(dim_name))),
                );
            }
        }
    }
    diagnostics
}

/// `name` as a TOML key.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        toml::Value::String(name.to_owned()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::diagnostic::SourceFile;
    use super::super::load::Files;
    use super::super::schema::Manifest;
    use super::*;

    fn model(fields: &str) -> Model {
        let text = format!("[target]\ngpus=[\"t4\"]\n[models.m]\nsource=\"m.onnx\"\n{fields}");
        let file = SourceFile { path: "Aot.toml".into(), text };
        Manifest::parse(file, Path::new(""), Files::Ignore).unwrap().models.remove(0)
    }

    fn known(names: &[&str]) -> Vec<KnownDim> {
        let dim = |(axis, name): (usize, &&str)| KnownDim {
            name: (*name).to_owned(),
            input: "x".into(),
            axis,
        };
        names.iter().enumerate().map(dim).collect()
    }

    fn texts(diagnostics: Vec<Diagnostic>) -> Vec<(String, String)> {
        diagnostics.into_iter().map(|d| (d.message, d.labels[0].text.clone())).collect()
    }

    #[test]
    fn dims_that_agree() {
        let model = model("dims = { batch = \"1..=4\", n = 3 }");
        assert!(check_dims(&model, &known(&["batch", "n", "batch"])).is_empty());
    }

    #[test]
    fn a_slip_and_what_it_left_out() {
        let model = model("dims = { bacth = \"1..=4\", odd-one = 3 }");
        let found = texts(check_dims(&model, &known(&["batch", "s 1"])));
        let expected = [
            ("no input of model `m` has a dim `bacth`", "did you mean `batch`?"),
            ("no input of model `m` has a dim `odd-one`", "not a dim of any input"),
            ("dim `batch` of model `m` has no range", "it is axis 0 of input `x`"),
            ("dim `s 1` of model `m` has no range", "it is axis 1 of input `x`"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn inputs_that_are_not_there() {
        let model = model("dims = { b = \"1..=4\" }\ninputs = { ids = [\"b\", \"s\"], idz = [1] }");
        let inputs = [KnownInput { name: "ids".into(), rank: Some(3) }];
        let found = texts(check_inputs(&model, &inputs));
        let expected = [
            ("input `ids` has 3 axes", "2 dims are given here"),
            ("dim `s` has no range", "named here"),
            ("model `m` has no input `idz`", "did you mean `ids`?"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
