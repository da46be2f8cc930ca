// error: E0063 missing field `scale`
use models::embed::{Embed, Inputs};

fn main() -> aot_runtime::Result<()> {
    let embed = Embed::load(&aot_runtime::Device::cpu()?)?;
    embed.run(Inputs { tokens: (&[0_i64, 2]).into() })?;
    Ok(())
}
