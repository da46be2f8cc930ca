//! What a model's table in the manifest means to import and lowering.

use aot_ir::{Arch, BoundBy, Symbols};

use crate::import::{AxisSpec, DimSpec, ImportOptions};
use crate::lower::{self, LowerOptions};
use crate::manifest::{DimKind, InputDim, Model, Precision, Target};

/// The architecture whose PTX newer GPUs run: the oldest that has every instruction of the
/// portable path.
const PTX_ARCH: u16 = 80;

/// No more memory plans than this are made for a model.
const MOST_PLANS: usize = 64;

/// How to import `model`.
pub fn import_options(model: &Model) -> ImportOptions {
    // Sizes are at most `i32::MAX`, which the manifest sees to.
    let size = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    let dims = model.dims.iter().map(|dim| {
        let spec = match &dim.kind {
            DimKind::Fixed(fixed) => DimSpec::Fixed(size(*fixed)),
            DimKind::Range { lo, hi, step, .. } => {
                DimSpec::Range { lo: size(*lo), hi: size(*hi), step: size(*step) }
            }
        };
        (dim.name.get_ref().clone(), spec)
    });
    let inputs = model.inputs.iter().map(|input| {
        let axes = input.dims.iter().map(|dim| match dim.get_ref() {
            InputDim::Name(name) => AxisSpec::Named(name.clone()),
            InputDim::Fixed(fixed) => AxisSpec::Fixed(size(*fixed)),
        });
        (input.name.get_ref().clone(), axes.collect())
    });
    ImportOptions {
        name: model.name.get_ref().clone(),
        dims: dims.collect(),
        inputs: inputs.collect(),
        ..ImportOptions::default()
    }
}

/// How to lower `model`.
pub fn lower_options(model: &Model) -> LowerOptions {
    let rules = model.precision_for.iter();
    LowerOptions {
        precision: precision(model.precision),
        precision_for: rules
            .map(|rule| (rule.nodes.get_ref().as_str().to_owned(), precision(rule.precision)))
            .collect(),
    }
}

fn precision(precision: Precision) -> lower::Precision {
    match precision {
        Precision::F32 => lower::Precision::F32,
        Precision::Tf32 => lower::Precision::Tf32,
        Precision::F16 => lower::Precision::F16,
        Precision::Bf16 => lower::Precision::Bf16,
    }
}

/// What kernels are made for: the architectures, then PTX (`true`) if it is wanted.
pub fn targets(target: &Target) -> Vec<(Arch, bool)> {
    let gpus = target.gpus.iter().map(|gpu| (*gpu.get_ref(), false));
    let ptx = target.ptx.then(|| (Arch::of_capability(PTX_ARCH), true));
    gpus.chain(ptx).collect()
}

/// The cargo feature of a target, also the extension of its images files.
pub fn feature((arch, ptx): (Arch, bool)) -> String {
    if ptx { "ptx".to_owned() } else { arch.to_string() }
}

/// The greatest atoms of `symbols` that memory is planned for: all combinations of the buckets of
/// `model`, smallest first, without the one of all largest sizes, for which there always is a
/// plan. Where there are too many, the n-th buckets of all dims go together.
pub fn bucket_bounds(model: &Model, symbols: &Symbols) -> Vec<Vec<i64>> {
    let buckets: Vec<Vec<i64>> = symbols
        .iter()
        .map(|(_, symbol)| {
            let given = match model.dim(&symbol.name).map(|dim| &dim.kind) {
                Some(DimKind::Range { buckets, .. }) if symbol.bound_by == BoundBy::Shapes => {
                    buckets.as_slice()
                }
                _ => &[],
            };
            let atoms = given
                .iter()
                .filter_map(|size| symbol.atom_of(i64::try_from(*size).ok()?))
                .filter(|atom| *atom < symbol.hi);
            atoms.chain([symbol.hi]).collect()
        })
        .collect();
    let count = buckets.iter().try_fold(1_usize, |n, each| n.checked_mul(each.len()));
    let mut bounds: Vec<Vec<i64>> = if count.is_some_and(|count| count <= MOST_PLANS) {
        buckets.iter().fold(vec![Vec::new()], |found, each| {
            let longer = |start: &Vec<i64>| {
                let start = start.clone();
                each.iter().map(move |atom| [start.as_slice(), &[*atom]].concat())
            };
            found.iter().flat_map(longer).collect()
        })
    } else {
        let most = buckets.iter().map(Vec::len).max().unwrap_or(0).min(MOST_PLANS);
        let nth = |n: usize| buckets.iter().map(|each| each[n.min(each.len() - 1)]).collect();
        (0..most).map(nth).collect()
    };
    let all: Vec<i64> = symbols.iter().map(|(_, symbol)| symbol.hi).collect();
    bounds.retain(|each| *each != all);
    bounds.sort_by_key(|each| {
        (each.iter().map(|atom| i128::from(*atom)).product::<i128>(), each.clone())
    });
    bounds
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use aot_ir::Symbol;

    use super::*;
    use crate::manifest::{Files, Manifest, SourceFile};

    fn manifest(dims: &str) -> Manifest {
        let text = format!(
            "[target]\ngpus = [\"h200\", \"l4\"]\n[models.m]\nsource = \"m.onnx\"\ndims = {dims}\n"
        );
        let file = SourceFile { path: "Aot.toml".into(), text };
        Manifest::parse(file, Path::new(""), Files::Ignore).unwrap()
    }

    fn symbols(list: &[(&str, i64, i64, i64)]) -> Symbols {
        let mut symbols = Symbols::default();
        for (name, lo, hi, step) in list {
            symbols.add(Symbol::new(*name, *lo, *hi, *step));
        }
        symbols
    }

    #[test]
    fn all_combinations_of_buckets() {
        let manifest = manifest(
            "{ b = { range = \"1..=8\", buckets = [1, 8] }, s = { range = \"32..=128\", step = 32, buckets = [32, 64] } }",
        );
        let symbols = symbols(&[("b", 1, 8, 1), ("s", 32, 128, 32)]);
        let bounds = bucket_bounds(&manifest.models[0], &symbols);
        assert_eq!(bounds, [vec![1, 1], vec![1, 2], vec![1, 4], vec![8, 1], vec![8, 2]]);
    }

    #[test]
    fn many_buckets_go_together() {
        let list = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let dim = format!("{{ range = \"1..=20\", buckets = [{list}] }}");
        let manifest = manifest(&format!("{{ a = {dim}, b = {dim} }}"));
        let symbols = symbols(&[("a", 1, 20, 1), ("b", 1, 20, 1)]);
        let bounds = bucket_bounds(&manifest.models[0], &symbols);
        assert_eq!(bounds.len(), 19);
        assert_eq!((&bounds[0], &bounds[18]), (&vec![1, 1], &vec![19, 19]));
    }

    #[test]
    fn no_dims_no_bounds() {
        let manifest = manifest("{}");
        assert!(bucket_bounds(&manifest.models[0], &Symbols::default()).is_empty());
        let targets = targets(&manifest.target);
        let names: Vec<_> = targets.iter().map(|(arch, ptx)| format!("{arch} {ptx}")).collect();
        assert_eq!(names, ["sm_90a false", "sm_89 false", "sm_80 true"]);
    }
}
