//! Kernel texts run on the host, compiled as C++, against the group interpreter.

mod builder;
mod cases;
mod scans;
mod text;

use aot_ir::exec::Tensor;
use aot_ir::{Arch, DType};
use aot_kernels::group::{Expr, Group, OperandId};
use aot_kernels::{Arg, Kernel, Size, kernels_for};
use cargo_aot::lower::interpret::{Memory, run_group};
use cases::{Case, maps, reductions};
use scans::scans;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SHIM: &str = include_str!("host_shim.hpp");

/// Numbers that repeat from run to run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn unit(&mut self) -> f64 {
        (self.next() % 65536) as f64 / 32768.0 - 1.0
    }

    /// Elements of a buffer; integers are small and of both signs, floats reach beyond the range of
    /// small integers where they are to be converted.
    fn bytes(&mut self, dtype: DType, elements: usize, wild: bool) -> Vec<u8> {
        let values: Vec<f64> = (0..elements)
            .map(|_| match dtype {
                DType::Bool => (self.next() % 2) as f64,
                t if t.is_float() && wild => match self.next() % 12 {
                    0 => f64::NAN,
                    1 => f64::INFINITY,
                    2 => -1e30,
                    3 => 3e9,
                    4 => self.unit() * 0.01,
                    _ => self.unit() * 600.0,
                },
                t if t.is_float() => self.unit(),
                DType::U4 => (self.next() % 16) as f64,
                DType::I4 => (self.next() % 16) as f64 - 8.0,
                DType::U2 => (self.next() % 4) as f64,
                DType::I2 => (self.next() % 4) as f64 - 2.0,
                t if t.is_signed_int() => (self.next() % 41) as f64 - 20.0,
                _ => (self.next() % 40) as f64,
            })
            .collect();
        Tensor::from_f64(dtype, vec![elements], &values).unwrap().to_bytes()
    }
}

#[derive(Clone)]
struct Run {
    name: &'static str,
    /// The operand whose memory another one takes, and that one.
    in_place: Option<(OperandId, OperandId)>,
    kernel: Kernel,
    group: Group,
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
    atoms: Vec<i64>,
}

fn prepare(case: Case) -> Run {
    let Case { name, group, symbols, atoms } = case;
    let kernels = kernels_for(&group, &symbols, Arch::of_capability(80)).unwrap();
    let holds = |k: &Kernel| k.when.eval(&atoms[..]).unwrap();
    let kernel = kernels.into_iter().find(holds).unwrap();
    let mut numbers = Numbers(1);
    let wild = group.exprs.iter().any(|e| matches!(e.expr, Expr::Cast { .. }));
    let before: Vec<Vec<u8>> = group
        .operands
        .iter()
        .map(|o| {
            let elements = o.elements.eval(&atoms[..]).unwrap() as usize;
            numbers.bytes(o.dtype, elements, wild)
        })
        .collect();
    let buffers = group.operands.iter().map(|o| o.dtype).zip(before.iter().cloned());
    let mut memory = Memory::of_buffers(buffers.collect());
    run_group(&group, &mut memory, &atoms).unwrap_or_else(|e| panic!("{name}: {e}"));
    let after = (0..group.operands.len()).map(|b| memory.bytes(b as u32).to_vec()).collect();
    Run { name, in_place: None, kernel, group, before, after, atoms }
}

/// The same in the memory of an operand, where that may be.
fn in_place(run: &Run) -> Option<Run> {
    let operands = (0..run.group.operands.len()).map(|n| OperandId(n as u32));
    let pairs = run.group.stores.iter().flat_map(|s| operands.clone().map(move |from| (from, s)));
    let (from, store) = pairs.into_iter().find(|(from, s)| run.group.may_replace(*from, s))?;
    Some(Run { in_place: Some((from, store.operand)), ..run.clone() })
}

fn source(runs: &[Run]) -> String {
    let mut text = format!("{SHIM}\n");
    for (i, run) in runs.iter().enumerate() {
        let body = run.kernel.source.replace("extern \"C\" __global__", "static");
        let _ = writeln!(text, "namespace case{i} {{\n{body}\n}}");
    }
    text.push_str("int main() {\n");
    for (i, run) in runs.iter().enumerate() {
        let _ = writeln!(text, "run_case(case{i}::{});", run.kernel.entry);
    }
    text + "}\n"
}

/// On the host, launches follow one another.
const NONE_EARLY: i32 = 0;
/// What tells launches from others.
const NUMBER: u64 = 3 << 32 | 7;

