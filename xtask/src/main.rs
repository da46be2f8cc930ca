//! `cargo xtask …`: the project's own chores. `cargo xtask help` lists them.

fn main() -> std::process::ExitCode {
    xtask::cli::main()
}
