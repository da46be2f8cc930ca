//! How fast weights come to the GPU, beside what its link can do.

use super::first_load::{self, Files};
use super::{Failure, link, quantiles};
use aot_ir::{Arch, Bytes, Constant, DType, Dim, Graph};
use aot_runtime::artifact::{ImagesInfo, Packing, WeightsLayout, write_images, write_model};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::program::{Buffer, BufferId, Place, Port, Program, Step, Target, Weight};
use aot_runtime::{Device, OutputRef};
use aot_tests::net::Random;
use std::time::Instant;

/// Rows and columns of a layer's matrix of f32, which has a vector beside it.
const SIDE: usize = 1024;
/// Layers of the models: 16, 64 and 512 MiB of matrices.
const LAYERS: [usize; 3] = [4, 16, 128];
/// Loads in this process, after one that is not counted.
const LOADS: usize = 9;

/// Prints a line for weights in a mapped file, and one for the same in memory, as embedded ones are, of every model: what
/// loads take that follow others (`gb_per_s`, `load_ms`), what the first load of a process takes, from a mapping that
/// nobody has used (`first_`), and one copy of as many bytes of page-locked memory (`link_gb_per_s`).
pub(super) fn bench(device: &Device) -> Result<(), Failure> {
    for layers in LAYERS {
        let (major, minor) = device.capability().ok_or("weights are timed on GPUs")?;
        let model = Synthetic::new(Arch::of_capability(major * 10 + minor), layers)?;
        let bytes = model.weights.len();
        let link = link::gb_per_s(bytes)?;
        let written = Temporary::new(&model)?;
        for (from, mapped) in [("file", true), ("memory", false)] {
            let files = Files { mapped, ..written.0.clone() };
            let weights = files.weights()?;
            model.load(device, &weights)?;
            let loads = (0..LOADS).map(|_| model.load(device, &weights));
            let loads = loads.collect::<Result<Vec<_>, _>>()?;
            let of = |field: fn(&Load) -> f64| quantiles(loads.iter().map(field).collect())[0];
            let gb_per_s = of(|load| load.gb_per_s);
            let first = first_load::measure(&files)?;
            println!(
                "{}",
                serde_json::json!({
                    "name": "weights", "from": from, "bytes": bytes, "gb_per_s": gb_per_s,
                    "of_link": gb_per_s / link, "load_ms": of(|load| load.ms),
                    "first_gb_per_s": first.gb_per_s, "first_of_link": first.gb_per_s / link,
                    "first_load_ms": first.load_ms, "first_open_ms": first.open_ms,
                    "link_gb_per_s": link,
                })
            );
            model.check(device, &weights)?;
        }
    }
    Ok(())
}

/// A model whose outputs are its weights: the matrices as they are uploaded, the vectors as copies that are made at load.
struct Synthetic {
    graph: Graph,
    model: Vec<u8>,
    images: Vec<u8>,
    weights: Bytes,
}

/// What a load took.
struct Load {
    gb_per_s: f64,
    /// All of it.
    ms: f64,
}

impl Synthetic {
    fn new(arch: Arch, layers: usize) -> Result<Self, Failure> {
        let mut random = Random::new(3);
        let mut noise = |bytes: usize| -> Bytes {
            let mut noise = vec![0; bytes];
            for word in noise.chunks_exact_mut(8) {
                word.copy_from_slice(&random.word().to_le_bytes());
            }
            noise.into()
        };
        let mut graph = Graph::default();
        for layer in 0..layers {
            for (name, shape) in [("matrix", vec![SIDE, SIDE]), ("vector", vec![SIDE])] {
                let bytes = noise(shape.iter().product::<usize>() * 4);
                let (name, dtype) = (format!("{name} {layer}"), DType::F32);
                graph.add_constant(Constant { name, dtype, shape, bytes })?;
            }
        }
        let layout = WeightsLayout::new(&graph);
        let (weights, id) = layout.write(&graph);
        let program = program(&graph, &layout, arch);
        let model = write_model(&program, &graph, &layout, &id)?;
        let info = ImagesInfo { arch, ptx: false, driver: 12000 };
        let images = write_images(info, Packing::Plain, [])?;
        Ok(Self { graph, model, images, weights: weights.into() })
    }

    fn open(&self, device: &Device, weights: &Bytes) -> aot_runtime::Result<Loaded> {
        let (images, weights) = ([self.images.as_slice()], WeightsSource::Bytes(weights));
        let parts = Parts { model: &self.model, images: &images, weights, lines: &[] };
        Loaded::load(device, &parts)
    }

