// compiles
use aot_runtime::{Device, Model, Tensor};
use models::{dense, embed};

fn shapes<M: Model>() -> usize {
    M::META.inputs.len()
}

fn main() -> aot_runtime::Result<()> {
    let device = Device::cpu()?;
    let embed = embed::Embed::load(&device)?;
    let dense = dense::Dense::load(&device)?;
    let tokens = [0_i64, 2];
    let scale = Tensor::new(vec![1.0; 8], [2, 4])?;
    let inputs = embed::Inputs { tokens: (&tokens).into(), scale: (&scale).into() };
    let rows = embed.run_on_device(inputs)?;
    let y = dense.run(dense::Inputs { x: (&rows.embedding).into() })?.y;
    let values: &[f32] = y.as_slice();
    println!("{} {}", values.len(), shapes::<embed::Embed>());
    Ok(())
}
