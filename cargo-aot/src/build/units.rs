//! Units of a build: artifacts with fingerprints.
//!
//! A unit's key is made of the content of everything it is made from: files, options, other
//! units' artifacts, and the version of this tool. Its artifact lies in the cache under that
//! key, so a unit whose inputs are as they were is not made again, also when they changed and
//! changed back. A unit that is made again with the same result leaves those after it alone,
//! since they depend on its artifact, not on its key.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::atomic;
use super::cache::{Cache, CacheError, Entry, Sink};
use super::code_version;
use super::digest::{Digest, KeyBuilder};
use super::events::{Event, Watch};

/// How the input that stands for this tool itself is called.
const TOOL: &str = "cargo-aot itself";

/// What a unit is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId {
    /// `import`, `plan`, `kernels`, `weights` or `crate`.
    pub kind: &'static str,
    /// The model, or whatever distinguishes units of a kind.
    pub name: String,
}

impl UnitId {
    /// A name for a unit.
    pub fn new(kind: &'static str, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

impl std::fmt::Display for UnitId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}

/// What a unit is made from, by names that `--explain` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs(BTreeMap<String, Digest>);

impl Inputs {
    /// No inputs yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file by its content.
    #[must_use]
    pub fn file(self, path: &Path, content: Digest) -> Self {
        self.add(path.display().to_string(), content)
    }

    /// Adds an option by its value. Equal values must serialise equally, so no hash maps.
    #[must_use]
    pub fn option<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Self {
        // What postcard cannot serialise are iterators of unknown length, which no value has.
        let bytes = postcard::to_stdvec(value).unwrap_or_default();
        self.add(format!("`{name}`"), Digest::of(&bytes))
    }

    /// Adds another unit by its artifact.
    #[must_use]
    pub fn unit(self, id: &UnitId, artifact: Digest) -> Self {
        self.add(id.to_string(), artifact)
    }

    fn add(mut self, name: String, digest: Digest) -> Self {
        self.0.insert(name, digest);
        self
    }

    fn key(&self, id: &UnitId) -> Digest {
        let mut key = KeyBuilder::new("unit").part("kind", id.kind).part("name", &id.name);
        for (name, digest) in &self.0 {
            key = key.part(name, digest.as_bytes());
        }
        key.finish()
    }

    /// What changed between two sets of inputs.
    fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for (name, digest) in &self.0 {
            match before.0.get(name) {
                None => changes.push(format!("{name} is new")),
                Some(old) if old != digest => changes.push(format!("{name} changed")),
                Some(_) => {}
            }
        }
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        changes.extend(gone.map(|name| format!("{name} is no longer used")));
        changes
    }
}

/// What went wrong with a unit apart from making it.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// Its artifact could not be kept.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Its artifact could not be read back.
    #[error("cannot read the artifact of {unit}: {reason}; `cargo aot clean` removes it")]
    Read {
        /// The unit.
        unit: String,
        /// What is wrong.
        reason: String,
    },
    /// Its artifact could not be serialised.
    #[error("cannot serialise the artifact of {unit}: {reason}")]
    Encode {
        /// The unit.
        unit: String,
        /// What is wrong.
        reason: String,
    },
}

/// An artifact that is a value.
#[derive(Debug)]
pub struct Unit<T> {
    id: UnitId,
    entry: Entry,
    fresh: bool,
    value: OnceLock<T>,
}

impl<T> Unit<T> {
    /// Its name.
    pub fn id(&self) -> &UnitId {
        &self.id
    }

    /// The digest of the artifact.
    pub fn digest(&self) -> Digest {
        self.entry.digest()
    }

    /// Whether it was there already.
    pub fn fresh(&self) -> bool {
        self.fresh
    }
}

impl<T: DeserializeOwned> Unit<T> {
    /// The value, read when it is first asked for.
    pub fn get(&self) -> Result<&T, UnitError> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = self.decode()?;
        Ok(self.value.get_or_init(|| value))
    }

    /// The value itself.
    pub fn into_value(self) -> Result<T, UnitError> {
        let decoded = if self.value.get().is_none() { Some(self.decode()?) } else { None };
        match (self.value.into_inner(), decoded) {
            (Some(value), _) | (None, Some(value)) => Ok(value),
            (None, None) => Err(read_error(&self.id, &"it vanished")),
        }
    }

    fn decode(&self) -> Result<T, UnitError> {
        let bytes = self.entry.read().map_err(|error| read_error(&self.id, &error))?;
        postcard::from_bytes(&bytes).map_err(|error| read_error(&self.id, &error))
    }
}