    fn load(&self, device: &Device, weights: &Bytes) -> Result<Load, Failure> {
        let start = Instant::now();
        let loaded = self.open(device, weights)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let uploaded = loaded.uploaded();
        Ok(Load { gb_per_s: uploaded.bytes as f64 / uploaded.time.as_secs_f64() / 1e9, ms })
    }

    /// Whether what comes to the device is what was sent.
    fn check(&self, device: &Device, weights: &Bytes) -> Result<(), Failure> {
        let loaded = self.open(device, weights)?;
        let mut sinks = vec![Vec::new(); self.graph.constants().len()];
        let outputs = self.graph.constants().zip(&mut sinks);
        let outputs = outputs.map(|((_, c), sink)| OutputRef::bytes(c.dtype, &c.shape, sink));
        loaded.run(&*loaded.bind(&[])?, None, &[], &mut outputs.collect::<Vec<_>>())?;
        match self.graph.constants().zip(&sinks).find(|((_, c), sink)| *c.bytes != ***sink) {
            Some(((_, constant), _)) => Err(format!("`{}` came damaged", constant.name).into()),
            None => Ok(()),
        }
    }
}

/// A program that gives out the constants of a graph, those of rank 1 by way of copies.
fn program(graph: &Graph, layout: &WeightsLayout, arch: Arch) -> Program {
    let weight = |((_, constant), offset): ((_, &Constant), &u64)| Weight {
        name: constant.name.clone(),
        dtype: constant.dtype,
        shape: constant.shape.iter().map(|extent| *extent as u64).collect(),
        offset: *offset,
    };
    let port = |(_, constant): (_, &Constant)| Port {
        name: constant.name.clone(),
        dtype: constant.dtype,
        shape: constant.shape.iter().map(|extent| Dim::from(*extent as i64)).collect(),
    };
    let count = graph.constants().len() as u32;
    let mut program = Program {
        model: "weights".to_owned(),
        outputs: graph.constants().map(port).collect(),
        weights: graph.constants().zip(layout.offsets()).map(weight).collect(),
        targets: vec![Target {
            arch,
            ptx: false,
            kernels: Vec::new(),
            launches: Vec::new(),
            loop_control: None,
        }],
        ..Program::default()
    };
    for (n, (_, constant)) in (0..count).zip(graph.constants()) {
        let mut buffer = |place| {
            let elements = (constant.shape.iter().product::<usize>() as i64).into();
            program.buffers.push(Buffer { dtype: constant.dtype, elements, place });
            BufferId(program.buffers.len() as u32 - 1)
        };
        let (weight, to) = (buffer(Place::Weight(n)), buffer(Place::Output(n)));
        let from = match constant.shape.len() {
            1 => {
                let copy = buffer(Place::Prepared);
                program.prepare.push(Step::Copy { from: weight, to: copy });
                copy
            }
            _ => weight,
        };
        program.steps.push(Step::Copy { from, to });
    }
    program
}

/// A model in files that are removed in the end.
struct Temporary(Files);

impl Temporary {
    fn new(model: &Synthetic) -> Result<Self, Failure> {
        let file =
            |what| std::env::temp_dir().join(format!("aot-bench-{}.{what}", std::process::id()));
        let (name, images, weights) = (file("model"), file("images"), file("weights"));
        let this = Self(Files { model: name, images, weights, mapped: true });
        std::fs::write(&this.0.model, &model.model)?;
        std::fs::write(&this.0.images, &model.images)?;
        std::fs::write(&this.0.weights, &*model.weights)?;
        std::fs::File::open(&this.0.weights)?.sync_all()?;
        Ok(this)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        for file in [&self.0.model, &self.0.images, &self.0.weights] {
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aot_runtime::artifact::{ImagesFile, ModelFile, read_weights};

    #[test]
    fn the_model_is_one_that_loads() {
        let arch = Arch::of_capability(90);
        let model = Synthetic::new(arch, 2).unwrap();
        let file = ModelFile::open(&model.model).unwrap();
        let program = file.program().unwrap();
        let places: Vec<u64> = program.weights.iter().map(|weight| weight.offset).collect();
        assert_eq!(places, [0, 4 << 20, (4 << 20) + 4096, (8 << 20) + 4096]);
        assert_eq!(ImagesFile::open(&model.images).unwrap().info().arch, arch);
        let data = read_weights(&model.weights, &file.info().weights, "the weights").unwrap();
        assert_eq!(data.len(), (8 << 20) + 8192);
        assert!(model.load(&Device::cpu().unwrap(), &model.weights).is_ok());
    }
}
