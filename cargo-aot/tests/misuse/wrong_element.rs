// error: E0277 Input<'_, i64, 1>
use models::embed::Inputs;

fn main() {
    let scale = [[1.0_f32; 4]; 2];
    let _ = Inputs { tokens: (&[0_i32, 2]).into(), scale: (&scale).into() };
}
