//! The numbers of the pipeline. The Python script that makes the reference texts reads this file
//! too (`tests/reference/settings.py`), so that both pipelines differ in the network runtime alone;
//! each constant therefore stands on one line of its own.

/// Longest side of the picture that detection sees, in pixels; larger pictures are scaled down.
pub const DETECT_MAX_SIDE: usize = 960;
/// Detection wants sides that are multiples of this.
pub const DETECT_STEP: usize = 32;
/// Probability above which a pixel belongs to text.
pub const PIXEL_THRESHOLD: f64 = 0.3;
/// Mean probability inside a box below which the box is dropped.
pub const BOX_THRESHOLD: f64 = 0.5;
/// How much a box grows: its sides move out by area · ratio ÷ perimeter.
pub const UNCLIP_RATIO: f64 = 1.6;
/// Shortest side of a box before it has grown, in pixels of the probability map.
pub const MIN_SIDE: f64 = 3.0;
/// Height of a line of text that recognition sees, in pixels.
pub const LINE_HEIGHT: usize = 48;
/// Recognition's narrowest input; shorter lines are padded on the right.
pub const LINE_MIN_WIDTH: usize = 320;
/// Recognition's widest input; longer lines are squeezed.
pub const LINE_MAX_WIDTH: usize = 1280;
/// Recognition's input widths are multiples of this.
pub const LINE_WIDTH_STEP: usize = 32;
/// A box taller than its width by this factor holds text that runs downwards.
pub const VERTICAL_RATIO: f64 = 1.5;
/// Lines recognised at once.
pub const LINE_BATCH: usize = 8;
/// Mean probability of a line's characters below which the line is dropped.
pub const LINE_THRESHOLD: f64 = 0.5;