/// What the program reads for one case, and which operands it writes back.
fn input(run: &Run) -> (Vec<u8>, Vec<OperandId>) {
    let value = |d: &aot_ir::Dim| d.eval(&run.atoms[..]).unwrap();
    let kernel = &run.kernel;
    let mut sizes: Vec<u8> = Vec::new();
    for size in &kernel.sizes {
        match size {
            Size::I64(d) => sizes.extend(value(d).to_le_bytes()),
            Size::I32(d) => sizes.extend(i32::try_from(value(d)).unwrap().to_le_bytes()),
            Size::Early => sizes.extend(NONE_EARLY.to_le_bytes()),
            other => panic!("{}: {other:?}", run.name),
        }
    }
    let count = |f: fn(&Arg) -> bool| kernel.args.iter().filter(|a| f(a)).count() as u32;
    let header = [
        u32::try_from(value(&kernel.blocks)).unwrap(),
        kernel.threads,
        u32::from(kernel.blocks.as_const().is_none()),
        sizes.len() as u32,
        count(|a| matches!(a, Arg::Pointer(_))),
        count(|a| matches!(a, Arg::Number | Arg::I64(_))),
        count(|a| matches!(a, Arg::I32(_) | Arg::Early)),
    ];
    let mut bytes: Vec<u8> = header.iter().flat_map(|n| n.to_le_bytes()).collect();
    let is_of = |arg: &&Arg| matches!(arg, Arg::Pointer(_));
    let number = |id: OperandId| {
        let mut pointers = kernel.args.iter().filter(is_of);
        pointers.position(|arg| matches!(arg, Arg::Pointer(other) if *other == id)).unwrap()
    };
    bytes.extend(sizes);
    let mut pointers = Vec::new();
    for arg in &kernel.args {
        match arg {
            Arg::Pointer(id) if run.in_place.is_some_and(|(_, to)| to == *id) => {
                let (from, _) = run.in_place.unwrap();
                bytes.extend(u64::MAX.to_le_bytes());
                bytes.extend((number(from) as u32).to_le_bytes());
                pointers.push(*id);
            }
            Arg::Pointer(id) => {
                let buffer = &run.before[id.index()];
                bytes.extend((buffer.len() as u64).to_le_bytes());
                bytes.extend(buffer);
                pointers.push(*id);
            }
            Arg::Sizes | Arg::Progress => {}
            Arg::Number => bytes.extend(NUMBER.to_le_bytes()),
            Arg::I64(number) => bytes.extend(number.to_le_bytes()),
            Arg::I32(number) => bytes.extend(number.to_le_bytes()),
            Arg::Early => bytes.extend(NONE_EARLY.to_le_bytes()),
            other => panic!("{}: {other:?}", run.name),
        }
    }
    (bytes, pointers)
}

fn compare(run: &Run, id: OperandId, found: &[u8]) -> Result<(), String> {
    let dtype = run.group.operands[id.index()].dtype;
    // What is overwritten is what came in its place.
    let id = run.in_place.filter(|(from, _)| *from == id).map_or(id, |(_, to)| to);
    let expected = &run.after[id.index()];
    let elements = expected.len() * 8 / dtype.bits() as usize;
    let read = |b: &[u8]| Tensor::from_bytes(dtype, vec![elements], b).unwrap().to_f64();
    let tolerance = match dtype {
        DType::F8E4M3 | DType::F8E4M3Fnuz => 0.07,
        DType::F8E5M2 | DType::F8E5M2Fnuz => 0.13,
        DType::Bf16 => 8e-3,
        DType::F16 => 1e-3,
        DType::F32 => 4e-6,
        _ => 0.0,
    };
    for (i, (a, b)) in read(found).into_iter().zip(read(expected)).enumerate() {
        let close = a == b
            || (a.is_nan() && b.is_nan())
            || (a - b).abs() <= tolerance * b.abs().max(if dtype.bits() > 8 { 0.05 } else { 0.0 });
        if !close {
            return Err(format!("{}: element {i} of operand {} is {a}, not {b}", run.name, id.0));
        }
    }
    Ok(())
}

/// Compiles and runs all cases in one program, those that may be (`least` of them) in place, too; gives what is wrong.
fn check(name: &str, cases: Vec<Case>, least: usize) -> Vec<String> {
    let mut runs: Vec<Run> = cases.into_iter().map(prepare).collect();
    let more: Vec<Run> = runs.iter().filter_map(in_place).collect();
    assert!(more.len() >= least, "{} kernels are run in place", more.len());
    runs.extend(more);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (text, program) = (folder.join(format!("{name}.cpp")), folder.join(name));
    std::fs::write(&text, source(&runs)).unwrap();
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let built = Command::new(&compiler)
        .args(["-std=c++17", "-O0", "-w", "-fno-strict-aliasing", "-o"])
        .args([&program, &text])
        .output();
    let built = match built {
        Ok(built) => built,
        Err(e) => {
            eprintln!("{}: {e}; kernels were not run on the host", compiler.display());
            return Vec::new();
        }
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut child =
        Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let inputs: Vec<_> = runs.iter().map(input).collect();
    let pointers: Vec<Vec<OperandId>> = inputs.iter().map(|(_, p)| p.clone()).collect();
    let writer = std::thread::spawn(move || {
        for (bytes, _) in inputs {
            to.write_all(&bytes).unwrap();
        }
    });
    let mut from = child.stdout.take().unwrap();
    let mut wrong = Vec::new();
    for (run, pointers) in runs.iter().zip(pointers) {
        let mut outcome = Ok(());
        for id in pointers {
            let mut found = vec![0; run.after[id.index()].len()];
            if let Err(e) = from.read_exact(&mut found) {
                wrong.push(format!("{}: {e}", run.name));
                let _ = child.kill();
                let _ = child.wait();
                return wrong;
            }
            outcome = outcome.and(compare(run, id, &found));
        }
        wrong.extend(outcome.err());
    }
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    wrong
}

#[test]
fn maps_are_right_on_the_host() {
    let wrong = check("maps", maps(), 5);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reductions_are_right_on_the_host() {
    let wrong = check("reductions", reductions(), 5);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn scans_are_right_on_the_host() {
    let wrong = check("scans", scans(), 0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
