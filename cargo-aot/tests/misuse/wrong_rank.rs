// error: E0277 Input<'_, f32, 2>
use models::dense::Inputs;

fn main() {
    let _ = Inputs { x: (&[1.0_f32, 2.0, 3.0, 4.0]).into() };
}
