//! The arguments of a kernel under construction.

use super::value::Int;
use crate::group::{Operand, OperandId};
use crate::kernel::{Arg, Size};
use aot_ir::{Dim, Scope};
use std::fmt::Write;

/// What a size is needed for. Equal sizes with different roles are different arguments, so that
/// the text does not depend on whether two sizes of a model happen to be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// An index map of this operand.
    Operand(OperandId),
    /// An extent or whatever else a family needs.
    Extent(u32),
    /// A coordinate or condition outside of loads and stores.
    Other,
    /// The number of blocks that have something to do.
    Blocks,
}

/// Pointers and constant numbers, which a kernel takes by value, and sizes, which it reads from memory: those stay from
/// run to run, these may change.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    pointers: Vec<Pointer>,
    constants: Numbers,
    sizes: Numbers,
    /// Addresses, and how many bytes there are.
    prefetched: Vec<(String, Int)>,
}

#[derive(Clone, Debug)]
struct Pointer {
    arg: Arg,
    type_name: String,
}

/// Numbers of 64 and of 32 bits, in the order of first use.
#[derive(Clone, Debug, Default)]
struct Numbers {
    wide: Vec<(Dim, Role)>,
    narrow: Vec<(Dim, Role)>,
}

impl Numbers {
    fn is_empty(&self) -> bool {
        self.wide.is_empty() && self.narrow.is_empty()
    }

    /// The number as a member of `p`; members' names begin with one of the letters.
    fn member(&mut self, dim: &Dim, role: Role, wide: bool, letters: [char; 2]) -> Int {
        let list = if wide { &mut self.wide } else { &mut self.narrow };
        let at = list.iter().position(|(d, r)| d == dim && *r == role).unwrap_or_else(|| {
            list.push((dim.clone(), role));
            list.len() - 1
        });
        Int { text: format!("p.{}{at}", letters[usize::from(!wide)]), wide }
    }

    fn declare(&self, text: &mut String, letters: [char; 2]) {
        for i in 0..self.wide.len() {
            let _ = writeln!(text, "  long long {}{i};", letters[0]);
        }
        for i in 0..self.narrow.len() {
            let _ = writeln!(text, "  int {}{i};", letters[1]);
        }
    }
}

const CONSTANTS: [char; 2] = ['l', 'i'];
const SIZES: [char; 2] = ['m', 'n'];
/// [`Arg::Progress`] and [`Arg::Number`].
const PROGRESS: &str = "  unsigned long long* progress;\n";
const NUMBER: &str = "  unsigned long long number;\n";
/// The last number of those that may change from run to run: [`Size::Early`].
const EARLY: &str = "  int early;\n";

impl Arguments {
    /// The expression of an operand's address.
    pub fn operand(&mut self, id: OperandId, operand: &Operand, written: bool) -> String {
        let constant = if written { "" } else { "const " };
        let type_name = format!("{constant}{}*", super::ctype::storage_type(operand.dtype));
        self.pointer(Arg::Pointer(id), type_name)
    }

    /// The expression of a scratch area's address; equal areas are one.
    pub fn scratch(&mut self, bytes: &Dim, type_name: &str) -> String {
        self.pointer(Arg::Scratch(bytes.clone()), format!("{type_name}*"))
    }

    fn pointer(&mut self, arg: Arg, type_name: String) -> String {
        let at = self.pointers.iter().position(|p| p.arg == arg).unwrap_or_else(|| {
            self.pointers.push(Pointer { arg, type_name });
            self.pointers.len() - 1
        });
        format!("p.x{at}")
    }

    /// Has a constant operand brought near while an early launch waits for the one before.
    pub fn prefetch(&mut self, address: String, bytes: Int) {
        if self.prefetched.iter().all(|(known, _)| *known != address) {
            self.prefetched.push((address, bytes));
        }
    }

    /// The expression of a number: a literal for 0, 1 and -1, else an argument.
    pub fn uniform(&mut self, scope: &Scope<'_>, dim: &Dim, role: Role) -> Int {
        match dim.as_const() {
            Some(c @ -1..=1) => Int::narrow(if c < 0 { "(-1)".to_owned() } else { c.to_string() }),
            Some(c) => self.constants.member(dim, role, i32::try_from(c).is_err(), CONSTANTS),
            None => self.size(scope, dim, role),
        }
    }

