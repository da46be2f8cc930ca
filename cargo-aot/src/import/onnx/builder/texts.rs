//! Texts. The graph has none: a tensor of texts is one of integers, the places of its elements in a list that is known
//! when the model is built.

use super::super::tensor::Texts;
use super::tensors::{Builder, OpResult, Tensor, wrong};
use aot_ir::{Bytes, Constant, DType};
use std::rc::Rc;

impl Builder {
    /// Says that the elements of `t` are places in `texts`.
    pub(in super::super) fn stand_for(&mut self, t: Tensor, texts: Rc<[String]>) {
        self.texts.insert(t, texts);
    }

    /// The texts that the elements of `t` stand for.
    pub(in super::super) fn texts_of(&self, t: Tensor) -> Option<Rc<[String]>> {
        self.texts.get(&t).cloned()
    }

    /// A stored tensor of texts.
    pub(in super::super) fn text_constant(&mut self, stored: Texts) -> OpResult {
        let Texts { elements, shape } = stored;
        if shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) != Some(elements.len()) {
            return wrong(format!("{} texts are stored for shape {shape:?}", elements.len()));
        }
        let places = 0..elements.len() as i64;
        let bytes: Vec<u8> = places.flat_map(i64::to_le_bytes).collect();
        let (name, dtype, bytes) = (String::new(), DType::I64, Bytes::from(bytes));
        let t = self.constant(Constant { name, dtype, shape, bytes });
        self.stand_for(t, elements.into());
        Ok(t)
    }
}

/// Whether an operator moves the elements of its first input and does nothing else.
pub(in super::super) fn moves(operator: &str) -> bool {
    const MOVING: [&str; 14] = [
        "ArrayFeatureExtractor",
        "Compress",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Reshape",
        "Slice",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    ];
    MOVING.contains(&operator)
}
