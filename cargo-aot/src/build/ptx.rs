//! PTX that old drivers accept.
//!
//! A driver refuses PTX whose `.version` is newer than itself, even when it uses nothing new:
//! NVRTC 13.5 always writes 9.5, while R580 reads up to 9.0. The version only gates which
//! instructions an assembler takes, so the line is lowered after a look at every instruction.
//! The assembler of CUDA 13.0 (and 12.0 for version 8.0) takes the result; a test of the
//! project assembles the PTX of every kernel with it.

/// Instructions by the PTX ISA version that first had them (*PTX ISA*, "Release Notes");
/// what 8.0, the oldest version that is ever asked for, already has comes first.
const INSTRUCTIONS: [((u32, u32), &[&str]); 4] = [
    (
        (8, 0),
        &[
            "abs",
            "activemask",
            "add",
            "addc",
            "alloca",
            "and",
            "applypriority",
            "atom",
            "bar",
            "barrier",
            "bfe",
            "bfi",
            "bfind",
            "bmsk",
            "bra",
            "brev",
            "brkpt",
            "brx",
            "call",
            "clz",
            "cnot",
            "copysign",
            "cos",
            "cp",
            "createpolicy",
            "cvt",
            "cvta",
            "discard",
            "div",
            "dp2a",
            "dp4a",
            "elect",
            "ex2",
            "exit",
            "fence",
            "fma",
            "fns",
            "getctarank",
            "griddepcontrol",
            "isspacep",
            "istypep",
            "ld",
            "ldmatrix",
            "ldu",
            "lg2",
            "lop3",
            "mad",
            "mad24",
            "madc",
            "mapa",
            "match",
            "max",
            "mbarrier",
            "membar",
            "min",
            "mma",
            "mov",
            "mul",
            "mul24",
            "movmatrix",
            "nanosleep",
            "neg",
            "not",
            "or",
            "pmevent",
            "popc",
            "prefetch",
            "prefetchu",
            "prmt",
            "rcp",
            "red",
            "redux",
            "rem",
            "ret",
            "rsqrt",
            "sad",
            "selp",
            "set",
            "setmaxnreg",
            "setp",
            "shf",
            "shfl",
            "shl",
            "shr",
            "sin",
            "slct",
            "sqrt",
            "st",
            "stackrestore",
            "stacksave",
            "stmatrix",
            "sub",
            "subc",
            "suld",
            "suq",
            "sured",
            "sust",
            "szext",
            "tanh",
            "testp",
            "tex",
            "tld4",
            "trap",
            "txq",
            "vabsdiff",
            "vadd",
            "vmad",
            "vmax",
            "vmin",
            "vset",
            "vshl",
            "vshr",
            "vsub",
            "vote",
            "wgmma",
            "wmma",
            "xor",
        ],
    ),
    ((8, 1), &["multimem"]),
    ((8, 3), &["tensormap"]),
    ((8, 6), &["clusterlaunchcontrol", "tcgen05"]),
];

/// Modifiers of older instructions that came later.
const MODIFIERS: [((u32, u32), &[&str]); 2] =
    [((8, 3), &["b128"]), ((8, 5), &["sp::ordered_metadata"])];

/// Why PTX cannot be made older.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PtxError {
    /// The text has no `.version`.
    #[error("the compiler wrote PTX without a `.version`")]
    NoVersion,
    /// An instruction is newer than the version wanted.
    #[error(
        "line {line} of the PTX: `{instruction}` is not in PTX {}.{}, the newest that the oldest \
         supported driver reads",
        wanted.0,
        wanted.1
    )]
    TooNew {
        /// The instruction with its modifiers.
        instruction: String,
        /// Counted from 1.
        line: usize,
        /// The version wanted.
        wanted: (u32, u32),
    },
}

/// The same PTX with its `.version` lowered to `wanted` when it is newer. Fails when an
/// instruction needs more than `wanted` has.
pub fn lower_version(ptx: &[u8], wanted: (u32, u32)) -> Result<Vec<u8>, PtxError> {
    let text = String::from_utf8_lossy(ptx);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (index, version) = lines
        .iter()
        .enumerate()
        .find_map(|(index, line)| Some((index, version_of(line)?)))
        .ok_or(PtxError::NoVersion)?;
    if version <= wanted {
        return Ok(ptx.to_vec());
    }
    for (line, instruction) in instructions(&text) {
        if since(&instruction).is_none_or(|since| since > wanted) {
            return Err(PtxError::TooNew { instruction, line, wanted });
        }
    }
    lines[index] = format!(".version {}.{}", wanted.0, wanted.1);
    let mut lowered = lines.join("\n");
    lowered.push('\n');
    Ok(lowered.into_bytes())
}