    /// The expression of a number that is read from memory even if it is constant.
    pub fn size(&mut self, scope: &Scope<'_>, dim: &Dim, role: Role) -> Int {
        let range = scope.interval(dim);
        let wide = i32::try_from(range.lo).is_err() || i32::try_from(range.hi).is_err();
        self.sizes.member(dim, role, wide, SIZES)
    }

    /// `struct Args`, and `struct Fixed` and `struct Sizes` that it is made of if there are sizes.
    pub fn declaration(&self) -> String {
        let mut text = String::new();
        if !self.sizes.is_empty() {
            text += "struct alignas(16) Sizes {\n";
            self.sizes.declare(&mut text, SIZES);
            text += EARLY;
            text += "};\n";
        }
        let _ = writeln!(text, "struct {} {{", self.parameter());
        if !self.sizes.is_empty() {
            text += "  const Sizes* sizes;\n";
        }
        text += PROGRESS;
        for (i, pointer) in self.pointers.iter().enumerate() {
            let _ = writeln!(text, "  {} x{i};", pointer.type_name);
        }
        text += NUMBER;
        self.constants.declare(&mut text, CONSTANTS);
        if self.sizes.is_empty() {
            text += EARLY;
        }
        text += "};\n";
        if !self.sizes.is_empty() {
            text += "struct Args : Fixed, Sizes {};\n";
        }
        text
    }

    /// The type of a kernel's one parameter.
    fn parameter(&self) -> &'static str {
        if self.sizes.is_empty() { "Args" } else { "Fixed" }
    }

    /// A kernel with this body, which reads `p`. Blocks beyond those that have something to do leave at once, where
    /// their number is given.
    pub fn function(&self, entry: &str, threads: u32, blocks: Option<&Int>, body: &str) -> String {
        let parameter = self.parameter();
        let name = if self.sizes.is_empty() { "p" } else { "fixed" };
        let mut text = format!(
            "extern \"C\" __global__ void __launch_bounds__({threads}) {entry}(const __grid_constant__ \
             {parameter} {name}) {{\n"
        );
        if !self.sizes.is_empty() {
            text += "  const Args p = {fixed, read_sizes(fixed.sizes)};\n";
        }
        // Sizes and constants are there before a run begins.
        for (operand, bytes) in &self.prefetched {
            let _ = writeln!(text, "  if (p.early & 1) prefetch_share({operand}, {});", bytes.text);
        }
        // Blocks that leave wait as well: a launch of such blocks alone would be done before the one before it, for which
        // the next one waits through this one.
        text += "  wait_for_launch_before();\n  if (p.early & 2) let_launch_after_begin();\n";
        if let Some(blocks) = blocks {
            let _ = writeln!(
                text,
                "  if (({})blockIdx.x >= {}) return;",
                blocks.type_name(),
                blocks.text
            );
        }
        text + "  tell_progress(p.progress, p.number);\n" + body + "}\n"
    }

    /// What to pass by value, in the order of the declaration.
    pub fn list(&self) -> Vec<Arg> {
        let number = |dim: &Dim| dim.as_const().unwrap_or_default();
        let sizes = (!self.sizes.is_empty()).then_some(Arg::Sizes);
        let pointers = self.pointers.iter().map(|p| p.arg.clone());
        let wide = self.constants.wide.iter().map(|(d, _)| Arg::I64(number(d)));
        let narrow = self.constants.narrow.iter().map(|(d, _)| Arg::I32(number(d) as i32));
        let next = self.sizes.is_empty().then_some(Arg::Early);
        let before = sizes.into_iter().chain([Arg::Progress]).chain(pointers);
        before.chain([Arg::Number]).chain(wide).chain(narrow).chain(next).collect()
    }

    /// What to have in memory, in the order of the declaration.
    pub fn sizes(&self) -> Vec<Size> {
        let wide = self.sizes.wide.iter().map(|(d, _)| Size::I64(d.clone()));
        let narrow = self.sizes.narrow.iter().map(|(d, _)| Size::I32(d.clone()));
        let next = (!self.sizes.is_empty()).then_some(Size::Early);
        wide.chain(narrow).chain(next).collect()
    }
}
