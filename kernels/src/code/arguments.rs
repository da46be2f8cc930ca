//! The arguments of a kernel under construction.

use super::value::Int;
use crate::group::{Operand, OperandId};
use crate::kernel::Arg;
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
}

/// Pointers, 64-bit and 32-bit integers, in the order of first use.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    pointers: Vec<Pointer>,
    wide: Vec<(Dim, Role)>,
    narrow: Vec<(Dim, Role)>,
}

#[derive(Clone, Debug)]
struct Pointer {
    arg: Arg,
    type_name: String,
}

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

    /// The expression of a size: a literal for 0, 1 and -1, else an argument.
    pub fn uniform(&mut self, scope: &Scope<'_>, dim: &Dim, role: Role) -> Int {
        if let Some(c @ -1..=1) = dim.as_const() {
            return Int::narrow(if c < 0 { "(-1)".to_owned() } else { c.to_string() });
        }
        let range = scope.interval(dim);
        let wide = i32::try_from(range.lo).is_err() || i32::try_from(range.hi).is_err();
        let (list, letter) = if wide { (&mut self.wide, 'l') } else { (&mut self.narrow, 'i') };
        let at = list.iter().position(|(d, r)| d == dim && *r == role).unwrap_or_else(|| {
            list.push((dim.clone(), role));
            list.len() - 1
        });
        Int { text: format!("p.{letter}{at}"), wide }
    }

    /// `struct Args`.
    pub fn declaration(&self) -> String {
        let mut text = "struct Args {\n".to_owned();
        for (i, pointer) in self.pointers.iter().enumerate() {
            let _ = writeln!(text, "  {} x{i};", pointer.type_name);
        }
        for i in 0..self.wide.len() {
            let _ = writeln!(text, "  long long l{i};");
        }
        for i in 0..self.narrow.len() {
            let _ = writeln!(text, "  int i{i};");
        }
        text + "};\n"
    }

    /// What to pass, in the order of the declaration.
    pub fn list(&self) -> Vec<Arg> {
        let pointers = self.pointers.iter().map(|p| p.arg.clone());
        let wide = self.wide.iter().map(|(d, _)| Arg::I64(d.clone()));
        let narrow = self.narrow.iter().map(|(d, _)| Arg::I32(d.clone()));
        pointers.chain(wide).chain(narrow).collect()
    }
}
