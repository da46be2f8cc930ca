//! A model that decodes images, in an application.

use super::app::App;
use super::network::Network;

const MAIN: &str = r#"
use aot_runtime::Device;
use models::model::{Inputs, Model};

fn main() -> aot_runtime::Result<()> {
    let model = Model::load(&Device::cpu()?)?;
    let run = |file: &[u8]| model.run(Inputs { file: file.into() });
    let out = run(b"P6\n2 1\n255\n\xff\0\0\0\x40\0")?;
    println!("{:?} {:?}", out.pixels.shape(), out.numbers.as_slice());
    println!("{}", run(b"P6\n3 1\n255\n\xff\0\0\0\x40\0\0\0\0").unwrap_err());
    println!("{}", run(b"P6\n1 1\n255\n\xff").is_err());
    Ok(())
}
"#;

const EXPECTED: &str = "\
[1, 2, 3] [255.0, 0.0, 0.0, 0.0, 64.0, 0.0]
`pixels_1` is 3, outside 1..=2 (Aot.toml line 5)
true
";

const MANIFEST: &str = "[target]
gpus = [\"h200\"]
[models.model]
source = \"model.onnx\"
dims = { n = \"1..=64\", pixels_0 = \"1..=4\", pixels_1 = \"1..=2\" }
";

#[test]
fn applications_decode_images_if_a_model_does() {
    let app = App::new("aot-e2e-images");
    let file = Network::default()
        .bytes("file", "n")
        .node("ImageDecoder", "file", "pixels")
        .node("Cast", "pixels", "numbers")
        .int("to", 1)
        .file("pixels numbers", &[]);
    app.write("model.onnx", file);
    app.aot(&["init", "model.onnx", "--gpu", "h200"]).ok();
    app.write("Aot.toml", MANIFEST);
    app.write("src/main.rs", MAIN);
    app.aot(&["build"]).ok();
    assert!(app.read("aot/models/Cargo.toml").contains("features = [\"image\"]"));
    assert_eq!(app.cargo(&["run", "--quiet"]).ok().stdout, EXPECTED);
}
