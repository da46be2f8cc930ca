//! The files of a built model, as the generated crate has them.

use std::path::PathBuf;
use std::{fs, io};

use aot_ir::{Arch, Bytes};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{InputRef, OutputRef};

use super::options::{feature, targets};
use crate::manifest::{Manifest, Model};
use crate::npy::Array;

/// What `cargo aot build` made of a model.
#[derive(Debug)]
pub struct Artifacts {
    /// Program and graph.
    pub model: Vec<u8>,
    /// The weights file.
    pub weights: Bytes,
    /// Kernel images.
    pub images: Vec<TargetImages>,
}

/// The images file of a target (`true`: PTX).
pub type TargetImages = ((Arch, bool), Vec<u8>);

fn folder(manifest: &Manifest) -> PathBuf {
    manifest.crate_dir().join("artifacts")
}

impl Artifacts {
    /// Reads the artifacts that lie in the generated crate.
    ///
    /// # Errors
    /// When one of them can't be read, as before the first build.
    pub fn read(manifest: &Manifest, model: &Model) -> io::Result<Self> {
        let folder = folder(manifest);
        let module = &model.rust.module;
        let package = &manifest.package.name.get_ref().package;
        Ok(Self {
            model: fs::read(folder.join(format!("{module}.model")))?,
            weights: fs::read(folder.join(format!("{package}-{module}.weights")))?.into(),
            images: Self::read_images(manifest, model)?,
        })
    }

    /// Reads the kernel images alone.
    ///
    /// # Errors
    /// As [`Artifacts::read`].
    pub fn read_images(manifest: &Manifest, model: &Model) -> io::Result<Vec<TargetImages>> {
        let module = &model.rust.module;
        let images = targets(&manifest.target).into_iter().map(|target| {
            let path = folder(manifest).join(format!("{module}.{}", feature(target)));
            Ok((target, fs::read(path)?))
        });
        images.collect()
    }

    /// The bytes of all images.
    pub fn image_bytes(&self) -> Vec<&[u8]> {
        self.images.iter().map(|(_, bytes)| bytes.as_slice()).collect()
    }

    /// What a model is loaded from; `model` is this artifact's or a variant of it.
    pub fn parts<'a>(&'a self, model: &'a [u8], images: &'a [&'a [u8]]) -> Parts<'a> {
        Parts { model, images, weights: WeightsSource::Bytes(&self.weights), lines: &[] }
    }
}

/// Runs a model once; its outputs in order.
///
/// # Errors
/// When the inputs do not fit, or the device fails.
pub fn run_once(loaded: &Loaded, inputs: &[InputRef<'_>]) -> aot_runtime::Result<Vec<Array>> {
    let sizes = loaded.bind(inputs)?;
    let ports = &loaded.signature().outputs;
    let mut bytes = vec![Vec::new(); ports.len()];
    let mut buffers: Vec<OutputRef<'_>> = ports
        .iter()
        .zip(sizes.outputs())
        .zip(&mut bytes)
        .map(|((port, shape), bytes)| OutputRef::bytes(port.dtype, shape, bytes))
        .collect();
    loaded.run(&sizes, None, inputs, &mut buffers)?;
    let shapes: Vec<Vec<usize>> = buffers.iter().map(|buffer| buffer.shape().to_vec()).collect();
    drop(buffers);
    let arrays = ports.iter().zip(shapes).zip(bytes);
    let arrays = arrays.map(|((port, shape), bytes)| Array { dtype: port.dtype, shape, bytes });
    Ok(arrays.collect())
}
