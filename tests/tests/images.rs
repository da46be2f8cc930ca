//! What the host computes in the middle of a run: images, decoded by groups and by the reference executor.

use super::groups::distances;
use aot_ir::exec::Tensor;
use aot_ir::op::{BinaryOp, HostOp, PixelFormat, ReduceOp};
use aot_ir::{Arch, DType, Dim, Op, ValueId};
use aot_kernels::kernels_for;
use aot_runtime::program::{Program, Step};
use aot_tests::net::Net;
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};

const MOST: i64 = 9;

/// A file of an image of this height and width.
fn file(height: usize, width: usize) -> Vec<u8> {
    let mut file = format!("P6\n{width} {height}\n255\n").into_bytes();
    file.extend((0..3 * height * width).map(|i| (37 * i % 251) as u8));
    file
}

fn element(net: &mut Net, x: ValueId, i: i64) -> ValueId {
    let (starts, sizes, steps) = (vec![i.into()], vec![Dim::ONE], vec![1]);
    let one = net.op(Op::Slice { starts, sizes, steps }, &[x]);
    net.op(Op::Reshape { shape: Vec::new() }, &[one])
}

/// The pixels of the image in a file, and its height and width, which are called after `name`.
fn decode(net: &mut Net, name: &str, file: ValueId, format: PixelFormat) -> (ValueId, [Dim; 2]) {
    let size = net.op(Op::Host(HostOp::ImageSize), &[file]);
    let [height, width] = [0, 1].map(|axis| {
        let extent = element(net, size, axis);
        net.size(&format!("{name}{axis}"), MOST, extent)
    });
    let decode = HostOp::DecodeImage { height: height.clone(), width: width.clone(), format };
    (net.op(Op::Host(decode), &[file]), [height, width])
}

/// One image that is an output as it is and is computed with, and one whose file is what is left of the input when its
/// first byte is taken off; both joined along their rows, where they are of one width.
fn network() -> Net {
    let mut net = Net::new();
    let (n, m) = (net.symbol("n", 1, 300, 1), net.symbol("m", 2, 301, 1));
    let first = net.input(DType::U8, std::slice::from_ref(&n));
    let second = net.input(DType::U8, std::slice::from_ref(&m));
    let (pixels, [height, width]) = decode(&mut net, "a", first, PixelFormat::Rgb);
    net.output(pixels);
    let numbers = net.op(Op::Cast(DType::F32), &[pixels]);
    let scale = net.floats(&[], &[1.0 / 255.0]);
    let numbers = net.op(Op::Binary(BinaryOp::Mul), &[numbers, scale]);
    let mean = Op::Reduce { op: ReduceOp::Mean, axes: vec![0, 1], keep_dims: false };
    let mean = net.op(mean, &[numbers]);
    net.output(mean);
    let rest = Op::Slice { starts: vec![Dim::ONE], sizes: vec![m - 1], steps: vec![1] };
    let rest = net.op(rest, &[second]);
    let (gray, [rows, columns]) = decode(&mut net, "b", rest, PixelFormat::Grayscale);
    let gray = net.op(Op::Reshape { shape: vec![rows * columns] }, &[gray]);
    let flat = net.op(Op::Reshape { shape: vec![height * width * 3] }, &[pixels]);
    let both = net.op(Op::Concat { axis: 0 }, &[flat, gray]);
    net.output(both);
    net
}

fn tensor(bytes: Vec<u8>) -> Tensor {
    Tensor::from_vec(vec![bytes.len()], bytes).unwrap()
}

#[test]
fn groups_decode_what_the_graph_decodes() {
    let graph = network().graph;
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    let plan = lower(&graph, &options).unwrap();
    let [a, b] = [((3, 5), (1, 1)), ((9, 9), (7, 2))];
    for ((height, width), (rows, columns)) in [a, b] {
        let (first, mut second) = (file(height, width), file(rows, columns));
        second.insert(0, 0);
        let mut atoms: Vec<i64> = graph.symbols.iter().map(|(_, s)| s.hi).collect();
        (atoms[0], atoms[1]) = (first.len() as i64, second.len() as i64);
        for (d, _) in distances(&graph, &plan, &atoms, &[tensor(first), tensor(second)]).unwrap() {
            assert!(d < 1e-6, "{d}");
        }
    }
    let (broken, mut second) = (tensor(b"P6".to_vec()), file(1, 1));
    second.insert(0, 0);
    let mut atoms: Vec<i64> = graph.symbols.iter().map(|(_, s)| s.hi).collect();
    (atoms[0], atoms[1]) = (2, second.len() as i64);
    let text = distances(&graph, &plan, &atoms, &[broken, tensor(second)]).unwrap_err();
    assert!(text.contains("can't be decoded"), "{text}");
}

/// The program of the network for one architecture.
fn program() -> Program {
    let graph = network().graph;
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    let plan = lower(&graph, &options).unwrap();
    let targets = [(Arch::of_capability(90), false)];
    assemble(&plan, "images", &targets, &[], &kernels_for).unwrap().program
}

#[test]
fn programs_let_the_host_decode() {
    let program = program();
    assert_eq!(program.check(), Ok(()));
    let greatest: Vec<i64> = program.symbols.iter().map(|(_, s)| s.hi).collect();
    assert_eq!(program.check_memory(&greatest), Ok(()));
    let names: Vec<_> = program.steps.iter().flat_map(Step::on_host).map(HostOp::name).collect();
    assert_eq!(names.len(), 4);
    let launches: Vec<u32> = program.steps.iter().flat_map(Step::launches).collect();
    let all: Vec<u32> = (0..program.origins.len() as u32).collect();
    assert_eq!(launches, all);
    let sized = |program: &mut Program| {
        let steps = program.steps.iter();
        let host = steps
            .enumerate()
            .filter(|(_, s)| matches!(s, Step::Host(h) if !h.op.dims().is_empty()));
        host.map(|(at, _)| at).next().unwrap()
    };
    // Before its sizes are read; of no such buffer; once and for all.
    let mut early = program.clone();
    let at = sized(&mut early);
    let step = early.steps.remove(at);
    early.steps.insert(0, step.clone());
    let says = |program: &Program| program.check().unwrap_err();
    assert!(says(&early).contains("has a size that nothing gave before"), "{}", says(&early));
    let mut nowhere = program.clone();
    if let Step::Host(host) = &mut nowhere.steps[at] {
        host.result.0 = 999;
    }
    assert!(says(&nowhere).starts_with("there is no buffer 999"), "{}", says(&nowhere));
    let mut prepared = program;
    prepared.prepare.push(step);
    assert_eq!(says(&prepared), "the host computes where no run is");
}
