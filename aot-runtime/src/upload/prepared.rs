//! Memory for slots that is ready when it is needed.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::thread::{Builder, JoinHandle};

use memmap2::{MmapMut, MmapOptions};

/// No system has smaller pages.
const PAGE: usize = 4096;
/// Mappings of it are memory of zeros.
const ZEROS: &str = "/dev/zero";

/// Memory whose pages a thread of its own asks the system for, which takes about half a millisecond per MiB. Drivers can
/// lock it: it is shared (with nobody), not private, and belongs to no file.
#[derive(Debug)]
pub(crate) struct Prepared(JoinHandle<Result<MmapMut>>);

impl Prepared {
    /// Begins to make so many bytes of it. None where there is no thread to be had.
    pub(crate) fn begin(bytes: usize) -> Option<Self> {
        let thread = Builder::new().name("aot-staging".to_owned());
        thread.spawn(move || touched(bytes)).ok().map(Self)
    }

    /// The memory, as soon as it is made. None where the system has no such memory.
    pub(crate) fn wait(self) -> Option<MmapMut> {
        self.0.join().ok()?.ok()
    }
}

fn touched(bytes: usize) -> Result<MmapMut> {
    let mut memory = mapped(bytes)?;
    // The first access to a page is what takes the time.
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
    Ok(memory)
}

/// What mmap gives for `MAP_SHARED | MAP_ANONYMOUS`; anonymous mappings of memmap2 are private.
#[cfg(unix)]
fn mapped(bytes: usize) -> Result<MmapMut> {
    use std::os::unix::fs::FileTypeExt;

    let zeros = File::options().read(true).write(true).open(ZEROS)?;
    if !zeros.metadata()?.file_type().is_char_device() {
        return Err(Error::new(ErrorKind::Unsupported, "a file in the place of a device"));
    }
    // SAFETY: every mapping of this device is memory of its own, which nobody else changes or cuts off.
    #[allow(unsafe_code)]
    unsafe {
        MmapOptions::new().len(bytes).map_mut(&zeros)
    }
}

#[cfg(not(unix))]
fn mapped(_: usize) -> Result<MmapMut> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// What the system says of the mapping that begins at an address: its line of `/proc/self/smaps` and a number of KiB.
    fn mapping(address: usize, what: &str) -> (String, usize) {
        let all = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let begins = format!("{address:x}-");
        let mut lines = all.lines().skip_while(|line| !line.starts_with(&begins));
        let first = lines.next().unwrap().to_owned();
        let number = lines.find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).unwrap();
        (first, number.trim().trim_end_matches(" kB").parse().unwrap())
    }

    #[test]
    fn memory_is_anonymous_shared_and_in_its_place() {
        let bytes = 3 << 20;
        let mut memory = Prepared::begin(bytes).unwrap().wait().unwrap();
        assert!(memory.len() == bytes && memory.iter().all(|byte| *byte == 0));
        let other = Prepared::begin(bytes).unwrap().wait().unwrap();
        memory.fill(7);
        assert!(other.iter().all(|byte| *byte == 0), "nobody shares it");
        let (line, resident) = mapping(other.as_ptr().addr(), "Rss");
        assert_eq!(line.split_whitespace().nth(1), Some("rw-s"));
        assert!(line.ends_with("/dev/zero (deleted)"), "anonymous: {line}");
        // Neighbours of one kind are never one mapping, as each is a file of the system's.
        assert_eq!(resident, bytes >> 10);
    }
}
