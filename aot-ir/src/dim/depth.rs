//! A bound on how deep expressions nest when they are read from a file, so that no file can
//! exhaust the stack.

use serde::{Deserialize, Deserializer};
use std::cell::Cell;

/// Expressions nested deeper than this are refused.
const LIMIT: u32 = 96;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// How many expressions deep a graph within a graph counts: loops nest up to six deep, with room for the
/// expressions in them.
const GRAPH: u32 = 12;

/// Some levels of nesting; leaves them when dropped.
struct Level(u32);

impl Level {
    fn enter(deep: u32) -> Option<Self> {
        DEPTH.with(|depth| {
            let next = depth.get() + deep;
            (next <= LIMIT).then(|| {
                depth.set(next);
                Self(deep)
            })
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - self.0));
    }
}

/// Reads what nests one level deeper.
pub(super) fn nested<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deeper(1, deserializer)
}

/// Reads what stands in another thing of its kind, such as the graph of a loop's body; for `serde`'s
/// `deserialize_with`. So no file can exhaust the stack.
///
/// # Errors
/// When it is malformed, or nested too deep.
pub fn nested_graph<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deeper(GRAPH, deserializer)
}

fn deeper<'de, D, T>(levels: u32, deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    match Level::enter(levels) {
        Some(_level) => T::deserialize(deserializer),
        None => Err(serde::de::Error::custom("an expression or a graph nests too deep")),
    }
}

#[cfg(test)]
mod tests {
    use crate::dim::{Atom, Cond, Dim, VarId};

    fn nest(depth: usize) -> Vec<u8> {
        let mut dim = Dim::var(VarId(0));
        for _ in 0..depth {
            dim = Dim::atom(Atom::Min(dim, Dim::ONE));
        }
        postcard::to_allocvec(&dim).unwrap()
    }

    #[test]
    fn deep_files_are_refused_again_and_again() {
        for _ in 0..3 {
            assert!(postcard::from_bytes::<Dim>(&nest(50)).is_ok());
            assert!(postcard::from_bytes::<Dim>(&nest(2000)).is_err());
        }
        // `All` of `All` of …: one byte for the variant and one for the length.
        let mut conds = [1u8, 1].repeat(100_000);
        conds.extend([1, 0]);
        assert!(postcard::from_bytes::<Cond>(&conds).is_err());
    }
}
