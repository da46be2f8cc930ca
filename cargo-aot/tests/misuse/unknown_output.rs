// error: E0609 no field `logits`
use models::dense::Outputs;

fn main() {
    let _ = |outputs: Outputs| outputs.logits;
}
