//! What `--message-format json` prints.

use serde_json::Value;

/// The lines of a build.
#[derive(Debug)]
pub(super) struct Events(Vec<Value>);

impl Events {
    pub(super) fn parse(stdout: &str) -> Self {
        Self(stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
    }

    fn of<'e>(&'e self, reason: &'e str) -> impl Iterator<Item = &'e Value> {
        self.0.iter().filter(move |event| event["reason"] == reason)
    }

    /// Units that were made, `import a`, in order of their names.
    pub(super) fn made(&self) -> Vec<String> {
        let stale = self.of("unit").filter(|unit| unit["fresh"] == false);
        let mut made: Vec<String> =
            stale.map(|unit| format!("{} {}", text(&unit["kind"]), text(&unit["name"]))).collect();
        made.sort();
        made
    }

    /// Kernels that were compiled, `matmul_1 sm_80`, in order.
    pub(super) fn compiled(&self) -> Vec<String> {
        self.kernels("compiled")
    }

    /// Kernels that came out of the cache, `matmul_1 sm_80`, in order.
    pub(super) fn cached(&self) -> Vec<String> {
        self.kernels("cached")
    }

    fn kernels(&self, outcome: &str) -> Vec<String> {
        let done = self.of("kernel-finished").filter(|kernel| kernel["outcome"] == outcome);
        let mut kernels: Vec<String> = done.map(kernel).collect();
        kernels.sort();
        kernels
    }

    pub(super) fn warnings(&self) -> Vec<&str> {
        self.of("warning").map(|warning| text(&warning["message"])).collect()
    }

    /// Entries of the cache that were repaired: their files.
    pub(super) fn repaired(&self) -> Vec<&str> {
        self.of("cache-repair").map(|repair| text(&repair["path"])).collect()
    }

    /// Whether there was nothing to do.
    pub(super) fn fresh(&self) -> bool {
        self.0.last().is_some_and(|last| last["reason"] == "finished" && last["fresh"] == true)
    }
}

/// The kernel that an event is about, and its target.
pub(super) fn kernel(event: &Value) -> String {
    format!("{} {}", text(&event["kernel"]), text(&event["target"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
