//! What a model takes.

/// Memory that a model takes, in bytes; what sessions keep [is apart](crate::Session::state_bytes), and so are the up to
/// 40 MiB of page-locked memory that a GPU keeps for weights to pass through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Weights as they are in the file, and what was prepared from them; on the device.
    pub weights: u64,
    /// Execution contexts that wait for a run. Concurrent runs have one each.
    pub contexts: usize,
    /// What these contexts take. They grow with the sizes of runs, and keep what they have.
    pub idle: ContextMemory,
    /// What one context takes at the greatest sizes of all dims, with all inputs and outputs on the host, but for some
    /// KiB of the sizes that kernels read.
    pub context: ContextMemory,
}

/// Memory of execution contexts, in bytes. The CPU has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextMemory {
    /// Tensors that live during a run; on the device.
    pub arena: u64,
    /// Scratch of kernels, and the sizes that they read; on the device.
    pub workspace: u64,
    /// Inputs and outputs of the host while they are on the device.
    pub staging: u64,
    /// Page-locked memory of the host.
    pub pinned: u64,
}

/// How a model's weights came to its device. The CPU reads them where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uploaded {
    /// Bytes of the weights file's data, all of which were checked.
    pub bytes: u64,
    /// From the first byte read to the last one on the device, with the locking or making of memory that they pass
    /// through, but without the making of what was made as the device was opened.
    pub time: std::time::Duration,
}

impl MemoryUse {
    /// Bytes that the model has on the device now, runs that are going on left out.
    pub fn device(&self) -> u64 {
        self.weights + self.idle.device()
    }
}

impl ContextMemory {
    /// All on the device.
    pub fn device(&self) -> u64 {
        self.arena + self.workspace + self.staging
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            arena: self.arena + other.arena,
            workspace: self.workspace + other.workspace,
            staging: self.staging + other.staging,
            pinned: self.pinned + other.pinned,
        }
    }
}
