//! One array.

use aot_ir::DType;

use super::header::Header;

const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// The first element lies at a multiple of this, in bytes.
const ALIGNMENT: usize = 64;

/// An array in row-major order with little-endian elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl Array {
    /// Reads a whole `.npy` file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn from_npy(file: &[u8]) -> Result<Self, String> {
        let short = || "the file is shorter than its header says".to_owned();
        let rest = file.strip_prefix(&MAGIC).ok_or("it does not begin like an array")?;
        let (version, rest) = rest.split_at_checked(2).ok_or_else(short)?;
        let (length, rest) = match version[0] {
            1 => {
                let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
                (usize::from(u16::from_le_bytes(*length)), rest)
            }
            2 | 3 => {
                let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
                (usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?, rest)
            }
            other => return Err(format!("version {other} of the format is not supported")),
        };
        let (text, elements) = rest.split_at_checked(length).ok_or_else(short)?;
        let header = Header::parse(&String::from_utf8_lossy(text))?;
        let count = header.shape.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent));
        let width = header.dtype.bits() as usize / 8;
        let size = count.and_then(|count| count.checked_mul(width)).ok_or_else(short)?;
        let mut bytes = elements.get(..size).ok_or_else(short)?.to_vec();
        if header.big_endian {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        if header.fortran_order {
            bytes = transpose(&bytes, &header.shape, width);
        }
        Ok(Self { dtype: header.dtype, shape: header.shape, bytes })
    }

    /// The array as a `.npy` file; none for an element type that NumPy doesn't have.
    pub fn to_npy(&self) -> Option<Vec<u8>> {
        let text = Header::to_text(self.dtype, &self.shape)?;
        // Shapes of any array that fits in memory keep the header below version 1's limit.
        let prefix = MAGIC.len() + 4;
        let padded = (prefix + text.len() + 1).next_multiple_of(ALIGNMENT) - prefix;
        let length = u16::try_from(padded).ok()?;
        let mut file = Vec::with_capacity(prefix + padded + self.bytes.len());
        file.extend_from_slice(&MAGIC);
        file.extend_from_slice(&[1, 0]);
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(text.as_bytes());
        file.resize(prefix + padded - 1, b' ');
        file.push(b'\n');
        file.extend_from_slice(&self.bytes);
        Some(file)
    }
}

/// Row-major elements of column-major ones.
fn transpose(bytes: &[u8], shape: &[usize], width: usize) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len());
    let mut at = vec![0; shape.len()];
    for _ in 0..bytes.len() / width {
        let index = at.iter().zip(shape).rev().fold(0, |sum, (i, extent)| sum * extent + i);
        result.extend_from_slice(&bytes[index * width..(index + 1) * width]);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            if at[axis] < shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array() -> Array {
        let bytes = [1_f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat();
        Array { dtype: DType::F32, shape: vec![2, 3], bytes }
    }

    #[test]
    fn files_round_trip_and_are_aligned() {
        let file = array().to_npy().unwrap();
        assert_eq!((file.len() - 24) % ALIGNMENT, 0);
        assert_eq!(Array::from_npy(&file), Ok(array()));
    }

    #[test]
    fn column_major_and_big_endian() {
        let mut file = MAGIC.to_vec();
        let text = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}\n";
        file.extend([2, 0]);
        file.extend((text.len() as u32).to_le_bytes());
        file.extend(text.bytes());
        file.extend([0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6]);
        let array = Array::from_npy(&file).unwrap();
        assert_eq!(array.bytes, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
    }

    #[test]
    fn every_cut_is_refused() {
        let file = array().to_npy().unwrap();
        for length in 0..file.len() {
            assert!(Array::from_npy(&file[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        assert!(Array::from_npy(&file).is_err());
    }
}
