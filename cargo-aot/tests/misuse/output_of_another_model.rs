// error: E0277 Input<'_, i64, 1>
use models::{dense, embed};

fn chain(outputs: &dense::DeviceOutputs, scale: [[f32; 4]; 2]) {
    let _ = embed::Inputs { tokens: (&outputs.y).into(), scale: (&scale).into() };
}

fn main() {
    let _ = chain;
}
