//! A model's summary as text for people.

use std::fmt::{self, Display, Write};

use super::summary::{
    DimSummary, KernelSummary, ModelSummary, PeakSummary, PortSummary, TargetSummary, TensorSummary,
};
use crate::cli::human_bytes;

impl Display for ModelSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}, {})", self.name, self.source, self.precision)?;
        ports(f, "inputs", &self.inputs)?;
        ports(f, "outputs", &self.outputs)?;
        for (index, state) in self.state.iter().enumerate() {
            let (what, bytes) = (if index == 0 { "state" } else { "" }, human_bytes(state.bytes));
            let kept = if state.appended { ", appended in place" } else { "" };
            writeln!(f, "  {what:9}{} from {}, {bytes}{kept}", state.input, state.output)?;
        }
        for (index, dim) in self.dims.iter().enumerate() {
            writeln!(f, "  {:9}{}", if index == 0 { "dims" } else { "" }, dim_text(dim))?;
        }
        writeln!(
            f,
            "  {:9}{} for {} nodes; {} when loaded",
            "launches", self.launches, self.nodes, self.prepare_launches
        )?;
        writeln!(
            f,
            "  {:9}weights {}, prepared {}, a run {}, scratch {}",
            "memory",
            human_bytes(self.memory.weights),
            human_bytes(self.memory.prepared),
            human_bytes(self.memory.arena),
            human_bytes(self.memory.scratch),
        )?;
        if let Some(peak) = &self.memory.peak {
            peak_text(f, peak)?;
        }
        writeln!(
            f,
            "  {:9}{:.3} GFLOP and {} moved at the greatest sizes",
            "work",
            self.work.flop / 1e9,
            human_bytes(self.work.bytes as u64),
        )?;
        for target in &self.targets {
            target_text(f, target)?;
        }
        for warning in &self.warnings {
            writeln!(f, "  warning: {warning}")?;
        }
        Ok(())
    }
}

/// Tensors of the peak that are named.
const NAMED: usize = 6;

fn peak_text(f: &mut fmt::Formatter<'_>, peak: &PeakSummary) -> fmt::Result {
    let bytes = human_bytes(peak.bytes);
    writeln!(f, "  {:9}{bytes} alive in a run at `{}`:", "peak", peak.group)?;
    for tensor in peak.tensors.iter().take(NAMED) {
        let TensorSummary { name, dtype, elements, bytes } = tensor;
        writeln!(f, "    {:>9} {name}: {dtype}, {elements} elements", human_bytes(*bytes))?;
    }
    let rest = peak.tensors.get(NAMED..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().map(|tensor| tensor.bytes).sum();
        writeln!(f, "    {:>9} {} others", human_bytes(bytes), rest.len())?;
    }
    Ok(())
}

fn ports(f: &mut fmt::Formatter<'_>, what: &str, ports: &[PortSummary]) -> fmt::Result {
    for (index, port) in ports.iter().enumerate() {
        let what = if index == 0 { what } else { "" };
        writeln!(f, "  {what:9}{}: {}[{}]", port.name, port.dtype, port.shape.join(", "))?;
    }
    Ok(())
}

fn dim_text(dim: &DimSummary) -> String {
    let mut text = format!("{} in {}..={}", dim.name, dim.min, dim.max);
    if dim.step != 1 {
        let _ = write!(text, " by {}", dim.step);
    }
    if dim.buckets.len() > 1 {
        let buckets: Vec<_> = dim.buckets.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", buckets {}", buckets.join(" "));
    }
    if dim.from_data {
        text.push_str(", computed by the run");
    }
    if let Some(line) = dim.line {
        let _ = write!(text, " (Aot.toml line {line})");
    }
    text
}

fn target_text(f: &mut fmt::Formatter<'_>, target: &TargetSummary) -> fmt::Result {
    let kind = if target.ptx { " (PTX)" } else { "" };
    writeln!(f, "  {}{kind}: {} distinct kernels", target.arch, target.distinct_kernels)?;
    let width = target.kernels.iter().map(|kernel| kernel.name.len()).max().unwrap_or(0);
    for kernel in &target.kernels {
        let count = match kernel.launches {
            0 => "loads".to_owned(),
            n => format!("{n}x"),
        };
        let shared = kernel.shared + kernel.static_shared.unwrap_or(0);
        writeln!(
            f,
            "    {count:>5} {:width$}  {:4} threads {:>9} shared{}  {}  {}",
            kernel.name,
            kernel.threads,
            human_bytes(u64::from(shared)),
            resources_text(kernel),
            kernel.schedule,
            kernel.group,
        )?;
    }
    Ok(())
}

/// Registers, and a stack where there is one; nothing of a kernel that is not built.
fn resources_text(kernel: &KernelSummary) -> String {
    let registers = kernel.registers.map(|n| format!(" {n:3} registers"));
    let stack = kernel.stack.filter(|n| *n > 0).map(|n| format!(" {n} B of stack"));
    [registers, stack].into_iter().flatten().collect()
}
