//! `[models.*]`

use std::path::PathBuf;

use toml::Spanned;

use super::diagnostic::Diagnostic;
use super::dims::{read_dims, read_inputs};
use super::glob::Glob;
use super::names::RustName;
use super::reader::{Entry, Reader, Table};
use super::schema::{Model, Precision, PrecisionRule, StateSpec};

const KEYS: [&str; 11] = [
    "source",
    "precision",
    "precision-for",
    "dims",
    "inputs",
    "quantize",
    "like",
    "weights",
    "rename",
    "state",
    "variants",
];

const PRECISIONS: [(&str, Precision); 4] = [
    ("f32", Precision::F32),
    ("tf32", Precision::Tf32),
    ("f16", Precision::F16),
    ("bf16", Precision::Bf16),
];

/// Reads all models; what is wrong in one keeps no other from being read.
pub(super) fn read_models(reader: &mut Reader, table: &Table<'_>) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    for entry in table.entries() {
        let rust = read_name(reader, entry);
        if let Some(rust) = &rust
            && let Some(other) = models.iter().find(|model| model.rust.module == rust.module)
        {
            reader.push(
                Diagnostic::error(format!(
                    "models `{}` and `{}` have the same name in Rust",
                    other.name.get_ref(),
                    entry.key.get_ref(),
                ))
                .at(entry.key.span(), format!("would be the module `{}` too", rust.module))
                .at(other.name.span(), format!("is the module `{}`", other.rust.module)),
            );
        }
        let model = read_model(reader, entry);
        models.extend(rust.zip(model).map(|(rust, model)| Model { rust, ..model }));
    }
    check_like(reader, table);
    models
}

fn read_name(reader: &mut Reader, entry: &Entry<'_>) -> Option<RustName> {
    let name = *entry.key.get_ref();
    match RustName::new(name) {
        Ok(rust) => Some(rust),
        Err(error) => {
            reader.push(
                Diagnostic::error(format!("`{name}` can't be the name of a model"))
                    .at(entry.key.span(), error.to_string())
                    .help("the name becomes a Rust module and, in camel case, a Rust type"),
            );
            None
        }
    }
}

/// Everything of a model but its Rust names, which are left empty.
fn read_model(reader: &mut Reader, entry: &Entry<'_>) -> Option<Model> {
    let path = format!("models.{}", entry.key.get_ref());
    let table = reader.table(&path, entry.value)?;
    reader.known_keys(&table, &KEYS);
    let source = read_source(reader, &table, entry);
    let precision = table
        .get("precision")
        .and_then(|value| reader.one_of(&format!("{path}.precision"), value, &PRECISIONS))
        .unwrap_or_default();
    let mut precision_for = Vec::new();
    if let Some(rules) = subtable(reader, &table, "precision-for") {
        for rule in rules.entries() {
            let path = format!("{path}.precision-for.\"{}\"", rule.key.get_ref());
            if let Some(precision) = reader.one_of(&path, rule.value, &PRECISIONS) {
                let nodes = Spanned::new(rule.key.span(), Glob::new(*rule.key.get_ref()));
                precision_for.push(PrecisionRule { nodes, precision });
            }
        }
    }
    let dims = subtable(reader, &table, "dims").map(|t| read_dims(reader, &t)).unwrap_or_default();
    let inputs =
        subtable(reader, &table, "inputs").map(|t| read_inputs(reader, &t)).unwrap_or_default();
    let state = read_state(reader, &table);
    read_later(reader, &table);
    Some(Model {
        name: Spanned::new(entry.key.span(), (*entry.key.get_ref()).to_owned()),
        rust: RustName { module: String::new(), type_name: String::new() },
        source: source?,
        precision,
        precision_for,
        dims,
        inputs,
        state,
    })
}

/// `state = [{ input = "keys.*", output = "new_keys.*" }]`
fn read_state(reader: &mut Reader, table: &Table<'_>) -> Vec<StateSpec> {
    let mut out = Vec::new();
    let path = format!("{}.state", table.path);
    let Some(value) = table.get("state") else { return out };
    for value in reader.array(&path, value).unwrap_or_default() {
        let Some(item) = reader.table(&path, value) else { continue };
        reader.known_keys(&item, &["input", "output"]);
        let mut pattern = |field: &str| match item.get(field) {
            Some(value) => {
                let text = reader.string(&format!("{path}.{field}"), value)?;
                Some(Spanned::new(text.span(), Glob::new(*text.get_ref())))
            }
            None => {
                reader.push(
                    Diagnostic::error(format!("an entry of `{path}` has no `{field}`"))
                        .at(item.span.clone(), format!("expected `{field} = \"NAME\"` in here")),
                );
                None
            }
        };
        let (input, output) = (pattern("input"), pattern("output"));
        let (Some(input), Some(output)) = (input, output) else { continue };
        if input.get_ref().stars() != output.get_ref().stars() {
            reader.push(
                Diagnostic::error("an input's pattern and its output's differ in their stars")
                    .at(output.span(), format!("has {} `*`", output.get_ref().stars()))
                    .at(input.span(), format!("has {} `*`", input.get_ref().stars()))
                    .help("what `*` stands for in the one it stands for in the other"),
            );
            continue;
        }
        out.push(StateSpec { input, output });
    }
    out
}

