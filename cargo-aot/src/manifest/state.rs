//! Which outputs of a model are inputs of its next run.

use toml::Spanned;

use super::diagnostic::Diagnostic;
use super::glob::Glob;
use super::reader::{list, nearest};
use super::schema::Model;

/// An input or output of an imported model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTensor {
    /// Its name.
    pub name: String,
    /// Its element type, as people write it.
    pub dtype: String,
    /// Its number of axes.
    pub rank: usize,
}

/// The inputs and outputs that `state` of a model ties, as indices, in order of the inputs.
///
/// # Errors
/// What names nothing, pairs with nothing or with several, or does not fit.
pub fn pair_state(
    model: &Model,
    inputs: &[KnownTensor],
    outputs: &[KnownTensor],
) -> Result<Vec<(usize, usize)>, Vec<Diagnostic>> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut diagnostics = Vec::new();
    for spec in &model.state {
        let found = matches(inputs, &spec.input);
        if found.is_empty() {
            diagnostics.push(nothing(model, "input", inputs, &spec.input));
        }
        if matches(outputs, &spec.output).is_empty() {
            diagnostics.push(nothing(model, "output", outputs, &spec.output));
            continue;
        }
        for (input, texts) in found {
            let name = &inputs[input].name;
            let wanted = spec.output.get_ref().filled(&texts);
            let fits = Glob::new(wanted.as_str());
            let found = (0..outputs.len()).filter(|n| fits.matches(&outputs[*n].name));
            let error = |text: String| Diagnostic::error(text);
            match *found.collect::<Vec<_>>().as_slice() {
                [output] => {
                    let (from, to) = (&inputs[input], &outputs[output]);
                    if (&from.dtype, from.rank) != (&to.dtype, to.rank) {
                        let text = format!("output `{}` can't be the next `{name}`", to.name);
                        let shape = |t: &KnownTensor| format!("{} of {} axes", t.dtype, t.rank);
                        diagnostics.push(
                            error(text)
                                .at(spec.output.span(), format!("it is {}", shape(to)))
                                .at(spec.input.span(), format!("the input is {}", shape(from))),
                        );
                    } else if pairs.iter().any(|(i, _)| *i == input) {
                        let text = format!("input `{name}` is tied to an output twice");
                        diagnostics.push(error(text).at(spec.input.span(), "covers it again"));
                    } else if pairs.iter().any(|(_, o)| *o == output) {
                        let text = format!("output `{}` is tied to an input twice", to.name);
                        diagnostics.push(error(text).at(spec.output.span(), "covers it again"));
                    } else {
                        pairs.push((input, output));
                    }
                }
                [] => diagnostics.push(
                    error(format!("no output goes with input `{name}`"))
                        .at(spec.input.span(), "covers this input")
                        .at(spec.output.span(), format!("there is no output `{wanted}`")),
                ),
                ref several => {
                    let names: Vec<&str> =
                        several.iter().map(|n| outputs[*n].name.as_str()).collect();
                    diagnostics.push(
                        error(format!("several outputs go with input `{name}`"))
                            .at(spec.output.span(), format!("covers {}", list(&names)))
                            .help("`?` stands for any character: name each output"),
                    );
                }
            }
        }
    }
    pairs.sort_unstable();
    if diagnostics.is_empty() { Ok(pairs) } else { Err(diagnostics) }
}

/// The tensors that a pattern covers, each with what its stars stand for.
fn matches(tensors: &[KnownTensor], pattern: &Spanned<Glob>) -> Vec<(usize, Vec<String>)> {
    let all = tensors.iter().enumerate();
    all.filter_map(|(n, t)| Some((n, pattern.get_ref().captures(&t.name)?))).collect()
}

fn nothing(
    model: &Model,
    what: &str,
    tensors: &[KnownTensor],
    pattern: &Spanned<Glob>,
) -> Diagnostic {
    let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    let text = pattern.get_ref().as_str();
    let diagnostic =
        Diagnostic::error(format!("model `{}` has no {what} `{text}`", model.name.get_ref()));
    match nearest(text, names.iter().copied()) {
        Some(near) => diagnostic.at(pattern.span(), format!("did you mean `{near}`?")),
        None => diagnostic
            .at(pattern.span(), format!("covers no {what}"))
            .help(format!("the {what}s are {}", list(&names))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::diagnostic::SourceFile;
    use super::super::load::Files;
    use super::super::schema::Manifest;
    use super::*;

    fn pair(state: &str, inputs: &[&str], outputs: &[&str]) -> Result<Vec<(usize, usize)>, String> {
        let text =
            format!("[target]\ngpus=[\"t4\"]\n[models.m]\nsource=\"m.onnx\"\nstate = [{state}]");
        let file = SourceFile { path: "Aot.toml".into(), text };
        let model = Manifest::parse(file, Path::new(""), Files::Ignore).unwrap().models.remove(0);
        // `name` or `name:rank`
        let known = |names: &[&str]| -> Vec<KnownTensor> {
            let tensor = |text: &&str| {
                let (name, rank) = text.split_once(':').unwrap_or((text, "4"));
                let rank = rank.parse().unwrap();
                KnownTensor { name: name.to_owned(), dtype: "f32".to_owned(), rank }
            };
            names.iter().map(tensor).collect()
        };
        pair_state(&model, &known(inputs), &known(outputs)).map_err(|diagnostics| {
            let texts: Vec<String> = diagnostics.into_iter().map(|d| d.message).collect();
            texts.join("; ")
        })
    }

    #[test]
    fn patterns_pair_what_their_stars_stand_for() {
        let state = "{ input = \"past.*.*\", output = \"present.*.*\" }";
        let found = pair(
            state,
            &["ids", "past.0.key", "past.1.key"],
            &["logits", "present.1.key", "present.0.key"],
        );
        assert_eq!(found, Ok(vec![(1, 2), (2, 1)]));
        let state = "{ input = \"h\", output = \"hn\" }, { input = \"c\", output = \"cn\" }";
        assert_eq!(pair(state, &["x", "h", "c"], &["y", "hn", "cn"]), Ok(vec![(1, 1), (2, 2)]));
    }

    #[test]
    fn what_does_not_pair_is_named() {
        let says = |state: &str, inputs: &[&str], outputs: &[&str], text: &str| {
            assert_eq!(pair(state, inputs, outputs), Err(text.to_owned()));
        };
        let state = "{ input = \"past.*\", output = \"present.*\" }";
        says(state, &["x"], &["present.0"], "model `m` has no input `past.*`");
        says(state, &["past.0"], &["y"], "model `m` has no output `present.*`");
        let all = ["past.0", "past.1"];
        says(state, &all, &["present.0"], "no output goes with input `past.1`");
        let other = ["present.0:3", "present.1"];
        says(state, &all, &other, "output `present.0` can't be the next `past.0`");
        let vague = "{ input = \"h\", output = \"h?\" }";
        says(vague, &["h"], &["h0", "h1"], "several outputs go with input `h`");
        let twice = "{ input = \"h\", output = \"a\" }, { input = \"h\", output = \"b\" }";
        says(twice, &["h"], &["a", "b"], "input `h` is tied to an output twice");
        let twice = "{ input = \"h\", output = \"a\" }, { input = \"c\", output = \"a\" }";
        says(twice, &["h", "c"], &["a"], "output `a` is tied to an input twice");
    }
}
