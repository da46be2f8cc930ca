//! A folder that tests and times kernels on a machine with a GPU and nothing but its driver.

use std::path::PathBuf;

use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim, Graph, Op};
use aot_tests::cases::{self, Case};
use aot_tests::manifest::{Entry, Made, Varied};
use aot_tests::models::{MODELS, Model};
use aot_tests::net::Net;
use cargo_aot::lower::Precision;
use cargo_aot::passes;

use super::models;
use super::packer::Packer;
use crate::error::{Error, Result};
use crate::layout::Layout;

/// What to pack.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder to write
    pub(super) dir: PathBuf,
    /// Models to include, by name
    #[arg(long, value_delimiter = ',', default_value = "minilm,det,rec,cls,basic-pitch")]
    pub(super) models: Vec<String>,
    /// Only images for these: architectures, or `ARCH-ptx`
    #[arg(long, value_delimiter = ',', default_value = "sm_90a,sm_80-ptx")]
    pub(super) targets: Vec<String>,
    /// Only networks whose name contains this
    #[arg(long, default_value = "")]
    pub(super) filter: String,
    /// Only say how many kernels each family of networks adds
    #[arg(long)]
    pub(super) count: bool,
}

const PRECISIONS: [(&str, Precision); 4] = [
    ("f32", Precision::F32),
    ("tf32", Precision::Tf32),
    ("f16", Precision::F16),
    ("bf16", Precision::Bf16),
];

/// A loop that data end, and after how many turns, of a layer each.
const LOOP: &str = "bench/loop";
const LAYERS: i64 = 500;
/// A decoder, and how many tokens it makes one by one.
const DECODER: &str = "bench/decoder";
const STEPS: usize = 1000;

/// Writes the pack.
pub(crate) fn gpu_pack(layout: &Layout, arguments: &Arguments) -> Result<()> {
    let mut packer = Packer::new(&arguments.dir, &arguments.targets)?;
    let chosen = |c: &&Case| c.on_gpus && c.name.contains(&arguments.filter);
    let made = aot_conformance::networks(&layout.assets()).map_err(Error::Other)?;
    let mut all = cases::all();
    all.extend(made.into_iter().map(|network| network.case));
    for case in all.iter().filter(chosen) {
        let passed;
        let graph = if case.written_out {
            let options = passes::Options::default();
            passed = passes::run(&case.graph, &options).map_err(|e| Error::Other(e.to_string()))?;
            &passed
        } else {
            &case.graph
        };
        for (name, precision) in PRECISIONS {
            if !case.runs_in(name) {
                continue;
            }
            let chain = if name == "f32" { 1.0 } else { 3.0 };
            let tolerance = aot_tests::compare::tolerance(name, DType::F32) * case.slack * chain;
            packer.add(
                Entry {
                    name: case.name.clone(),
                    precision: name.to_owned(),
                    sizes: case.sizes.clone(),
                    tolerance,
                    everywhere: true,
                    ..Entry::default()
                },
                graph,
                precision,
            )?;
        }
    }
    for side in [4096i64, 8192] {
        let name = format!("bench/gemm {side}");
        if name.contains(&arguments.filter) {
            let entry = Entry {
                name,
                precision: "f16".to_owned(),
                sizes: vec![vec![]],
                tolerance: 2e-3,
                everywhere: true,
                bench: true,
                ..Entry::default()
            };
            packer.add(entry, &gemm(side), Precision::F16)?;
        }
    }
    if LOOP.contains(&arguments.filter) {
        let entry = Entry {
            name: LOOP.to_owned(),
            precision: "f16".to_owned(),
            sizes: vec![vec![]],
            tolerance: 1e-2,
            bench: true,
            ..Entry::default()
        };
        packer.add(entry, &cases::layers_that_data_end(LAYERS), Precision::F16)?;
    }
    if DECODER.contains(&arguments.filter) {
        let made = Made::Decoder;
        let entry = Entry {
            name: DECODER.to_owned(),
            precision: "f16".to_owned(),
            made: Some(made),
            tolerance: 2e-2,
            bench: true,
            steps: Some(STEPS),
            ..Entry::default()
        };
        packer.add(entry, &made.graph(), Precision::F16)?;
    }
    for model in MODELS.iter().filter(|m| arguments.models.iter().any(|name| name == m.name)) {
        let graph = models::graph(model, layout)?;
        let tried = |(name, _): &&(&str, Precision)| *name == "f32" || *name == model.narrow;
        for &(name, precision) in PRECISIONS.iter().filter(tried) {
            let owned = |s: &&[(&str, i64)]| s.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
            packer.add(
                Entry {
                    name: format!("model/{}", model.name),
                    precision: name.to_owned(),
                    sizes: model.sizes.iter().map(owned).collect(),
                    tolerance: match precision {
                        Precision::F32 => 1e-3,
                        Precision::Bf16 => 5e-2,
                        _ => 1e-2,
                    },
                    bounds: model.bounds.iter().map(|(n, b)| ((*n).to_owned(), *b)).collect(),
                    pictures: model.name == "det",
                    everywhere: model.everywhere && name == model.narrow,
                    bench: true,
                    varied: if name == model.narrow { varied(model) } else { None },
                    ..Entry::default()
                },
                &graph,
                precision,
            )?;
        }
    }
    if arguments.count {
        packer.count();
        return Ok(());
    }
    packer.finish(layout)
}

/// What a model is timed at beside its sizes: MiniLM as a service has it, text by text.
fn varied(model: &Model) -> Option<Varied> {
    let (dim, least, most, _) = model.dims.iter().find(|(name, ..)| *name == "sequence")?;
    let fixed = vec![("batch".to_owned(), 1)];
    (model.name == "minilm").then(|| Varied {
        fixed,
        dim: (*dim).to_owned(),
        least: *least,
        most: *most,
    })
}

/// A square product of inputs that are f16 already.
fn gemm(side: i64) -> Graph {
    let mut net = Net::new();
    let shape = [Dim::from(side), Dim::from(side)];
    let a = net.input(DType::F16, &shape);
    let b = net.input(DType::F16, &shape);
    let c = net.op(Op::MatMul, &[a, b]);
    // Without scaling, sums of thousands of products would be coarse in f16.
    let scale = net.halfs(&[], &[(side as f32).sqrt().recip()]);
    let c = net.op(Op::Binary(BinaryOp::Mul), &[c, scale]);
    net.output(c);
    net.graph
}
