//! Sentences as unit vectors: the model's token states, averaged over the tokens of each sentence.

use aot_runtime::{Device, Tensor, TensorView};
use models::minilm::{Inputs, Minilm};

use crate::wordpiece::WordPiece;

/// Rows of a batch; the manifest's upper bound of `batch`.
const BATCH: usize = 32;
/// Tokens of a row; the manifest's upper bound of `sequence`.
const SEQUENCE: usize = 256;

/// A sentence encoder on a device.
#[derive(Debug)]
pub struct Encoder {
    model: Minilm,
    tokenizer: WordPiece,
}

impl Encoder {
    /// Loads the model.
    pub fn load(device: &Device, tokenizer: WordPiece) -> Result<Self, aot_runtime::Error> {
        Ok(Self { model: Minilm::load(device)?, tokenizer })
    }

    /// The vectors of `texts`, each of length 1, in their order.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, aot_runtime::Error> {
        let tokens: Vec<_> =
            texts.iter().map(|text| self.tokenizer.encode(text, SEQUENCE)).collect();
        // Sentences of similar length share a batch, so that little of it is padding.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| tokens[i].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in order.chunks(BATCH) {
            let rows: Vec<&[i64]> = batch.iter().map(|&i| tokens[i].as_slice()).collect();
            for (&i, vector) in batch.iter().zip(self.embed_batch(&rows)?) {
                vectors[i] = vector;
            }
        }
        Ok(vectors)
    }

    fn embed_batch(&self, rows: &[&[i64]]) -> Result<Vec<Vec<f32>>, aot_runtime::Error> {
        let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let shape = [rows.len(), width];
        let (mut ids, mut mask) = (vec![0; rows.len() * width], vec![0; rows.len() * width]);
        for (row, at) in rows.iter().zip((0..).step_by(width.max(1))) {
            ids[at..at + row.len()].copy_from_slice(row);
            mask[at..at + row.len()].fill(1);
        }
        let types = vec![0; ids.len()];
        let out = self.model.run(Inputs {
            input_ids: TensorView::new(&ids, shape)?.into(),
            attention_mask: TensorView::new(&mask, shape)?.into(),
            token_type_ids: TensorView::new(&types, shape)?.into(),
        })?;
        let lengths = rows.iter().map(|row| row.len());
        Ok(pool(&out.last_hidden_state, lengths))
    }
}

/// The mean over the first `lengths[i]` states of each row i, scaled to length 1.
fn pool(states: &Tensor<f32, 3>, lengths: impl Iterator<Item = usize>) -> Vec<Vec<f32>> {
    let [_, sequence, width] = states.shape();
    let rows = states.as_slice().chunks(sequence * width);
    rows.zip(lengths)
        .map(|(row, length)| {
            let mut sum = vec![0.0; width];
            for state in row.chunks(width).take(length) {
                sum.iter_mut().zip(state).for_each(|(s, x)| *s += x);
            }
            let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            sum.iter_mut().for_each(|x| *x /= norm);
            sum
        })
        .collect()
}

/// The cosine of the angle between two unit vectors.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
