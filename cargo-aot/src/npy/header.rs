//! The header of an array: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.

use aot_ir::DType;

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

/// The type's name within `descr`, without the byte order.
fn code(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "b1",
        DType::I8 => "i1",
        DType::U8 => "u1",
        DType::I16 => "i2",
        DType::U16 => "u2",
        DType::I32 => "i4",
        DType::U32 => "u4",
        DType::I64 => "i8",
        DType::U64 => "u8",
        DType::F16 => "f2",
        DType::F32 => "f4",
        DType::F64 => "f8",
        _ => return None,
    })
}

const TYPES: [DType; 12] = [
    DType::Bool,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
];

impl Header {
    /// The dictionary for a row-major array of little-endian elements; none for a type that
    /// NumPy doesn't have.
    pub(super) fn to_text(dtype: DType, shape: &[usize]) -> Option<String> {
        let order = if dtype.bits() == 8 { '|' } else { '<' };
        let shape = match shape {
            [one] => format!("({one},)"),
            all => {
                let extents: Vec<_> = all.iter().map(ToString::to_string).collect();
                format!("({})", extents.join(", "))
            }
        };
        let code = code(dtype)?;
        Some(format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': {shape}, }}"))
    }

    /// Reads a dictionary.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let descr = quoted(value(text, "descr")?)?;
        let mut chars = descr.chars();
        let big_endian = match chars.next() {
            Some('<' | '|' | '=') => false,
            Some('>') => true,
            _ => return Err(format!("element type `{descr}` is not supported")),
        };
        let dtype = TYPES
            .into_iter()
            .find(|dtype| code(*dtype) == Some(chars.as_str()))
            .ok_or_else(|| format!("element type `{descr}` is not supported"))?;
        let order = value(text, "fortran_order")?;
        let fortran_order = match order.split([',', '}']).next().map(str::trim) {
            Some("True") => true,
            Some("False") => false,
            _ => return Err("the header says no order of elements".to_owned()),
        };
        Ok(Self { dtype, big_endian, fortran_order, shape: tuple(value(text, "shape")?)? })
    }
}

/// What follows the colon of `key`.
fn value<'t>(text: &'t str, key: &str) -> Result<&'t str, String> {
    ['\'', '"']
        .iter()
        .find_map(|quote| text.split_once(&format!("{quote}{key}{quote}")))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| format!("the header has no `{key}`"))
}

fn quoted(text: &str) -> Result<&str, String> {
    let quote = text.chars().next().filter(|c| "'\"".contains(*c));
    let inner = quote.and_then(|quote| text[1..].split_once(quote));
    inner.map(|(inner, _)| inner).ok_or_else(|| "records are not supported".to_owned())
}

fn tuple(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || "the header has no shape".to_owned();
    let inner = text.strip_prefix('(').and_then(|text| text.split_once(')')).ok_or_else(wrong)?.0;
    let pieces = inner.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    // Python 2 wrote `3L`.
    pieces.map(|piece| piece.trim_end_matches('L').parse().map_err(|_| wrong())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for shape in [vec![], vec![3], vec![2, 0, 5]] {
            for dtype in TYPES {
                let header = Header::parse(&Header::to_text(dtype, &shape).unwrap()).unwrap();
                let expected =
                    Header { dtype, big_endian: false, fortran_order: false, shape: shape.clone() };
                assert_eq!(header, expected);
            }
        }
        assert_eq!(Header::to_text(DType::Bf16, &[]), None);
    }

    #[test]
    fn other_writers() {
        let text = "{\"descr\":\">i8\",\"fortran_order\":True,\"shape\":(3L,4)}";
        let header = Header::parse(text).unwrap();
        assert!(header.big_endian && header.fortran_order);
        assert_eq!((header.dtype, header.shape), (DType::I64, vec![3, 4]));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "{'descr': '<f4'}",
            "{'descr': '<c8', 'fortran_order': False, 'shape': ()}",
            "{'descr': 'é', 'fortran_order': False, 'shape': ()}",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        ] {
            assert!(Header::parse(text).is_err(), "{text}");
        }
    }
}
