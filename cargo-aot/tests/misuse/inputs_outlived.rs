// error: E0597 `x` does not live long enough
use models::dense::{Dense, Inputs};

fn main() -> aot_runtime::Result<()> {
    let dense = Dense::load(&aot_runtime::Device::cpu()?)?;
    let inputs;
    {
        let x = [[1.0_f32; 4]; 2];
        inputs = Inputs { x: (&x).into() };
    }
    dense.run(inputs)?;
    Ok(())
}
