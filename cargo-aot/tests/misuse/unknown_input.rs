// error: E0560 has no field named `token`
use models::embed::Inputs;

fn main() {
    let scale = [[1.0_f32; 4]; 2];
    let _ = Inputs { token: (&[0_i64, 2]).into(), scale: (&scale).into() };
}
