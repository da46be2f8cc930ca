//! Weights from the host to a GPU.

use super::driver::{Block, Pinned, Stream};
use super::layout::Layout;
use crate::program::Program;
use crate::{Error, Result};

/// Bytes that are staged at a time; two such parts are under way.
const STAGE: usize = 8 << 20;

/// Uploads a program's weights, laid out as `layout` says.
pub(super) fn upload_weights(
    stream: &Stream,
    program: &Program,
    layout: &Layout,
    data: &[u8],
) -> Result<Block> {
    let total = size(layout.weight_bytes)?;
    let what = format!("the weights of `{}`", program.model);
    let block = Block::new(stream.gpu(), total, &what)?;
    let stage = STAGE.min(total);
    let mut pinned = [Pinned::new(stream.gpu(), stage)?, Pinned::new(stream.gpu(), stage)?];
    let mut passed = [None, None];
    for (part, start) in (0..total).step_by(stage.max(1)).enumerate() {
        let end = total.min(start + stage);
        if let Some(event) = passed[part % 2].take() {
            let event: std::sync::Arc<super::driver::Event> = event;
            event.synchronize()?;
        }
        fill(program, layout, data, start, &mut pinned[part % 2].as_mut_slice()[..end - start])?;
        block.upload(stream, start, &pinned[part % 2], 0, end - start)?;
        passed[part % 2] = Some(stream.record()?);
    }
    stream.synchronize()?;
    Ok(block)
}

/// Fills `part`, which begins at `start` of the block, with the weights that lie there.
fn fill(
    program: &Program,
    layout: &Layout,
    data: &[u8],
    start: usize,
    part: &mut [u8],
) -> Result<()> {
    let end = start + part.len();
    // Offsets ascend.
    let first = layout.weights.partition_point(|o| *o <= start as u64).saturating_sub(1);
    let rest = program.weights.iter().zip(&layout.weights).skip(first);
    for (weight, &place) in rest.take_while(|(_, place)| **place < end as u64) {
        let elements = weight.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let bytes = size(elements.and_then(|n| weight.dtype.bytes_for(n)).unwrap_or(u64::MAX))?;
        let (place, offset) = (size(place)?, size(weight.offset)?);
        let source = offset.checked_add(bytes).and_then(|end| data.get(offset..end));
        let source = source.ok_or_else(|| {
            let reason = format!("the weights do not hold `{}`", weight.name);
            Error::artifact(format!("the program of `{}`", program.model), reason)
        })?;
        let (from, to) = (place.max(start), (place + bytes).min(end));
        if from < to {
            part[from - start..to - start].copy_from_slice(&source[from - place..to - place]);
        }
    }
    Ok(())
}

fn size(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::artifact("the program", "a weight is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Weight;
    use aot_ir::{DType, Symbols};

    #[test]
    fn parts_of_any_size_hold_the_weights_that_lie_there() {
        let weight = |shape, offset| Weight {
            name: format!("at {offset}"),
            dtype: DType::U8,
            shape: vec![shape],
            offset,
        };
        let program = Program {
            model: "m".into(),
            symbols: Symbols::default(),
            guards: vec![],
            inputs: vec![],
            outputs: vec![],
            weights: vec![weight(300, 64), weight(5, 448), weight(256, 0)],
            buffers: vec![],
            plans: vec![],
            prepare: vec![],
            steps: vec![],
            targets: vec![],
            origins: vec![],
        };
        let data: Vec<u8> = (0..500u32).map(|i| (i * 7 % 251) as u8).collect();
        let layout = Layout::new(&program).unwrap();
        let mut expected = vec![0; layout.weight_bytes as usize];
        for (weight, place) in program.weights.iter().zip([0, 512, 768]) {
            let (from, n) = (weight.offset as usize, weight.shape[0] as usize);
            expected[place..place + n].copy_from_slice(&data[from..from + n]);
        }
        for stage in [1, 7, 64, 300, 4096] {
            let mut all = vec![0; expected.len()];
            for (i, part) in all.chunks_mut(stage).enumerate() {
                fill(&program, &layout, &data, i * stage, part).unwrap();
            }
            assert_eq!(all, expected, "stage {stage}");
        }
        let short = fill(&program, &layout, &data[..400], 0, &mut vec![0; 1024]);
        assert!(short.unwrap_err().to_string().contains("the weights do not hold `at 448`"));
    }
}
