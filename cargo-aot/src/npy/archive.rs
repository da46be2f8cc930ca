//! Named arrays in one file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::array::Array;
use super::error::NpyError;

/// The arrays of an `.npz` file by name, in the order of the file; that of an `.npy` file under
/// the name of the file.
pub fn read_npz(path: &Path) -> Result<Vec<(String, Array)>, NpyError> {
    let io = |source| NpyError::Io { action: "read", path: path.to_owned(), source };
    if path.extension().is_some_and(|extension| extension == "npy") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).map_err(io)?;
        let array = Array::from_npy(&bytes)
            .map_err(|reason| NpyError::Array { name: name.clone(), reason })?;
        return Ok(vec![(name, array)]);
    }
    let archive = |error: ZipError| match error {
        ZipError::Io(source) => io(source),
        other => NpyError::Archive { path: path.to_owned(), reason: other.to_string() },
    };
    let file = BufReader::new(File::open(path).map_err(io)?);
    let mut zip = ZipArchive::new(file).map_err(archive)?;
    let mut arrays = Vec::with_capacity(zip.len());
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(archive)?;
        let name = entry.name().map_err(archive)?.trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(io)?;
        let array = Array::from_npy(&bytes)
            .map_err(|reason| NpyError::Array { name: name.clone(), reason })?;
        arrays.push((name, array));
    }
    Ok(arrays)
}

/// Writes arrays to an `.npz` file that NumPy reads.
pub fn write_npz(path: &Path, arrays: &[(String, Array)]) -> Result<(), NpyError> {
    let io = |source| NpyError::Io { action: "write", path: path.to_owned(), source };
    let archive = |error: ZipError| match error {
        ZipError::Io(source) => io(source),
        other => NpyError::Archive { path: path.to_owned(), reason: other.to_string() },
    };
    let mut zip = ZipWriter::new(BufWriter::new(File::create(path).map_err(io)?));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, array) in arrays {
        let bytes = array.to_npy().ok_or_else(|| NpyError::Array {
            name: name.clone(),
            reason: format!("NumPy has no element type {}", array.dtype),
        })?;
        zip.start_file(format!("{name}.npy"), options).map_err(archive)?;
        zip.write_all(&bytes).map_err(io)?;
    }
    zip.finish().map_err(archive)?.flush().map_err(io)
}

#[cfg(test)]
mod tests {
    use aot_ir::DType;

    use super::*;

    #[test]
    fn archives_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let array = |n: u8| Array { dtype: DType::U8, shape: vec![2], bytes: vec![n, n + 1] };
        let arrays = [("a:0".to_owned(), array(1)), ("b/c".to_owned(), array(7))];
        write_npz(&path, &arrays).unwrap();
        assert_eq!(read_npz(&path).unwrap(), arrays);
    }

    #[test]
    fn single_arrays_and_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        let array = Array { dtype: DType::Bool, shape: vec![], bytes: vec![1] };
        std::fs::write(&path, array.to_npy().unwrap()).unwrap();
        assert_eq!(read_npz(&path).unwrap(), [("x".to_owned(), array)]);
        let path = dir.path().join("x.npz");
        std::fs::write(&path, "no archive").unwrap();
        assert!(matches!(read_npz(&path), Err(NpyError::Archive { .. })));
        assert!(matches!(read_npz(&dir.path().join("none.npz")), Err(NpyError::Io { .. })));
    }
}
