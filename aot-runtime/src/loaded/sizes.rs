//! The sizes of one run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Error, Result};

/// What follows from the sizes of a run's inputs; kept for runs of the same sizes.
#[derive(Debug)]
pub struct Sizes {
    /// The symbols' atoms by id.
    atoms: Vec<i64>,
    /// The number of the [`Recent`] that they were made for.
    made_for: u64,
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
    open: Vec<bool>,
    /// Launches up to the first size that the run computes.
    #[cfg(feature = "cuda")]
    pub(crate) launches: std::sync::OnceLock<crate::cuda::Evaluated>,
    /// All launches, where the GPU decides what data decide; none where it may not.
    #[cfg(feature = "cuda")]
    pub(crate) decided: std::sync::OnceLock<Option<crate::cuda::Evaluated>>,
}

impl Sizes {
    pub(super) fn new(
        atoms: Vec<i64>,
        inputs: Vec<Vec<usize>>,
        outputs: Vec<Vec<usize>>,
        open: Vec<bool>,
    ) -> Self {
        Self {
            atoms,
            made_for: 0,
            inputs,
            outputs,
            open,
            #[cfg(feature = "cuda")]
            launches: std::sync::OnceLock::new(),
            #[cfg(feature = "cuda")]
            decided: std::sync::OnceLock::new(),
        }
    }

    /// The symbols' atoms by id; the greatest of those that the run binds.
    pub fn atoms(&self) -> &[i64] {
        &self.atoms
    }

    /// The shapes of inputs, in order.
    pub(super) fn inputs(&self) -> &[Vec<usize>] {
        &self.inputs
    }

    /// The shapes of outputs, in order. Extents that the run computes are 0 here.
    pub fn outputs(&self) -> &[Vec<usize>] {
        &self.outputs
    }

    /// Whether the size of an output is known only after the run.
    pub fn is_open(&self, index: usize) -> bool {
        self.open.get(index).copied().unwrap_or(false)
    }

    /// The shape of an output of rank `R`. Extents that the run computes are 0.
    ///
    /// # Errors
    /// When there is no such output or its rank is another.
    pub fn output<const R: usize>(&self, index: usize) -> Result<[usize; R]> {
        let expected = self.outputs.len();
        let count = Error::Count { what: "outputs", found: index + 1, expected };
        let shape = self.outputs.get(index).ok_or(count)?;
        shape.as_slice().try_into().map_err(|_| Error::OutputShape {
            output: format!("number {index}"),
            found: vec![0; R],
            expected: shape.clone(),
        })
    }
}

/// The sizes of the last runs of a model, the most recent ones first.
#[derive(Debug)]
pub(super) struct Recent {
    /// One that no other model has, ever.
    number: u64,
    kept: Mutex<Vec<Arc<Sizes>>>,
}

impl Default for Recent {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), kept: Mutex::default() }
    }
}

/// How many different sizes are kept.
const KEPT: usize = 32;

impl Recent {
    /// The sizes with these atoms, made if they are not kept.
    pub(super) fn get(
        &self,
        atoms: Vec<i64>,
        make: impl FnOnce(Vec<i64>) -> Result<Sizes>,
    ) -> Result<Arc<Sizes>> {
        let kept = || self.kept.lock().map_err(|_| Error::Poisoned("the sizes of recent runs"));
        {
            let mut kept = kept()?;
            if let Some(at) = kept.iter().position(|s| s.atoms == atoms) {
                kept[..=at].rotate_right(1);
                return Ok(kept[0].clone());
            }
        }
        let sizes = Arc::new(Sizes { made_for: self.number, ..make(atoms)? });
        let mut kept = kept()?;
        let oldest = if kept.len() < KEPT { None } else { kept.pop() };
        kept.insert(0, sizes.clone());
        // Other threads do not wait until it is freed.
        drop(kept);
        drop(oldest);
        Ok(sizes)
    }

    /// Whether sizes are of this model.
    pub(super) fn made(&self, sizes: &Sizes) -> bool {
        sizes.made_for == self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_sizes_are_kept_and_the_oldest_go() {
        let recent = Recent::default();
        let made = std::cell::Cell::new(0);
        let get = |n: i64| {
            let make = |atoms| {
                made.set(made.get() + 1);
                Ok(Sizes::new(atoms, vec![], vec![], vec![]))
            };
            assert_eq!(recent.get(vec![n], make).unwrap().atoms(), [n]);
        };
        (0..KEPT as i64).for_each(get);
        (0..KEPT as i64).for_each(get);
        assert_eq!(made.get(), KEPT);
        get(-1);
        get(KEPT as i64 - 1);
        assert_eq!(made.get(), KEPT + 1);
        get(0);
        assert_eq!(made.get(), KEPT + 2);
    }
}
