//! Faults of GPUs.

use std::fmt;

/// Set to 1, runs wait for each of their kernels, so that a [`Fault`] names the one that is at fault.
#[cfg(feature = "cuda")]
pub(crate) const LAUNCH_BLOCKING: &str = "AOT_LAUNCH_BLOCKING";

/// Launches that a message names one by one, at most.
const NAMED: usize = 4;

/// Why a GPU can't go on: a kernel did what it must not do, or the hardware failed.
///
/// All that was on the [`Device`](crate::Device) is lost, and each of its models, sessions, tensors and
/// streams gives this error from then on. They can be dropped as ever. [`Device::cuda`](crate::Device::cuda)
/// gives a fresh device, if the driver does: some do once everything of the lost one is dropped, and some
/// only in another process. Where the driver gives none, as driver 580, that call fails with
/// [`Error::Driver`](crate::Error::Driver).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// `NVIDIA H200`
    pub gpu: String,
    /// Its number.
    pub index: usize,
    /// The driver's name for it, and what that means.
    pub reason: String,
    /// The launch at fault is one of these: of each execution context that was running, the launch that began last, and
    /// the one after it, which may have begun without having told so (several, where there are loops, or runs of
    /// other sizes behind). It is the only one where `AOT_LAUNCH_BLOCKING` is 1. None if no model was
    /// running: then it was another user of the GPU in this process, or the hardware.
    pub launches: Vec<Launched>,
}

/// A kernel that a model launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launched {
    /// The model's name in Aot.toml.
    pub model: String,
    /// The kernel, as `cargo aot inspect` lists it.
    pub kernel: String,
    /// Nodes of the source model that it computes.
    pub nodes: Vec<String>,
}

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}` of `{}`", self.kernel, self.model)?;
        let shown: Vec<String> = self.nodes.iter().take(NAMED).map(|n| format!("`{n}`")).collect();
        match self.nodes.len() {
            0 => Ok(()),
            1 => write!(f, " (node {})", shown[0]),
            n if n <= NAMED => write!(f, " (nodes {})", shown.join(", ")),
            n => write!(f, " (nodes {} and {} more)", shown.join(", "), n - NAMED),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gpu, index, reason, launches } = self;
        write!(f, "{gpu} (number {index}) had a fault ")?;
        match launches.as_slice() {
            [] => write!(f, "while no model was running")?,
            few if few.len() <= NAMED => {
                let each: Vec<String> = few.iter().map(Launched::to_string).collect();
                write!(f, "in {}", each.join(" or "))?;
            }
            many => {
                let mut models: Vec<(&str, usize)> = Vec::new();
                for Launched { model, .. } in many {
                    match models.iter_mut().find(|(name, _)| name == model) {
                        Some((_, count)) => *count += 1,
                        None => models.push((model, 1)),
                    }
                }
                let each = models.iter().map(|(model, count)| format!("{count} of `{model}`"));
                let each: Vec<String> = each.collect();
                write!(f, "in one of these launches: {}", each.join(", "))?;
                write!(f, " (with AOT_LAUNCH_BLOCKING=1 a run tells which)")?;
            }
        }
        write!(f, ": {reason}; all that was on it is lost: ")?;
        write!(f, "drop it, and load models on a fresh `Device::cuda({index})`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(model: &str, kernel: &str, nodes: &[&str]) -> Launched {
        let nodes = nodes.iter().map(|n| (*n).to_owned()).collect();
        Launched { model: model.to_owned(), kernel: kernel.to_owned(), nodes }
    }

    #[test]
    fn the_message_names_launches_while_they_are_few() {
        let (gpu, reason) = ("NVIDIA H200".to_owned(), "CUDA_ERROR_ASSERT".to_owned());
        let fault =
            |launches| Fault { gpu: gpu.clone(), index: 1, reason: reason.clone(), launches };
        let remedy = ": CUDA_ERROR_ASSERT; all that was on it is lost: drop it, and load models on \
                      a fresh `Device::cuda(1)`";
        let text = |launches| {
            let text = fault(launches).to_string();
            let text = text.strip_suffix(remedy).expect("the remedy").to_owned();
            text.strip_prefix("NVIDIA H200 (number 1) had a fault ").expect("the GPU").to_owned()
        };
        assert_eq!(text(vec![]), "while no model was running");
        let (one, five) = (launched("a", "map_1", &["x"]), ["1", "2", "3", "4", "5"]);
        assert_eq!(text(vec![one.clone()]), "in kernel `map_1` of `a` (node `x`)");
        assert_eq!(
            text(vec![one.clone(), launched("b", "map_2", &five)]),
            "in kernel `map_1` of `a` (node `x`) or kernel `map_2` of `b` (nodes `1`, `2`, `3`, `4` \
             and 1 more)"
        );
        let mut many = vec![one; 4];
        many.push(launched("b", "map_2", &five[..2]));
        assert_eq!(
            text(many),
            "in one of these launches: 4 of `a`, 1 of `b` (with AOT_LAUNCH_BLOCKING=1 a run tells \
             which)"
        );
    }
}
