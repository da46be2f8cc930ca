// error: E0277 Output<'_, f32, 2>
use aot_runtime::Tensor;
use models::dense::OutputsMut;

fn main() -> aot_runtime::Result<()> {
    let y = Tensor::<f32, 2>::zeros([1, 2])?;
    let _ = OutputsMut { y: (&y).into() };
    Ok(())
}
