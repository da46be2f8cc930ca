//! How a tensor of state lies in memory.

use aot_ir::DType;
use half::{bf16, f16};

use crate::program::{AppendedState, Port};
use crate::{Error, Result};

/// Row-major, or row-major with room along an axis.
#[derive(Debug)]
pub(super) struct Layout {
    /// The type that the model has, and that of memory.
    types: (DType, DType),
    /// Blocks that lie apart.
    blocks: usize,
    /// Elements of one, and from one to the next.
    run: usize,
    pitch: usize,
}

impl Layout {
    /// Of a tensor of this shape.
    pub(super) fn new(
        port: &Port,
        appended: Option<AppendedState>,
        shape: &[usize],
    ) -> Result<Self> {
        let product = |extents: &[usize]| {
            crate::tensor::elements_of(extents)
                .ok_or(Error::Elements { found: 0, shape: shape.to_vec() })
        };
        let Some(AppendedState { axis, capacity, dtype }) = appended else {
            let all = product(shape)?;
            return Ok(Self { types: (port.dtype, port.dtype), blocks: 1, run: all, pitch: all });
        };
        let (axis, capacity) = (axis as usize, capacity as usize);
        let inside = product(shape.get(axis + 1..).unwrap_or_default())?;
        let room = [&shape[..axis], &[capacity, inside]].concat();
        product(&room)?;
        let layout = Self {
            types: (port.dtype, dtype),
            blocks: product(&shape[..axis])?,
            run: shape[axis].min(capacity) * inside,
            pitch: capacity * inside,
        };
        let known = port.dtype == dtype
            || (port.dtype == DType::F32 && matches!(dtype, DType::F16 | DType::Bf16));
        match known && shape[axis] <= capacity {
            true => Ok(layout),
            false => Err(Error::artifact("the program", "state does not lie where it fits")),
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        bytes(self.types.1, self.blocks * self.pitch)
    }

    /// What memory holds, of row-major elements.
    pub(super) fn spread(&self, tensor: &[u8]) -> Vec<u8> {
        let tensor = narrowed(tensor, self.types);
        let (run, pitch) = (bytes(self.types.1, self.run), bytes(self.types.1, self.pitch));
        let mut memory = vec![0; self.bytes()];
        if run > 0 {
            for (to, from) in memory.chunks_mut(pitch).zip(tensor.chunks(run)) {
                to[..from.len()].copy_from_slice(from);
            }
        }
        memory
    }

    /// Row-major elements, of what memory holds.
    pub(super) fn gather(&self, memory: &[u8]) -> Vec<u8> {
        let (run, pitch) = (bytes(self.types.1, self.run), bytes(self.types.1, self.pitch));
        let mut tensor = Vec::with_capacity(self.blocks * run);
        if run > 0 {
            memory.chunks(pitch).for_each(|from| tensor.extend_from_slice(&from[..run]));
        }
        widened(tensor, self.types)
    }
}

fn bytes(dtype: DType, elements: usize) -> usize {
    dtype.bytes_for(elements as u64).unwrap_or(0) as usize
}

fn narrowed(tensor: &[u8], types: (DType, DType)) -> Vec<u8> {
    let (floats, _) = tensor.as_chunks::<4>();
    let floats = floats.iter().map(|bytes| f32::from_le_bytes(*bytes));
    match types {
        (DType::F32, DType::F16) => floats.flat_map(|x| f16::from_f32(x).to_le_bytes()).collect(),
        (DType::F32, DType::Bf16) => floats.flat_map(|x| bf16::from_f32(x).to_le_bytes()).collect(),
        _ => tensor.to_vec(),
    }
}

fn widened(tensor: Vec<u8>, types: (DType, DType)) -> Vec<u8> {
    let (words, _) = tensor.as_chunks::<2>();
    let words = words.iter();
    let wide = |x: f32| x.to_le_bytes();
    match types {
        (DType::F32, DType::F16) => {
            words.flat_map(|w| wide(f16::from_le_bytes(*w).to_f32())).collect()
        }
        (DType::F32, DType::Bf16) => {
            words.flat_map(|w| wide(bf16::from_le_bytes(*w).to_f32())).collect()
        }
        _ => tensor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(dtype: DType) -> Port {
        Port { name: "past".into(), dtype, shape: Vec::new() }
    }

    #[test]
    fn rows_lie_apart_with_room_for_more() {
        let appended = AppendedState { axis: 1, capacity: 3, dtype: DType::U8 };
        let layout = Layout::new(&port(DType::U8), Some(appended), &[2, 2, 2]).unwrap();
        let tensor = [1, 2, 3, 4, 5, 6, 7, 8];
        let memory = layout.spread(&tensor);
        assert_eq!(memory, [1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0]);
        assert_eq!(layout.gather(&memory), tensor);
        let empty = Layout::new(&port(DType::U8), Some(appended), &[2, 0, 2]).unwrap();
        assert_eq!((empty.spread(&[]), empty.gather(&memory)), (vec![0; 12], Vec::new()));
        assert!(Layout::new(&port(DType::U8), Some(appended), &[2, 4, 2]).is_err());
    }

    #[test]
    fn narrower_elements_come_back_as_they_were_kept() {
        let appended = AppendedState { axis: 0, capacity: 4, dtype: DType::F16 };
        let layout = Layout::new(&port(DType::F32), Some(appended), &[2]).unwrap();
        let tensor: Vec<u8> = [0.5f32, -3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let memory = layout.spread(&tensor);
        assert_eq!((memory.len(), layout.bytes()), (8, 8));
        assert_eq!(layout.gather(&memory), tensor);
    }
}
