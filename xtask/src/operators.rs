//! `cargo xtask operators`: the table of operators in docs/operators.md.

use std::collections::BTreeMap;
use std::fs;

use aot_conformance::{Case, Outcome, Sizes, Suite, Trial, cases};
use aot_kernels::kernels_for;
use cargo_aot::import::operators;
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::layout::Layout;

const HEAD: &str = "# Operators

Made by `cargo xtask operators`; a test says when it is stale.

*Opsets* are the versions of the operator set that the import rules are for, as far as they have the operator; where \
a number stands in parentheses, another rule begins. *Tests* counts the cases of ONNX's backend tests, and of those \
against onnxruntime, whose model has the operator. *CPU* are those that pass on the reference executor, *GPU* those of them \
for which kernels are made for every group (sm_90a).
";

/// How many cases have an operator, pass on the CPU, and have kernels.
#[derive(Clone, Copy, Default)]
struct Counts {
    tests: usize,
    cpu: usize,
    gpu: usize,
}

/// Writes docs/operators.md.
pub(crate) fn write(layout: &Layout) -> Result<()> {
    let path = layout.root().join("docs/operators.md");
    fs::write(&path, text(layout)?).map_err(Error::io("write", &path))
}

/// The page.
fn text(layout: &Layout) -> Result<String> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for suite in Suite::ALL {
        let cases = cases(&layout.assets(), suite);
        let cases = cases.map_err(Error::io("list", &layout.assets()))?;
        let found: Vec<_> =
            cases.par_iter().map(|case| (case.operators(), devices(case))).collect();
        for (operators, (cpu, gpu)) in found {
            for operator in operators {
                let counts = counts.entry(operator).or_default();
                counts.tests += 1;
                counts.cpu += usize::from(cpu);
                counts.gpu += usize::from(gpu);
            }
        }
    }
    let mut page = HEAD.to_owned();
    let mut domain = None;
    for operator in operators() {
        if domain != Some(operator.domain) {
            domain = Some(operator.domain);
            let title = if operator.domain.is_empty() { "ai.onnx" } else { operator.domain };
            page.push_str(&format!(
                "\n## {title}\n\n| operator | opsets | tests | CPU | GPU |\n|---|---|---|---|---|\n"
            ));
        }
        let key = match operator.domain {
            "" => operator.name.to_owned(),
            domain => format!("{domain}.{}", operator.name),
        };
        let Counts { tests, cpu, gpu } = counts.get(&key).copied().unwrap_or_default();
        let mut opsets = operator.since[0].to_string();
        for since in &operator.since[1..] {
            opsets.push_str(&format!(" ({since})"));
        }
        if operator.since[0] != operator.until {
            opsets.push_str(&format!("–{}", operator.until));
        }
        page.push_str(&format!("| {} | {opsets} | {tests} | {cpu} | {gpu} |\n", operator.name));
    }
    Ok(page)
}

/// Whether a case passes on the CPU, and whether then it has kernels.
fn devices(case: &Case) -> (bool, bool) {
    let Ok(trials) = case.trials(Sizes::Constant) else { return (false, false) };
    let passes = trials.iter().all(|trial| trial.run() == Outcome::Passed);
    (passes, passes && trials.iter().all(has_kernels))
}

fn has_kernels(trial: &Trial) -> bool {
    let Ok(graph) = passes::run(&trial.imported.graph, &passes::Options::default()) else {
        return false;
    };
    let targets = [("sm_90a".parse().expect("an architecture"), false)];
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    let plan = lower(&graph, &options);
    plan.is_ok_and(|plan| assemble(&plan, "case", &targets, &[], &kernels_for).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_operators_is_up_to_date() {
        let layout = Layout::find().expect("a checkout");
        let path = layout.root().join("docs/operators.md");
        let found = fs::read_to_string(&path).expect("docs/operators.md");
        let made = text(&layout).expect("a table");
        let differs = found.lines().zip(made.lines()).find(|(a, b)| a != b);
        assert!(
            found == made,
            "docs/operators.md is stale ({differs:?}): run `cargo xtask operators`"
        );
    }
}
