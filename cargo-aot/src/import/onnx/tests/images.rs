//! Images in files.

use super::make::*;
use crate::import::onnx::proto::{AttributeProto, ModelProto, TensorProto};
use aot_ir::exec::{Executor, Tensor};

const U8: i32 = 2;

/// Two rows: red and green, blue and white.
const FILE: &[u8] = b"P6\n2 2\n255\n\xff\0\0\0\xff\0\0\0\xff\xff\xff\xff";

fn decoder(format: &str, stored: Vec<TensorProto>) -> ModelProto {
    let mut decode = node("ImageDecoder", "file", "pixels");
    let (name, s) = ("pixel_format".to_owned(), format.as_bytes().to_vec());
    decode.attribute.push(AttributeProto { name, s: s.into(), ..Default::default() });
    let inputs = if stored.is_empty() { vec![value("file", U8, "n")] } else { vec![] };
    let mut model = model(20, inputs, stored, vec![decode], "pixels");
    model.graph.as_mut().unwrap().output[0] = value("pixels", U8, "h w ?");
    model
}

fn decoded(model: &ModelProto, dims: &str, file: Option<&[u8]>) -> Result<Tensor, String> {
    let imported = import_ok(model, dims);
    assert_eq!(imported.graph.check(), Ok(()));
    let inputs: Vec<Tensor> =
        file.iter().map(|f| Tensor::from_vec(vec![f.len()], f.to_vec()).unwrap()).collect();
    let executor = Executor::new(&imported.graph).map_err(|e| e.to_string())?;
    executor.run(&inputs).map(|mut found| found.remove(0)).map_err(|e| e.to_string())
}

#[test]
fn height_and_width_are_sizes_from_data() {
    let model = decoder("BGR", vec![]);
    let error = import_error(&model, "n=1..99");
    let says = "data gives the size `h`, `w`, and nothing bounds it: add \"h\" = \"1..=N\", \"w\" = \
                \"1..=N\" to `dims`";
    assert!(error.contains("the ImageDecoder") && error.contains(says), "{error}");
    let pixels = decoded(&model, "n=1..99 h=1..4 w=1..4", Some(FILE)).unwrap();
    assert_eq!(pixels.shape(), [2, 2, 3]);
    let blue_first = [0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255].map(f64::from);
    assert_eq!(pixels.to_f64(), blue_first);
    let gray = decoded(&decoder("Grayscale", vec![]), "n=1..99 h=1..4 w=1..4", Some(FILE)).unwrap();
    assert_eq!((gray.shape(), gray.to_f64()), ([2, 2, 1].as_slice(), vec![76., 150., 29., 255.]));
    let large = decoded(&model, "n=1..99 h=1..4 w=1..1", Some(FILE)).unwrap_err();
    assert_eq!(large, "`w` is 2, outside 1..=1");
}

#[test]
fn what_can_not_be_decoded_is_said() {
    let dims = "n=1..99 h=1..4 w=1..4";
    let text = decoded(&decoder("RGB", vec![]), dims, Some(b"nothing")).unwrap_err();
    let says = "node `the ImageDecoder` (image_size): the file can't be decoded as an image: ";
    assert!(text.starts_with(says), "{text}");
    let cut = decoded(&decoder("RGB", vec![]), dims, Some(&FILE[..FILE.len() - 3])).unwrap_err();
    let says = "node `the ImageDecoder` (decode_image): the file can't be decoded as an image: ";
    assert!(cut.starts_with(says), "{cut}");
    let error = import_error(&decoder("CMYK", vec![]), dims);
    assert!(error.contains("pixel_format `CMYK` is not supported"), "{error}");
}

#[test]
fn a_file_that_the_model_stores_is_decoded_too() {
    let stored = TensorProto {
        dims: vec![FILE.len() as i64],
        data_type: U8,
        raw_data: Some(FILE.to_vec().into()),
        name: "file".to_owned(),
        ..Default::default()
    };
    let pixels = decoded(&decoder("RGB", vec![stored]), "h=1..4 w=1..4", None).unwrap();
    assert_eq!(pixels.shape(), [2, 2, 3]);
}
