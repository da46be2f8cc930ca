//! Properties of kernel texts.

use super::cases::{bias_gelu, maps, reductions};
use super::scans::scans;
use aot_ir::{Arch, DType, Symbols};
use aot_kernels::kernels_for;

fn source(group: &aot_kernels::group::Group) -> String {
    let kernels = kernels_for(group, &Symbols::default(), Arch::of_capability(80));
    kernels.unwrap_or_else(|e| panic!("{e}"))[0].source.clone()
}

#[test]
fn text_depends_on_structure_alone() {
    let [small, large] = [(64, 384), (4096, 1536)].map(|(r, c)| {
        let mut group = bias_gelu(DType::F16, r, c);
        group.label = format!("layer {c}");
        // Many places: the sizes do not decide the schedule.
        group.extents[0] = (r * 100).into();
        source(&group)
    });
    assert_eq!(small, large);
    assert!(!small.contains("layer") && !small.contains("384"));
    assert_ne!(small, source(&bias_gelu(DType::Bf16, 6400, 384)));
}

#[test]
fn every_case_has_a_kernel() {
    let folder = std::env::var_os("AOT_KERNEL_TEXTS");
    for case in maps().into_iter().chain(reductions()).chain(scans()) {
        let kernels = kernels_for(&case.group, &case.symbols, Arch::of_capability(80));
        let kernels = kernels.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        for (i, kernel) in kernels.iter().enumerate() {
            if let Some(folder) = &folder {
                let path = std::path::Path::new(folder).join(format!("{}_{i}.cu", case.name));
                std::fs::write(path, &kernel.source).unwrap();
            }
        }
        assert!(kernels.last().is_some_and(|k| k.when.is_always()), "{}", case.name);
    }
}
