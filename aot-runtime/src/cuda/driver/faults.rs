//! What of the driver's errors is a fault, and what it may be in.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use cudarc::driver::sys::CUresult;

use crate::{Fault, Launched};

/// Something that launches kernels.
pub(crate) trait Launches: std::fmt::Debug + Send + Sync {
    /// Those of which one is under way, as far as can be told.
    fn under_way(&self) -> Vec<Launched>;
}

/// The fault of a context, if it had one, and what may be at fault.
#[derive(Debug, Default)]
pub(super) struct Faults {
    first: OnceLock<Arc<Fault>>,
    launching: Mutex<Vec<Weak<dyn Launches>>>,
}

impl Faults {
    /// The context's fault.
    pub(super) fn known(&self) -> Option<&Arc<Fault>> {
        self.first.get()
    }

    /// Asks this one, too, if there is a fault.
    pub(super) fn watch(&self, launches: Weak<dyn Launches>) {
        let mut all = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(launches);
    }

    /// Notes the first fault, which is the one that is told from then on. No thread that calls this holds what
    /// [`Launches::under_way`] waits for.
    pub(super) fn note(&self, gpu: &str, index: usize, reason: String) -> Arc<Fault> {
        let watched = self.launching.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Dropped at the end: if nobody else has them any more, that asks for the fault.
        let watched: Vec<Arc<dyn Launches>> = watched.iter().filter_map(Weak::upgrade).collect();
        let note = || {
            let mut launches: Vec<Launched> = Vec::new();
            for launched in watched.iter().flat_map(|l| l.under_way()) {
                if !launches.contains(&launched) {
                    launches.push(launched);
                }
            }
            Arc::new(Fault { gpu: gpu.to_owned(), index, reason, launches })
        };
        self.first.get_or_init(note).clone()
    }
}

/// Whether an error ends its context: every later call that uses the context fails, too.
pub(super) fn is_fault(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Running(&'static str);

    impl Launches for Running {
        fn under_way(&self) -> Vec<Launched> {
            let (model, kernel) = (self.0.to_owned(), "k".to_owned());
            vec![Launched { model, kernel, nodes: Vec::new() }; 2]
        }
    }

    #[test]
    fn the_first_fault_stays_and_tells_what_was_launched() {
        let faults = Faults::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| Arc::new(Running(name)));
        for running in [&a, &b, &c] {
            let weak: Weak<dyn Launches> = Arc::<Running>::downgrade(running);
            faults.watch(weak);
        }
        drop(b);
        assert!(faults.known().is_none());
        let fault = faults.note("GPU", 3, "bad".to_owned());
        let models: Vec<&str> = fault.launches.iter().map(|l| l.model.as_str()).collect();
        assert_eq!((models.as_slice(), fault.index), (["a", "c"].as_slice(), 3));
        assert_eq!(faults.note("GPU", 3, "worse".to_owned()).reason, "bad");
        assert_eq!(faults.known().map(|f| &*f.reason), Some("bad"));
    }
}
