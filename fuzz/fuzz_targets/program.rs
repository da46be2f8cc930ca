//! What the run time reads: programs, graphs and artifacts of any bytes. A value or an error, never
//! a panic. The first byte says what the others are.
#![no_main]

use aot_runtime::artifact::{ImagesFile, decode_graph, decode_program};
use aot_runtime::loaded::{Loaded, Parts, Signature, WeightsSource};
use aot_runtime::Device;
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 4 {
        0 => {
            if let Ok(program) = decode_program(bytes) {
                bind(&Signature::of_program(&program));
            }
        }
        1 => {
            if let Ok(graph) = decode_graph(bytes) {
                bind(&Signature::of_graph(&graph));
            }
        }
        2 => {
            let file = with_checksums(bytes.to_vec());
            if let Ok(images) = ImagesFile::open(&file) {
                for key in images.keys() {
                    let _ = images.get(&key);
                }
            }
        }
        _ => model(bytes),
    }
});

/// Loads an artifact of a model, with the weights that follow it. The first two bytes say where
/// those begin.
fn model(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let middle = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (model, weights) = rest.split_at(middle);
    let (model, weights) = (with_checksums(model.to_vec()), with_checksums(weights.to_vec()));
    let weights = aot_ir::Bytes::from(weights);
    let source = WeightsSource::Bytes(&weights);
    let parts = Parts { model: &model, images: &[], weights: source, lines: &[] };
    let Ok(device) = Device::cpu() else { return };
    if let Ok(loaded) = Loaded::load(&device, &parts) {
        bind(loaded.signature());
    }
}

/// Evaluates what a run with the least and with the greatest sizes would.
fn bind(signature: &Signature) {
    let least = signature.symbols.iter().map(|(_, symbol)| symbol.lo).collect();
    let greatest = signature.symbols.iter().map(|(_, symbol)| symbol.hi).collect();
    for atoms in [least, greatest] as [Vec<i64>; 2] {
        for port in signature.inputs.iter().chain(&signature.outputs) {
            port.shape.iter().for_each(|dim| drop(dim.eval(atoms.as_slice())));
        }
        for guard in &signature.guards {
            let _ = guard.check(&signature.symbols, &atoms);
        }
    }
}

/// The same file with the checksums that its bytes have, so that what they guard is reached.
fn with_checksums(mut file: Vec<u8>) -> Vec<u8> {
    const HEADER: usize = 32;
    const ENTRY: usize = 72;
    if file.len() < HEADER {
        return file;
    }
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, b| (n << 8) | u64::from(*b));
    let count = word(&file[16..20]) as usize;
    let end = HEADER + ENTRY * count.min((file.len() - HEADER) / ENTRY);
    for entry in (HEADER..end).step_by(ENTRY) {
        let (start, length) = (word(&file[entry + 40..][..8]), word(&file[entry + 48..][..8]));
        let section = usize::try_from(start).ok().zip(usize::try_from(length).ok());
        let section = section.and_then(|(s, n)| file.get(s..s.checked_add(n)?));
        // Of no more than a MiB, which sections are here.
        if let Some(checksum) = section.map(xxh3_64) {
            file[entry + 64..][..8].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let mut hash = Xxh3::new();
    hash.update(&file[..24]);
    hash.update(&file[HEADER..end]);
    let checksum = hash.digest();
    file[24..32].copy_from_slice(&checksum.to_le_bytes());
    file
}
