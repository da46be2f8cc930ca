//! NVRTC, loaded at run time from a path. The only unsafe code of the build.
//!
//! The functions and their contracts are those of NVIDIA's NVRTC manual, chapter "User
//! Interface". NVRTC is thread-safe: programs may be compiled from several threads at once.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;

use aot_kernels::Arch;
use libloading::Library;

use super::toolchain::Toolchain;

/// What one compilation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Machine code for one architecture.
    Cubin(Arch),
    /// PTX text that a driver compiles when it loads it.
    Ptx(Arch),
}

impl Target {
    /// `sm_90a` or `compute_80`, as `--gpu-architecture` takes it.
    pub fn flag(self) -> String {
        match self {
            Self::Cubin(arch) => arch.to_string(),
            Self::Ptx(arch) => arch.compute(),
        }
    }

    /// The architecture, whichever form the code has.
    pub fn arch(self) -> Arch {
        match self {
            Self::Cubin(arch) | Self::Ptx(arch) => arch,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.flag())
    }
}

/// A program to compile.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// CUDA C++ text; only the headers of the CUDA runtime may be included.
    pub source: &'a str,
    /// What the compiler calls the text in its messages.
    pub name: &'a str,
    /// Options besides the architecture and the include path, which are added here.
    pub options: &'a [String],
    /// What to make of it.
    pub target: Target,
}

/// A compiled program.
#[derive(Debug, Clone)]
pub struct Output {
    /// An ELF image or PTX text without a trailing NUL.
    pub image: Vec<u8>,
    /// Of a cubin: the PTX text that it was assembled from, which is that of [`Target::Ptx`].
    pub ptx: Option<Vec<u8>>,
    /// What the compiler said: warnings, and what `--ptxas-options=-v` reports.
    pub log: String,
}

/// Why NVRTC could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The dynamic loader refused a library.
    #[error("cannot load {}: {source}", path.display())]
    Library {
        /// The library.
        path: PathBuf,
        /// What the loader said.
        source: libloading::Error,
    },
    /// The library lacks a function.
    #[error("{} is no usable NVRTC: it has no `{function}`", path.display())]
    Function {
        /// The library.
        path: PathBuf,
        /// The missing function.
        function: &'static str,
    },
    /// The library did not say what version it is.
    #[error("{} did not tell its version: {message}", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// NVRTC's name for the failure.
        message: String,
    },
}

/// Why a program did not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NvrtcError {
    /// NVRTC's name for the failure, such as `NVRTC_ERROR_COMPILATION`.
    pub message: String,
    /// What the compiler said about the source; empty when it did not come that far.
    pub log: String,
}

type Program = *mut c_void;
type Status = c_int;

/// The functions used here, resolved once.
#[derive(Debug, Clone, Copy)]
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Status,
}

/// A loaded compiler library. It stays loaded until the process ends.
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    include: String,
    version: (u32, u32),
    // Kept mapped for as long as `functions` may be called. Never unloaded: NVRTC registers
    // exit handlers that would then point nowhere.
    _libraries: [Option<ManuallyDrop<Library>>; 2],
}

impl Nvrtc {
    /// Loads the compiler of a toolchain: its builtins first, then the library, each by path,
    /// so that no `LD_LIBRARY_PATH` is needed.
    pub fn load(toolchain: &Toolchain) -> Result<Self, LoadError> {
        let builtins = toolchain.builtins.as_deref().map(open).transpose()?;
        let library = open(&toolchain.library)?;
        let functions = Functions::resolve(&library, &toolchain.library)?;
        let version = functions.read_version(&toolchain.library)?;
        Ok(Self {
            functions,
            include: format!("--include-path={}", toolchain.include.display()),
            version,
            _libraries: [builtins, Some(library)],
        })
    }

    /// The CUDA version of the library, `(13, 5)`.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Compiles one program.
    pub fn compile(&self, request: &Request<'_>) -> Result<Output, NvrtcError> {
        let mut options =
            vec![format!("--gpu-architecture={}", request.target.flag()), self.include.clone()];
        options.extend(request.options.iter().cloned());
        let options = options.into_iter().map(c_string).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();

        let program = OpenProgram::new(self.functions, request.source, request.name)?;
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is live; `pointers` holds `count` pointers to NUL-terminated
        // strings owned by `options`, which outlive the call.
        let status = unsafe { (self.functions.compile)(program.handle, count, pointers.as_ptr()) };
        let log = program.log();
        if status != 0 {
            return Err(NvrtcError { message: self.functions.message(status), log });
        }
        let failed =
            |status| NvrtcError { message: self.functions.message(status), log: log.clone() };
        let (image, ptx) = match request.target {
            Target::Cubin(_) => {
                let image = program.read(self.functions.cubin_size, self.functions.cubin);
                (image.map_err(failed)?, program.ptx().ok())
            }
            Target::Ptx(_) => (program.ptx().map_err(failed)?, None),
        };
        Ok(Output { image, ptx, log })
    }
}