/// `(9, 5)` of `.version 9.5`.
fn version_of(line: &str) -> Option<(u32, u32)> {
    let (major, minor) = line.trim().strip_prefix(".version")?.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Directives that end with their line instead of a semicolon.
const LINE_DIRECTIVES: [&str; 6] =
    [".version", ".target", ".address_size", ".file", ".loc", ".section"];

/// The instructions of a text with their lines, counted from 1: what stands first in each
/// statement after labels and predicates.
fn instructions(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut statement = Statement::Start;
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if LINE_DIRECTIVES.iter().any(|directive| code.trim_start().starts_with(directive)) {
            continue;
        }
        // Punctuation that ends or opens something is a word of its own.
        let spaced = code.replace(';', " ; ").replace('{', " { ").replace('}', " } ");
        for word in spaced.split_whitespace() {
            statement = match (statement, word) {
                (_, ";") => Statement::Start,
                (Statement::Start, "{" | "}") => Statement::Start,
                // The body of a function; elsewhere braces are operands or initial values.
                (Statement::Directive, "{") => Statement::Start,
                (Statement::Directive, word) if word.contains('=') => Statement::Operands,
                (Statement::Start, word) if word.starts_with('.') => Statement::Directive,
                (Statement::Start, word) if word.ends_with(':') || word.starts_with('@') => {
                    Statement::Start
                }
                (Statement::Start, word) => {
                    found.push((index + 1, word.to_owned()));
                    Statement::Operands
                }
                (inside, _) => inside,
            };
        }
    }
    found
}

/// Where in a statement the reader is.
#[derive(Clone, Copy)]
enum Statement {
    Start,
    Directive,
    Operands,
}

/// The PTX version that first had an instruction; None when it is unknown here.
fn since(instruction: &str) -> Option<(u32, u32)> {
    let (root, modifiers) = instruction.split_once('.').unwrap_or((instruction, ""));
    let (base, _) =
        INSTRUCTIONS.iter().find(|(_, roots)| roots.iter().any(|known| is_root(known, root)))?;
    let late = MODIFIERS
        .iter()
        .filter(|(_, late)| late.iter().any(|m| modifiers.split('.').any(|own| own == *m)));
    Some(late.map(|(version, _)| *version).fold(*base, Ord::max))
}

/// `vadd` stands for its packed forms `vadd2` and `vadd4` too.
fn is_root(known: &str, root: &str) -> bool {
    known == root
        || (known.starts_with('v')
            && root.strip_prefix(known).is_some_and(|n| n == "2" || n == "4"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "//\n// Cuda compilation tools\n\n.version 9.5\n.target sm_80\n\
        .visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\t.reg .b32 \t%r<3>;\n\n\
        $L__BB0_1:\n\t@%p1 bra \t$L__BB0_1;\n\t// begin inline asm\n\t\
        { .reg .pred p; setp.ne.b32 p, %r1, 0; cp.async.cg.shared.global [%r1], [%rd1], 16; }\n\t\
        call.uni (retval0), \n\tvprintf, \n\t(\n\tparam0\n\t);\n\t\
        mov.b64 {lo, hi}, %rd1; mov.b32 {lo}, %r1;\n\tret;\n}\n\
        .global .u64 table[2] = {k, k};\n";

    #[test]
    fn only_the_version_line_changes() {
        let lowered = lower_version(PTX.as_bytes(), (9, 0)).unwrap();
        assert_eq!(String::from_utf8(lowered).unwrap(), PTX.replace("9.5", "9.0"));
        let kept = lower_version(PTX.as_bytes(), (9, 5)).unwrap();
        assert_eq!(kept, PTX.as_bytes());
    }

    #[test]
    fn what_is_too_new_is_refused_by_line() {
        let with = |code: &str, wanted| lower_version(PTX.replace("ret;", code).as_bytes(), wanted);
        let error = with("frobnicate.b32 %r1, %r2;", (9, 0)).unwrap_err();
        let PtxError::TooNew { instruction, line, .. } = error else { panic!("{error}") };
        assert_eq!((instruction.as_str(), line), ("frobnicate.b32", 22));
        assert!(with("@%p2 tcgen05.ld.sync %r1;", (8, 0)).is_err());
        assert!(with("@%p2 tcgen05.ld.sync %r1;", (9, 0)).is_ok());
        assert!(with("ld.global.b128 %r1, [%rd1];", (8, 0)).is_err());
        assert!(with("vadd4.s32.s32.s32 %r1, %r2, %r1;", (8, 0)).is_ok());
        assert_eq!(lower_version(b"ret;", (9, 0)), Err(PtxError::NoVersion));
    }
}