fn read_error(id: &UnitId, reason: &dyn std::fmt::Display) -> UnitError {
    UnitError::Read { unit: id.to_string(), reason: reason.to_string() }
}

/// An artifact that is a file, such as weights.
#[derive(Debug)]
pub struct Blob {
    /// The artifact.
    pub entry: Entry,
    /// Whether it was there already.
    pub fresh: bool,
}

/// The units of a build. Can be used from several threads.
pub struct Units<'a> {
    cache: &'a Cache,
    watch: &'a dyn Watch,
    record: PathBuf,
    inputs: Mutex<BTreeMap<String, Inputs>>,
}

impl std::fmt::Debug for Units<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Units").field("cache", self.cache).finish_non_exhaustive()
    }
}

impl<'a> Units<'a> {
    /// Units whose artifacts lie in a cache. `record` is a file in which the inputs of each are
    /// noted, to say later what changed.
    pub fn new(cache: &'a Cache, watch: &'a dyn Watch, record: PathBuf) -> Self {
        let noted = fs::read(&record).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { cache, watch, record, inputs: Mutex::new(noted.unwrap_or_default()) }
    }

    /// The artifact of a unit, made by `make` unless it is there. `make` must depend on nothing
    /// but the inputs.
    pub fn build<T, E>(
        &self,
        id: &UnitId,
        inputs: Inputs,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Unit<T>, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<UnitError>,
    {
        let value = OnceLock::new();
        let (entry, fresh) = self.ensure(id, inputs, |key| -> Result<Entry, E> {
            let made = make()?;
            let bytes = postcard::to_stdvec(&made).map_err(|error| UnitError::Encode {
                unit: id.to_string(),
                reason: error.to_string(),
            })?;
            let entry = self.cache.put(key, &bytes).map_err(UnitError::from)?;
            let _ = value.set(made);
            Ok(entry)
        })?;
        Ok(Unit { id: id.clone(), entry, fresh, value })
    }

    /// The same for an artifact that `make` writes as a stream.
    pub fn build_blob<E>(
        &self,
        id: &UnitId,
        inputs: Inputs,
        make: impl FnOnce(&mut Sink<'_>) -> Result<(), E>,
    ) -> Result<Blob, E>
    where
        E: From<UnitError> + From<io::Error>,
    {
        /// The caller's error, which need not know the cache's.
        struct Wrapped<E>(E);
        impl<E: From<UnitError>> From<CacheError> for Wrapped<E> {
            fn from(error: CacheError) -> Self {
                Self(UnitError::from(error).into())
            }
        }
        let (entry, fresh) = self.ensure(id, inputs, |key| {
            let written = self.cache.put_with(key, |sink| make(sink).map_err(Wrapped));
            written.map_err(|Wrapped(error)| error)
        })?;
        Ok(Blob { entry, fresh })
    }

    fn ensure<E>(
        &self,
        id: &UnitId,
        inputs: Inputs,
        make: impl FnOnce(&Digest) -> Result<Entry, E>,
    ) -> Result<(Entry, bool), E> {
        let inputs = inputs.add(TOOL.to_owned(), code_version());
        let key = inputs.key(id);
        let started = Instant::now();
        let lookup = self.cache.look_up(&key, id, self.watch);
        let why = if lookup.damaged.is_empty() {
            self.why(id, &inputs)
        } else {
            vec!["its artifact was damaged".to_owned()]
        };
        let fresh = lookup.artifact.is_some();
        let entry = match lookup.artifact {
            Some(entry) => entry,
            None => make(&key)?,
        };
        self.note(id, inputs);
        self.watch.event(Event::Unit {
            kind: id.kind.to_owned(),
            name: id.name.clone(),
            fresh,
            why: if fresh { Vec::new() } else { why },
            millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        Ok((entry, fresh))
    }

    /// Why a unit that is not in the cache is not.
    fn why(&self, id: &UnitId, inputs: &Inputs) -> Vec<String> {
        let noted = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.get(&id.to_string()) {
            None => vec!["never built here".to_owned()],
            Some(before) => {
                let changes = inputs.changes_since(before);
                if changes.is_empty() {
                    vec!["its artifact is no longer in the cache".to_owned()]
                } else {
                    changes
                }
            }
        }
    }

    fn note(&self, id: &UnitId, inputs: Inputs) {
        let mut noted = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(&id.to_string()) == Some(&inputs) {
            return;
        }
        noted.insert(id.to_string(), inputs);
        if let Ok(bytes) = serde_json::to_vec(&*noted) {
            // Without the note the next explanation is poorer, nothing else.
            let _ = atomic::write(&self.record, &[&bytes]);
        }
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
