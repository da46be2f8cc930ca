//! `cargo xtask conformance`: ONNX's own backend tests, with a table by operator.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use aot_conformance::{Case, Outcome, Report, Sizes, Suite, cases, listed};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::pack::conformance_pack;
use crate::process;

/// What to run, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The reference executor, or the GPU of this machine
    #[arg(long, value_enum, default_value_t = On::Cpu)]
    device: On,
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    filter: String,
    /// Only cases of this suite: node, simple, pytorch-converted, pytorch-operator, light, microsoft, classical or drawn
    #[arg(long)]
    suite: Option<String>,
    /// Leave sizes to run time
    #[arg(long)]
    symbolic: bool,
    /// Write every case's outcome here as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "pack")]
    json: Option<PathBuf>,
    /// Run nothing, but write a folder that runs the cases on another machine's GPU (`run.sh`)
    #[arg(long, value_name = "DIR")]
    pack: Option<PathBuf>,
    /// What to compile for: architectures, or `ARCH-ptx`; with `--device cuda` or `--pack`
    #[arg(long, value_delimiter = ',', default_value = "sm_90a")]
    targets: Vec<String>,
}

/// Where cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum On {
    Cpu,
    Cuda,
}

/// Runs the chore.
pub(crate) fn conformance(layout: &Layout, arguments: &Arguments) -> Result<()> {
    let all = find(layout, &arguments.filter, arguments.suite.as_deref())?;
    let sizes = if arguments.symbolic { Sizes::Symbolic } else { Sizes::Constant };
    if let Some(dir) = &arguments.pack {
        return conformance_pack(layout, dir, &arguments.targets, &all, sizes);
    }
    if arguments.device == On::Cuda {
        let dir = layout.root().join("target/conformance");
        conformance_pack(layout, &dir, &arguments.targets, &all, sizes)?;
        return process::run(&mut std::process::Command::new(dir.join("run.sh")), "");
    }
    let results: Vec<Row> =
        all.par_iter().map(|case| Row { case, report: case.run(sizes) }).collect();
    if let Some(file) = &arguments.json {
        let json = serde_json::to_string_pretty(&results.iter().map(Row::json).collect::<Vec<_>>())
            .map_err(|e| Error::Other(e.to_string()))?;
        fs::write(file, json).map_err(Error::io("write", file))?;
    }
    print(&results, sizes);
    Ok(())
}

fn find(layout: &Layout, filter: &str, only: Option<&str>) -> Result<Vec<Case>> {
    let root = layout.assets();
    let mut all = Vec::new();
    for suite in Suite::ALL.into_iter().filter(|s| only.is_none_or(|only| only == s.name())) {
        all.extend(cases(&root, suite).map_err(Error::io("list", &root))?);
    }
    all.retain(|case| case.name.contains(filter));
    Ok(all)
}

/// A case and how it went.
struct Row<'a> {
    case: &'a Case,
    report: Report,
}

impl Row<'_> {
    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "suite": self.case.suite.name(),
            "name": self.case.name,
            "operator": self.case.operator(),
            "outcome": self.report.outcome.kind(),
            "reason": self.report.outcome.to_string(),
            "fixed_inputs": self.report.fixed,
            "constant": self.report.constant,
            "fixed_extents": self.report.fixed_extents,
        })
    }
}

fn print(results: &[Row<'_>], sizes: Sizes) {
    let mut table: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let (mut passed, mut failed, mut excluded) = (0, 0, 0);
    let (mut fixed, mut constant, mut extents) = (0, 0, 0);
    let listed = listed(sizes);
    for row in results {
        let counts = table.entry(row.case.operator()).or_default();
        match (&row.report.outcome, listed.get(row.case.name.as_str())) {
            (Outcome::Passed, _) => {
                passed += 1;
                counts[0] += 1;
                fixed += usize::from(row.report.fixed);
                constant += usize::from(row.report.constant);
                extents += usize::from(row.report.fixed_extents);
            }
            (_, Some(_)) => excluded += 1,
            (outcome, None) => {
                failed += 1;
                counts[1] += 1;
                println!("FAILED {}/{}: {outcome}", row.case.suite, row.case.name);
            }
        }
    }
    println!("{:32} {:>6} {:>6}", "operator", "passed", "failed");
    for (operator, [passed, failed]) in table {
        println!("{operator:32} {passed:6} {failed:6}");
    }
    println!("passed with an input fixed at build: {fixed}; with all of them: {constant}");
    if extents > 0 {
        println!("passed with extents fixed at build that were to be run-time sizes: {extents}");
    }
    println!("{passed} passed, {failed} failed, {excluded} excluded");
}
