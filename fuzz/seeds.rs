//! Writes inputs for the target `program` to start from: programs, graphs and artifacts of the
//! networks that the workspace's tests have.
//!
//! usage: `seeds FOLDER`

use aot_runtime::artifact::{ImagesInfo, Packing, WeightsLayout, write_images, write_model};
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use std::error::Error;
use std::path::PathBuf;

/// Networks with more constants than this, in bytes, make seeds that are too long.
const MOST: u64 = 8 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: seeds FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    let arch = "sm_90a".parse()?;
    for case in aot_tests::cases::all() {
        let name = case.name.replace('/', "-");
        let save = |what: &str, kind: u8, parts: &[&[u8]]| {
            let mut bytes = vec![kind];
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
            std::fs::write(folder.join(format!("{name}-{what}")), bytes)
        };
        let options = LowerOptions { precision: Precision::F16, precision_for: Vec::new() };
        let plan = lower(&case.graph, &options)?;
        let targets = [(arch, false)];
        let assembled =
            assemble(&plan, &case.name, &targets, &[], &aot_kernels::kernels_for)?;
        let program = assembled.program;
        save("program", 0, &[&postcard::to_allocvec(&program)?])?;
        save("graph", 1, &[&postcard::to_allocvec(&case.graph)?])?;
        let layout = WeightsLayout::new(&case.graph);
        if layout.bytes() > MOST {
            continue;
        }
        let info = ImagesInfo { arch, ptx: false, driver: 12000 };
        let images = assembled.kernels.iter().map(|k| (k.key, k.kernel.entry.as_bytes()));
        save("images", 2, &[&write_images(info, Packing::Compressed, images)?])?;
        let (weights, id) = layout.write(&case.graph);
        let model = write_model(&program, &case.graph, &layout, &id)?;
        let Ok(length) = u16::try_from(model.len()) else { continue };
        save("model", 3, &[&length.to_le_bytes(), &model, &weights])?;
    }
    Ok(())
}
