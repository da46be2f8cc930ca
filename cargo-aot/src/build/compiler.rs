//! The compiler as the build sees it: loaded when something needs compiling.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use super::cache::Cache;
use super::digest::{Digest, KeyBuilder};
use super::events::Watch;
use super::nvrtc::{Nvrtc, NvrtcError, Output, Request};
use super::toolchain::{Identity, IdentityError, Toolchain};

/// Compiles programs. Implemented by [`LazyNvrtc`]; tests have others.
pub trait Compiler: Sync {
    /// What makes two compilers the same.
    fn identity(&self) -> &Identity;

    /// Compiles one program. Called from several threads.
    fn compile(&self, request: &Request<'_>) -> Result<Output, NvrtcError>;
}

/// NVRTC, loaded at the first compilation.
#[derive(Debug)]
pub struct LazyNvrtc {
    toolchain: Toolchain,
    identity: Identity,
    loaded: OnceLock<Result<Nvrtc, String>>,
}

impl LazyNvrtc {
    /// A compiler whose identity is asked once and then remembered in the cache, by the sizes
    /// and times of the toolchain's files.
    pub fn new(
        toolchain: Toolchain,
        cache: &Cache,
        watch: &dyn Watch,
    ) -> Result<Self, IdentityError> {
        let key = files_key(&toolchain);
        let lookup = cache.look_up(&key, "the toolchain's identity", watch);
        let remembered = lookup.artifact.and_then(|entry| entry.read().ok());
        let remembered = remembered.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(identity) = remembered {
            return Ok(Self { toolchain, identity, loaded: OnceLock::new() });
        }
        let nvrtc = Nvrtc::load(&toolchain)?;
        let identity = Identity::of(&nvrtc, &toolchain)?;
        if let Ok(bytes) = serde_json::to_vec(&identity) {
            // Not remembering it costs a moment the next time.
            let _ = cache.put(&key, &bytes);
        }
        Ok(Self { toolchain, identity, loaded: OnceLock::from(Ok(nvrtc)) })
    }

    /// The toolchain it is of.
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }
}

impl Compiler for LazyNvrtc {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn compile(&self, request: &Request<'_>) -> Result<Output, NvrtcError> {
        let loaded = self
            .loaded
            .get_or_init(|| Nvrtc::load(&self.toolchain).map_err(|error| error.to_string()));
        match loaded {
            Ok(nvrtc) => nvrtc.compile(request),
            Err(message) => Err(NvrtcError { message: message.clone(), log: String::new() }),
        }
    }
}

/// A key that changes when a file of the toolchain is replaced.
fn files_key(toolchain: &Toolchain) -> Digest {
    let headers = toolchain.include.join("cuda_fp16.h");
    let files: Vec<&Path> =
        [Some(toolchain.library.as_path()), toolchain.builtins.as_deref(), Some(&headers)]
            .into_iter()
            .flatten()
            .collect();
    let mut key = KeyBuilder::new("toolchain identity");
    for file in files {
        // Through links, so that a toolkit's link to another version is noticed.
        let stamp = fs::metadata(file).ok().map(|meta| {
            let time = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            format!("{} {}", meta.len(), time.unwrap_or_default().as_nanos())
        });
        let path = file.to_string_lossy();
        key = key.part(&path, stamp.unwrap_or_default());
    }
    key.finish()
}
