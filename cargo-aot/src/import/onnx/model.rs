//! From a file to a graph: the whole of an import, step by step.

use super::super::error::ImportError;
use super::super::options::{Description, DimSpec, ImportOptions, Imported};
use super::builder::{Builder, DataSizes};
use super::file::Files;
use super::nodes::{Importer, Opsets};
use super::proto::{GraphProto, ModelProto};
use super::{inputs, outputs, rules};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The least version of ONNX's own operator set that is supported.
const LEAST_OPSET: i64 = 1;

/// Imports an ONNX model.
///
/// # Errors
/// When the file can't be read, is no whole model, or has something that is not supported; see
/// [`ImportError`].
pub fn import(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut files = Files::beside(path);
    let (model, graph) = load(path, &mut files)?;
    let opsets = opsets(path, &model)?;
    let mut warnings = Vec::new();
    if let Some(&version) = opsets.get("")
        && version > rules::LATEST_OPSET
    {
        warnings.push(format!(
            "operator set {version} is newer than {}, the latest one known",
            rules::LATEST_OPSET
        ));
    }
    let bound = inputs::bind(path, &graph, options, &mut warnings)?;
    let builder = Builder::new(&options.name, bound.symbols, data_sizes(&graph, options));
    let mut importer = Importer::new(path, builder, &mut files, &model.functions);
    let found = importer.main_graph(&graph, opsets, bound.inputs)?;
    let known = |name: &&String| {
        !bound.dims.contains(*name) && !importer.builder.used_ranges().contains(*name)
    };
    let unknown: Vec<String> = options.dims.keys().filter(known).cloned().collect();
    if !unknown.is_empty() {
        let known = importer.builder.symbols().iter().map(|(_, symbol)| symbol.name.clone());
        let known = bound.dims.iter().cloned().chain(known).collect::<BTreeSet<_>>();
        let known = known.into_iter().collect();
        return Err(ImportError::Unknown { what: "dim", names: unknown, known });
    }
    outputs::compare(&graph, &importer.builder, &found, &mut warnings);
    warnings.extend(importer.builder.take_warnings());
    let seed = importer.builder.seed_input().map(str::to_owned);
    let labels = importer.labels(&found);
    let graph = importer.finish(found)?;
    let (metadata, sources) = (metadata(&model), files.paths);
    Ok(Imported { graph, seed, warnings, labels, metadata, sources })
}

/// What is said of sizes that data gives.
fn data_sizes(graph: &GraphProto, options: &ImportOptions) -> DataSizes {
    let ranges = options.dims.iter().map(|(name, spec)| {
        let range = match spec {
            DimSpec::Fixed(size) => (*size, *size),
            DimSpec::Range { lo, hi, .. } => (*lo, *hi),
        };
        (name.clone(), range)
    });
    let ranges = ranges.collect();
    DataSizes::new(ranges, options.data_most, inputs::declared(graph))
}

/// Reads a model's interface, without its weights.
///
/// # Errors
/// When the file can't be read or is no whole model.
pub fn describe(path: &Path) -> Result<Description, ImportError> {
    let mut files = Files::beside(path);
    let (model, graph) = load(path, &mut files)?;
    let opsets = opsets(path, &model)?;
    let producer = format!("{} {}", model.producer_name, model.producer_version);
    Ok(Description {
        inputs: inputs::required(&graph).map(inputs::describe).collect(),
        outputs: graph.output.iter().map(inputs::describe).collect(),
        opsets: opsets.into_iter().collect(),
        operators: operators(&graph),
        producer: producer.trim().to_owned(),
        metadata: metadata(&model),
    })
}

fn operators(graph: &GraphProto) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for node in &graph.node {
        let name = match node.domain.as_str() {
            "" | "ai.onnx" => node.op_type.clone(),
            domain => format!("{domain}.{}", node.op_type),
        };
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

fn load(path: &Path, files: &mut Files) -> Result<(ModelProto, GraphProto), ImportError> {
    let malformed = |reason: String| ImportError::Malformed { path: path.to_owned(), reason };
    let bytes =
        files.open(path).map_err(|error| ImportError::Read { path: path.to_owned(), error })?;
    if bytes.is_empty() {
        return Err(malformed("it is empty".to_owned()));
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return Err(malformed("it is a Git LFS pointer: fetch the file itself".to_owned()));
    }
    let mut model = ModelProto::decode(bytes)
        .map_err(|e| malformed(format!("its encoding is wrong or cut off ({e})")))?;
    match model.graph.take() {
        Some(graph) if !graph.output.is_empty() => Ok((model, graph)),
        Some(_) => Err(malformed("its graph has no outputs".to_owned())),
        None => Err(malformed("it has no graph".to_owned())),
    }
}

fn opsets(path: &Path, model: &ModelProto) -> Result<Opsets, ImportError> {
    let mut opsets = Opsets::new();
    for import in &model.opset_import {
        let domain = if import.domain == "ai.onnx" { "" } else { import.domain.as_str() };
        let version = opsets.entry(domain.to_owned()).or_insert(import.version);
        *version = import.version.max(*version);
    }
    match opsets.get("") {
        Some(&found) if found < LEAST_OPSET => {
            Err(ImportError::Opset { path: path.to_owned(), found, least: LEAST_OPSET })
        }
        _ => Ok(opsets),
    }
}

fn metadata(model: &ModelProto) -> BTreeMap<String, String> {
    model.metadata_props.iter().map(|e| (e.key.clone(), e.value.clone())).collect()
}