fn c_string(text: impl Into<Vec<u8>>) -> Result<CString, NvrtcError> {
    CString::new(text).map_err(|_| NvrtcError {
        message: "the source or an option contains a NUL byte".to_owned(),
        log: String::new(),
    })
}

fn open(path: &Path) -> Result<ManuallyDrop<Library>, LoadError> {
    // SAFETY: the initialisers of a library are run, which is what loading a compiler means;
    // the paths come from the user's toolchain settings or from wheels with checked hashes.
    let library = unsafe { Library::new(path) };
    library
        .map(ManuallyDrop::new)
        .map_err(|source| LoadError::Library { path: path.to_owned(), source })
}

impl Functions {
    fn resolve(library: &Library, path: &Path) -> Result<Self, LoadError> {
        /// Looks up one function whose type the field fixes.
        fn get<T: Copy>(
            library: &Library,
            path: &Path,
            function: &'static str,
        ) -> Result<T, LoadError> {
            // SAFETY: the caller states the type that the NVRTC manual gives this function;
            // the pointer is used only while the library, which is never unloaded, is mapped.
            let symbol = unsafe { library.get::<T>(function.as_bytes()) };
            symbol
                .map(|symbol| *symbol)
                .map_err(|_| LoadError::Function { path: path.to_owned(), function })
        }
        Ok(Self {
            version: get(library, path, "nvrtcVersion")?,
            error_string: get(library, path, "nvrtcGetErrorString")?,
            create: get(library, path, "nvrtcCreateProgram")?,
            destroy: get(library, path, "nvrtcDestroyProgram")?,
            compile: get(library, path, "nvrtcCompileProgram")?,
            log_size: get(library, path, "nvrtcGetProgramLogSize")?,
            log: get(library, path, "nvrtcGetProgramLog")?,
            cubin_size: get(library, path, "nvrtcGetCUBINSize")?,
            cubin: get(library, path, "nvrtcGetCUBIN")?,
            ptx_size: get(library, path, "nvrtcGetPTXSize")?,
            ptx: get(library, path, "nvrtcGetPTX")?,
        })
    }

    fn read_version(&self, path: &Path) -> Result<(u32, u32), LoadError> {
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: both pointers are to live integers.
        let status = unsafe { (self.version)(&mut major, &mut minor) };
        let version = u32::try_from(major).ok().zip(u32::try_from(minor).ok());
        match version {
            Some(version) if status == 0 => Ok(version),
            _ => Err(LoadError::Version { path: path.to_owned(), message: self.message(status) }),
        }
    }

    fn message(&self, status: Status) -> String {
        // SAFETY: takes any integer; gives a static NUL-terminated string, or null.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return format!("NVRTC error {status}");
        }
        // SAFETY: not null, and NUL-terminated as the manual says.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// A program that is destroyed when it goes out of scope.
struct OpenProgram {
    functions: Functions,
    handle: Program,
}

impl OpenProgram {
    fn new(functions: Functions, source: &str, name: &str) -> Result<Self, NvrtcError> {
        let source = c_string(source)?;
        let name = c_string(name)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the strings are NUL-terminated and copied by NVRTC; zero headers are given,
        // for which the manual allows null arrays.
        let status = unsafe {
            (functions.create)(
                &mut handle,
                source.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if status != 0 {
            let message = functions.message(status);
            return Err(NvrtcError { message, log: String::new() });
        }
        Ok(Self { functions, handle })
    }

    /// Reads one of the program's outputs with its pair of size and copy functions.
    fn read(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        copy: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, Status> {
        let mut length = 0_usize;
        // SAFETY: the program is live and `length` is a live integer.
        let status = unsafe { size(self.handle, &mut length) };
        if status != 0 {
            return Err(status);
        }
        let mut bytes = vec![0_u8; length];
        // SAFETY: the program is live and the buffer has the size that was just asked for.
        let status = unsafe { copy(self.handle, bytes.as_mut_ptr().cast()) };
        if status == 0 { Ok(bytes) } else { Err(status) }
    }

    /// PTX text without its trailing NUL.
    fn ptx(&self) -> Result<Vec<u8>, Status> {
        let mut text = self.read(self.functions.ptx_size, self.functions.ptx)?;
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(text)
    }

    fn log(&self) -> String {
        let bytes = self.read(self.functions.log_size, self.functions.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
    }
}

impl Drop for OpenProgram {
    fn drop(&mut self) {
        // SAFETY: the handle came from a successful create and is destroyed once.
        unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}
