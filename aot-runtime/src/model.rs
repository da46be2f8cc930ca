//! What all generated models have in common.

use crate::loaded::{Loaded, MemoryUse};
use crate::{DType, Device, Result, Stream};

/// A model that `cargo aot build` compiled.
///
/// Implemented by generated types. Programs that work with any model (servers, workers, benches)
/// are generic over this. A loaded model can be used by several threads at once: they share its
/// weights, and each run has memory of its own.
pub trait Model: Sized + Send + Sync + 'static {
    /// Tensors that a run reads: an [`Input`](crate::Input) per input.
    type Inputs<'a>;
    /// Tensors that a run gives, on the host: a [`Tensor`](crate::Tensor) per output.
    type Outputs: Send;
    /// Buffers that a run writes to: an [`Output`](crate::Output) per output.
    type OutputsMut<'a>;
    /// Tensors that a run gives, on the device: a [`DeviceTensor`](crate::DeviceTensor) per output.
    type DeviceOutputs: Send;

    /// The model's name, inputs, outputs and dims.
    const META: Meta;

    /// Loads the model: uploads its weights and kernels.
    ///
    /// # Errors
    /// When the artifacts are damaged, have no kernels for the device, or do not fit its memory.
    fn load(device: &Device) -> Result<Self>;

    /// Runs the model and waits for its outputs.
    ///
    /// # Errors
    /// When an input does not fit the model, or the device fails.
    fn run(&self, inputs: Self::Inputs<'_>) -> Result<Self::Outputs>;

    /// As [`Model::run`], without holding up the thread, for tasks of any executor. The run begins when this is first
    /// polled; if this is dropped then, the run goes on, and what it gives is lost. On the CPU, where a run
    /// computes sizes, and where `AOT_PROFILE` has runs recorded, the thread waits all the same.
    ///
    /// Runs beyond [8 at once](Loaded::limit_contexts) wait for their turn. So a thread that has begun as
    /// many without polling them must not call [`Model::run`], which would wait for ever.
    ///
    /// # Errors
    /// As [`Model::run`].
    fn run_async<'a>(
        &'a self,
        inputs: Self::Inputs<'a>,
    ) -> impl Future<Output = Result<Self::Outputs>> + Send + 'a;

    /// Runs the model and leaves its outputs on the device, without waiting for them.
    ///
    /// # Errors
    /// When an input does not fit the model, or the device fails.
    fn run_on_device(&self, inputs: Self::Inputs<'_>) -> Result<Self::DeviceOutputs>;

    /// Runs the model with buffers for its outputs. Waits if one of them is on the host.
    ///
    /// # Errors
    /// When an input or a buffer does not fit the model, or the device fails.
    fn run_into(&self, inputs: Self::Inputs<'_>, outputs: Self::OutputsMut<'_>) -> Result<()>;

    /// As [`Model::run_into`], in a stream of the caller's.
    ///
    /// # Errors
    /// As [`Model::run_into`]; and when the stream belongs to another device.
    fn run_on(
        &self,
        stream: &Stream,
        inputs: Self::Inputs<'_>,
        outputs: Self::OutputsMut<'_>,
    ) -> Result<()>;

    /// Memory that the model takes on its device, runs that are going on left out, and what a concurrent run
    /// more would.
    fn memory(&self) -> MemoryUse {
        self.loaded().memory()
    }

    /// Runs the model at the greatest sizes of its dims, on zeros. Afterwards one run at a time, of any
    /// sizes, with inputs and outputs on the host, finds memory, kernels and the graph ready. Each further
    /// concurrent run, outputs on the device, the state of sessions, and other numbers of iterations of loops
    /// whose count follows from sizes allocate memory or make graphs when they first come. Does nothing on
    /// the CPU.
    ///
    /// # Errors
    /// When the greatest sizes do not fit together or into the device's memory, or the device fails.
    fn warmup(&self) -> Result<()> {
        self.loaded().warmup()
    }

    /// The model without its types.
    fn loaded(&self) -> &Loaded;

    /// The model, or a session of it, with its types.
    #[doc(hidden)]
    fn from_loaded(loaded: Loaded) -> Self;
}

/// What a model's manifest and file say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its name in the manifest.
    pub name: &'static str,
    /// Inputs in order.
    pub inputs: &'static [PortMeta],
    /// Outputs in order.
    pub outputs: &'static [PortMeta],
    /// What a [`Session`](crate::Session) keeps from run to run, in order: inputs of the source file that are none of
    /// `inputs`.
    pub state: &'static [StateMeta],
    /// Sizes that are chosen at run time.
    pub dims: &'static [DimMeta],
    /// Names and values that the source file carries for applications.
    pub metadata: &'static [(&'static str, &'static str)],
}

impl Meta {
    /// The value that the source file carries under a name.
    pub const fn metadata(&self, name: &str) -> Option<&'static str> {
        let mut i = 0;
        while i < self.metadata.len() {
            if same(self.metadata[i].0, name) {
                return Some(self.metadata[i].1);
            }
            i += 1;
        }
        None
    }

    /// The dim of this name.
    pub fn dim(&self, name: &str) -> Option<&'static DimMeta> {
        self.dims.iter().find(|dim| dim.name == name)
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// An input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMeta {
    /// Its name in the source file.
    pub name: &'static str,
    /// Its field in the generated types.
    pub field: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first, as text: `batch`, `384`, `2*n + 1`.
    pub shape: &'static [&'static str],
}

/// A tensor that a session keeps from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateMeta {
    /// The input that a run finds it in, by its name in the source file.
    pub input: &'static str,
    /// The output that a run leaves it in, by its name in the source file.
    pub output: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Extents that a run finds, outermost first, as text.
    pub shape: &'static [&'static str],
}

/// A size that is chosen at run time: by the shapes of inputs, or by the run itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimMeta {
    /// Its name.
    pub name: &'static str,
    /// Least size.
    pub min: u64,
    /// Greatest size.
    pub max: u64,
    /// Distance of allowed sizes, counted from the least.
    pub step: u64,
    /// Bounds that memory is planned for, ascending; kernels are chosen by a run's sizes. Empty if
    /// Aot.toml gives the dim no range.
    pub buckets: &'static [u64],
    /// Where Aot.toml gives the range.
    pub line: Option<u32>,
    /// Whether the run computes it from data; else shapes of inputs give it.
    pub from_data: bool,
}
