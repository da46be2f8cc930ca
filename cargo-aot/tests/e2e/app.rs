//! An application in a folder of its own, as a user has it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::events::Events;

/// The manifest of an application; its name tells executables in the common target folder apart.
fn cargo_toml(name: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n")
}

/// An application.
#[derive(Debug)]
pub(super) struct App {
    dir: PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Done {
    pub(super) fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            success: output.status.success(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Asserts that it worked, without a warning.
    #[track_caller]
    pub(super) fn ok(self) -> Self {
        assert!(self.success && !self.stderr.contains("warning"), "{self}");
        self
    }

    /// Asserts that it failed and says all of these.
    #[track_caller]
    pub(super) fn refused(self, says: &[&str]) {
        assert!(!self.success, "{self}");
        for text in says {
            assert!(self.stderr.contains(text), "no `{text}` in\n{self}");
        }
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.stdout, self.stderr)
    }
}

/// The folder of this checkout's applications: always the same, so that cargo finds what it built
/// the last time, and not below the workspace, which cargo would look for. Locked while tests run.
fn root() -> &'static Path {
    static ROOT: OnceLock<(PathBuf, File)> = OnceLock::new();
    let (path, _lock) = ROOT.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_MANIFEST_DIR").hash(&mut hasher);
        let name = format!("cargo-aot-e2e-{:016x}", hasher.finish());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        let lock = File::create(path.join(".lock")).unwrap();
        lock.lock().unwrap();
        (path, lock)
    });
    path
}

impl App {
    /// An application that does nothing; `name` is a test's own.
    pub(super) fn new(name: &str) -> Self {
        let dir = root().join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).unwrap();
        }
        let app = Self { dir };
        app.write("Cargo.toml", cargo_toml(name));
        app.write("src/main.rs", "fn main() {}\n");
        // The versions that the workspace has, so that nothing is fetched.
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        fs::copy(lock, app.path("Cargo.lock")).unwrap();
        app
    }

    /// An application with models: names, files, and what follows `source` in the manifest.
    pub(super) fn with_models(name: &str, gpus: &str, models: &[(&str, &[u8], &str)]) -> Self {
        let app = Self::new(name);
        app.aot(&["init"]).ok();
        let mut manifest = format!("[target]\ngpus = [{gpus}]\nptx = false\n");
        for (name, file, more) in models {
            app.write(&format!("{name}.onnx"), file);
            manifest += &format!("\n[models.{name}]\nsource = \"{name}.onnx\"\n{more}\n");
        }
        app.write("Aot.toml", manifest);
        app
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// `cargo aot …`, with no cache but the application's own.
    pub(super) fn aot_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aot"));
        command
            .arg("aot")
            .args(arguments)
            .current_dir(&self.dir)
            .env("AOT_CACHE_DIR", "")
            .env_remove("CARGO_TARGET_DIR");
        command
    }

    pub(super) fn aot(&self, arguments: &[&str]) -> Done {
        Done::new(self.aot_command(arguments).output().unwrap())
    }

    /// `cargo aot build` that works: its events.
    #[track_caller]
    pub(super) fn build(&self) -> Events {
        let done = self.aot(&["build", "--message-format", "json"]);
        assert!(done.success, "{done}");
        Events::parse(&done.stdout)
    }

    /// `cargo …` in the application.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Done {
        self.cargo_in("", arguments)
    }

    /// `cargo …` in a folder of the application.
    pub(super) fn cargo_in(&self, dir: &str, arguments: &[&str]) -> Done {
        // Each application has its own: their generated packages have one name and one path within them, and cargo
        // would take one for the other.
        let name = self.dir.file_name().unwrap();
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e").join(name);
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(self.dir.join(dir))
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TERM_COLOR", "never")
            .env("CUDA_VISIBLE_DEVICES", "")
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTDOCFLAGS")
            .output()
            .unwrap();
        Done::new(output)
    }
}
