//! Kernels of equal text, which are compiled once for all who need them.

use std::collections::{BTreeMap, BTreeSet};

use aot_kernels::Arch;

use super::kernels::{Alternative, KernelSource, Origin};
use super::nvrtc::Target;

/// Kernels of equal text.
pub(super) struct Merged<'a> {
    /// The first one's name.
    pub(super) name: &'a str,
    pub(super) alternatives: &'a [Alternative],
    /// Everyone who needs them.
    pub(super) origin: Vec<Origin>,
    /// Architectures to make cubins for.
    archs: Vec<Arch>,
    /// Architectures to make PTX for.
    pub(super) ptx: BTreeSet<Arch>,
    /// Indices of the sources.
    pub(super) members: Vec<usize>,
}

impl Merged<'_> {
    /// What is to be made of them, with the architectures that each image serves.
    pub(super) fn targets(&self) -> Vec<(Target, Vec<Arch>)> {
        let cubins = Arch::images(&self.archs).into_iter();
        let ptx = self.ptx.iter().map(|arch| (Target::Ptx(*arch), Vec::new()));
        cubins.map(|(arch, serves)| (Target::Cubin(arch), serves)).chain(ptx).collect()
    }
}

/// The sources by their texts, in the order of the first of each.
pub(super) fn merge(sources: &[KernelSource]) -> Vec<Merged<'_>> {
    let mut places: BTreeMap<Vec<(&str, &[String])>, usize> = BTreeMap::new();
    let mut merged: Vec<Merged<'_>> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let texts = source.alternatives.iter();
        let texts = texts.map(|each| (each.source.as_str(), each.options.as_slice())).collect();
        let place = *places.entry(texts).or_insert_with(|| {
            merged.push(Merged {
                name: &source.name,
                alternatives: &source.alternatives,
                origin: Vec::new(),
                archs: Vec::new(),
                ptx: BTreeSet::new(),
                members: Vec::new(),
            });
            merged.len() - 1
        });
        let group = &mut merged[place];
        group.members.push(index);
        group.archs.extend(&source.archs);
        group.ptx.extend(source.ptx);
        for origin in &source.origin {
            if !group.origin.contains(origin) {
                group.origin.push(origin.clone());
            }
        }
    }
    merged
}
