use super::*;
use crate::build::events::tests::Recorder;
use std::io::{Read, Write};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Unit(#[from] UnitError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("refused")]
    Refused,
}

struct Bench {
    dir: tempfile::TempDir,
    cache: Cache,
    watch: Recorder,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("cache"), None);
        Self { dir, cache, watch: Recorder::default() }
    }

    fn units(&self) -> Units<'_> {
        Units::new(&self.cache, &self.watch, self.dir.path().join("units.json"))
    }

    /// Two units in a row: the number of words of a text, and whether that number is even.
    fn run(&self, text: &str, option: u32) -> bool {
        let units = self.units();
        let count_id = UnitId::new("count", "words");
        let source = Path::new("words.txt");
        let inputs = Inputs::new().file(source, Digest::of(text.as_bytes()));
        let words = || text.split_whitespace().count();
        let count = units.build(&count_id, inputs, || Ok::<_, Error>(words() as u64)).unwrap();
        let inputs = Inputs::new().unit(&count_id, count.digest()).option("modulus", &option);
        let even = units.build(&UnitId::new("even", "words"), inputs, || {
            Ok::<_, Error>(*count.get()? % u64::from(option) == 0)
        });
        even.unwrap().into_value().unwrap()
    }

    /// The units made, each with the reasons.
    fn made(&self) -> Vec<String> {
        let events = self.watch.take().into_iter();
        events
            .filter_map(|event| match event {
                Event::Unit { kind, why, fresh: false, .. } => {
                    Some(format!("{kind}: {}", why.join(", ")))
                }
                _ => None,
            })
            .collect()
    }
}

#[test]
fn units_are_made_when_what_they_depend_on_changes() {
    let bench = Bench::new();
    assert!(!bench.run("a b c", 2));
    assert_eq!(bench.made(), ["count: never built here", "even: never built here"]);
    assert!(!bench.run("a b c", 2));
    assert_eq!(bench.made(), [""; 0]);
    // The count is the same, so what follows is left alone.
    assert!(!bench.run("d e f", 2));
    assert_eq!(bench.made(), ["count: words.txt changed"]);
    assert!(bench.run("d e f", 3));
    assert_eq!(bench.made(), ["even: `modulus` changed"]);
    assert!(bench.run("d e", 2));
    assert_eq!(
        bench.made(),
        ["count: words.txt changed", "even: `modulus` changed, count `words` changed"]
    );
    // As it was before: everything is still there.
    assert!(!bench.run("a b c", 2));
    assert_eq!(bench.made(), [""; 0]);
}

#[test]
fn a_cleared_or_damaged_cache_is_explained() {
    let bench = Bench::new();
    bench.run("a", 2);
    bench.made();
    crate::build::cache::clear(bench.cache.local()).unwrap();
    bench.run("a", 2);
    let gone = "its artifact is no longer in the cache";
    assert_eq!(bench.made(), [format!("count: {gone}"), format!("even: {gone}")]);

    for group in fs::read_dir(bench.cache.local()).unwrap().flatten() {
        for file in fs::read_dir(group.path()).unwrap().flatten() {
            let mut bytes = fs::read(file.path()).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(file.path(), bytes).unwrap();
        }
    }
    bench.run("a", 2);
    let damaged = "its artifact was damaged";
    assert_eq!(bench.made(), [format!("count: {damaged}"), format!("even: {damaged}")]);
}

#[test]
fn a_unit_that_fails_leaves_nothing() {
    let bench = Bench::new();
    let id = UnitId::new("count", "words");
    let result = bench.units().build(&id, Inputs::new(), || Err::<u32, _>(Error::Refused));
    assert!(matches!(result, Err(Error::Refused)));
    let unit = bench.units().build(&id, Inputs::new(), || Ok::<u32, Error>(7)).unwrap();
    assert!(!unit.fresh());
    let unit = bench.units().build(&id, Inputs::new(), || Err::<u32, _>(Error::Refused)).unwrap();
    assert!(unit.fresh());
    assert_eq!(*unit.get().unwrap(), 7);
}

#[test]
fn blobs_are_streams() {
    let bench = Bench::new();
    let id = UnitId::new("weights", "m");
    let big = vec![5_u8; 3_000_000];
    let blob = bench.units().build_blob(&id, Inputs::new(), |sink| {
        big.chunks(70_001).try_for_each(|chunk| sink.write_all(chunk)).map_err(Error::Io)
    });
    let blob = blob.unwrap();
    assert_eq!((blob.entry.length(), blob.entry.digest()), (3_000_000, Digest::of(&big)));
    let mut read = Vec::new();
    blob.entry.open().unwrap().read_to_end(&mut read).unwrap();
    assert!(read == big);
    let again = bench.units().build_blob(&id, Inputs::new(), |_| Err(Error::Refused)).unwrap();
    assert!(again.fresh);
}
