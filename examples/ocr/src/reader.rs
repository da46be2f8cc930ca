//! Detection and recognition together.

use aot_runtime::{Device, Error, Model, TensorView};
use image::RgbImage;
use models::det::{self, Det};
use models::rec::{self, Rec};

use crate::detection;
use crate::pixels::Planes;
use crate::recognition::{Characters, batches, straighten};
use crate::rectangle::Quad;
use crate::settings::{LINE_HEIGHT, LINE_THRESHOLD};

/// A line of text in a picture.
#[derive(Debug, Clone)]
pub struct Line {
    pub text: String,
    /// Mean probability of the characters.
    pub score: f64,
    pub place: Quad,
}

/// Both networks on a device.
#[derive(Debug)]
pub struct Reader {
    detection: Det,
    recognition: Rec,
    characters: Characters,
}

impl Reader {
    /// Loads both networks.
    pub fn load(device: &Device) -> Result<Self, Error> {
        let list = Rec::META.metadata("character").unwrap_or_default();
        Ok(Self {
            detection: Det::load(device)?,
            recognition: Rec::load(device)?,
            characters: Characters::from_metadata(list),
        })
    }

    /// The lines of text in a picture, in reading order.
    pub fn read(&self, picture: &RgbImage) -> Result<Vec<Line>, Error> {
        if picture.width() == 0 || picture.height() == 0 {
            return Ok(Vec::new());
        }
        let whole = detection::input(picture);
        let shape = [1, 3, whole.height, whole.width];
        let map = self.detection.run(det::Inputs { x: TensorView::new(&whole.values, shape)?.into() })?;
        let map = map.sigmoid_0_tmp_0.as_slice();
        let places = detection::boxes(map, whole.width, picture.dimensions());

        let lines: Vec<Planes> = places.iter().map(|&place| straighten(picture, place)).collect();
        let mut texts = vec![(String::new(), 0.0); lines.len()];
        for batch in batches(&lines) {
            let shape = [batch.lines.len(), 3, LINE_HEIGHT, batch.width];
            let out =
                self.recognition.run(rec::Inputs { x: TensorView::new(&batch.input, shape)?.into() })?;
            let out = &out.softmax_11_tmp_0;
            let [_, steps, classes] = out.shape();
            for (&line, row) in batch.lines.iter().zip(out.as_slice().chunks(steps * classes)) {
                texts[line] = self.characters.decode(row);
            }
        }
        Ok(places
            .into_iter()
            .zip(texts)
            .map(|(place, (text, score))| Line { text, score, place })
            .filter(|line| !line.text.is_empty() && line.score >= LINE_THRESHOLD)
            .collect())
    }
}
