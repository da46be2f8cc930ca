// error: E0308 mismatched types
use models::{dense, embed};

fn main() -> aot_runtime::Result<()> {
    let embed = embed::Embed::load(&aot_runtime::Device::cpu()?)?;
    let x = [[1.0_f32; 4]; 2];
    embed.run(dense::Inputs { x: (&x).into() })?;
    Ok(())
}