fn subtable<'a>(reader: &mut Reader, table: &Table<'a>, key: &str) -> Option<Table<'a>> {
    let value = table.get(key)?;
    reader.table(&format!("{}.{key}", table.path), value)
}

fn read_source(
    reader: &mut Reader,
    table: &Table<'_>,
    entry: &Entry<'_>,
) -> Option<Spanned<PathBuf>> {
    let path = format!("{}.source", table.path);
    let Some(value) = table.get("source") else {
        let replaced = ["like", "variants"].iter().any(|key| table.get(key).is_some());
        if !replaced {
            reader.push(
                Diagnostic::error(format!("model `{}` has no `source`", entry.key.get_ref()))
                    .at(entry.key.span(), "expected `source = \"FILE.onnx\"` in this table"),
            );
        }
        return None;
    };
    let text = reader.string(&path, value)?;
    let source = PathBuf::from(*text.get_ref());
    match source.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("onnx") => Some(Spanned::new(text.span(), source)),
        Some("pt2") => {
            reader.not_supported("`.pt2` models are", text.span());
            None
        }
        _ => {
            reader.push(
                Diagnostic::error(format!("`{}` is no model file", text.get_ref()))
                    .at(text.span(), "expected a path that ends in `.onnx`")
                    .help("export the model to ONNX"),
            );
            None
        }
    }
}

/// The parts of the schema that this version reads and can't build.
fn read_later(reader: &mut Reader, table: &Table<'_>) {
    read_quantize(reader, table);
    if let Some(entry) = table.entry("variants") {
        let path = format!("{}.variants", table.path);
        for value in reader.array(&path, entry.value).unwrap_or_default() {
            let Some(item) = reader.table(&path, value) else { continue };
            reader.known_keys(&item, &["when", "source"]);
            for field in ["when", "source"] {
                match item.get(field) {
                    Some(value) => {
                        reader.string(&format!("{path}.{field}"), value);
                    }
                    None if field == "when" => {}
                    None => reader.push(
                        Diagnostic::error(format!("an entry of `{path}` has no `{field}`"))
                            .at(item.span.clone(), ""),
                    ),
                }
            }
        }
        reader.not_supported("`variants` are", entry.key.span());
    }
    if let Some(entry) = table.entry("weights") {
        reader.string(&format!("{}.weights", table.path), entry.value);
        reader.not_supported("`weights` of a model are", entry.key.span());
    }
    if let Some(rename) = subtable(reader, table, "rename") {
        for entry in rename.entries() {
            reader.string(&format!("{}.{}", rename.path, entry.key.get_ref()), entry.value);
        }
        reader.not_supported("`rename` is", table.entry("rename").map_or(0..0, |e| e.key.span()));
    }
}

fn read_quantize(reader: &mut Reader, table: &Table<'_>) {
    const SCHEMES: [(&str, ()); 5] =
        [("fp8", ()), ("fp8-static", ()), ("int8", ()), ("int8-weight", ()), ("int4-weight", ())];
    let Some(entry) = table.entry("quantize") else { return };
    let path = format!("{}.quantize", table.path);
    if let Some(quantize) = reader.table(&path, entry.value) {
        reader.known_keys(&quantize, &["scheme", "calibration", "keep"]);
        match quantize.get("scheme") {
            Some(value) => {
                reader.one_of(&format!("{path}.scheme"), value, &SCHEMES);
            }
            None => reader.push(
                Diagnostic::error(format!("`{path}` has no `scheme`"))
                    .at(quantize.span.clone(), "expected `scheme = \"fp8\"` or another one"),
            ),
        }
        if let Some(value) = quantize.get("calibration") {
            reader.string(&format!("{path}.calibration"), value);
        }
        if let Some(value) = quantize.get("keep") {
            reader.strings(&format!("{path}.keep"), value);
        }
    }
    reader.not_supported("`quantize` is", entry.key.span());
}

fn check_like(reader: &mut Reader, models: &Table<'_>) {
    for entry in models.entries() {
        let toml::de::DeValue::Table(fields) = entry.value.get_ref() else { continue };
        let path = format!("models.{}", entry.key.get_ref());
        let table = Table::new(path, entry.value.span(), fields);
        let Some(like) = table.entry("like") else { continue };
        let Some(name) = reader.string(&format!("{}.like", table.path), like.value) else {
            continue;
        };
        if models.get(name.get_ref()).is_none() || name.get_ref() == entry.key.get_ref() {
            let names: Vec<&str> = models
                .entries()
                .iter()
                .map(|model| *model.key.get_ref())
                .filter(|model| model != entry.key.get_ref())
                .collect();
            let label = match super::reader::nearest(name.get_ref(), names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the other models are {}", super::reader::list(&names)),
            };
            reader.push(
                Diagnostic::error(format!("there is no other model `{}`", name.get_ref()))
                    .at(name.span(), label),
            );
        }
        reader.not_supported("`like` is", like.key.span());
    }
}
