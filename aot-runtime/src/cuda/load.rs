//! Loading: the target, its kernels, weights on the GPU.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aot_ir::{Arch, Dim};

use super::Gpu;
use super::actions::CONTROL_BYTES;
use super::driver::{Function, Module, has_loops, version_text};
use super::templates::Templates;
use crate::artifact::{ImagesFile, WEIGHT_ALIGNMENT};
use crate::fault::LAUNCH_BLOCKING;
use crate::program::{BufferId, KernelRef, LaunchArg, Port, Program, Step, Target};
use crate::{Error, Result};

/// Tests set this to an architecture (`sm_80`) whose images are then used.
const FORCE_ARCH: &str = "AOT_FORCE_ARCH";
/// Tests set this to have PTX used.
const FORCE_PTX: &str = "AOT_FORCE_PTX";

/// Tests set this to have the host decide what data decide, as it does with older drivers.
const FORCE_HOST: &str = "AOT_FORCE_HOST";

/// Whether the environment asks for runs that wait for every kernel.
pub(super) fn blocking(variable: impl Fn(&str) -> Option<String>) -> Result<bool> {
    flag(&variable, LAUNCH_BLOCKING)
}

/// A variable of the environment, by its name.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Whether a variable is set, to 1.
fn flag(variable: &impl Fn(&str) -> Option<String>, name: &'static str) -> Result<bool> {
    match variable(name).as_deref() {
        None | Some("" | "0") => Ok(false),
        Some("1") => Ok(true),
        Some(value) => {
            let (variable, value, takes) = (name, value.to_owned(), "0 or 1");
            Err(Error::Environment { variable, value, takes })
        }
    }
}

/// What the environment asks for.
#[derive(Debug, PartialEq, Eq)]
struct Forced {
    arch: Option<Arch>,
    only_ptx: bool,
}

fn forced(variable: impl Fn(&str) -> Option<String>) -> Result<Forced> {
    let wrong = |variable, value, takes| Error::Environment { variable, value, takes };
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let arch = given(FORCE_ARCH).map(|value| match value.parse() {
        Ok(arch) => Ok(arch),
        Err(_) => Err(wrong(FORCE_ARCH, value, "an architecture such as sm_80")),
    });
    Ok(Forced { arch: arch.transpose()?, only_ptx: flag(&variable, FORCE_PTX)? })
}

/// The target that serves a GPU, and its images.
pub(super) fn choose<'p, 'a>(
    gpu: &Gpu,
    program: &'p Program,
    images: &[&'a [u8]],
) -> Result<(&'p Target, ImagesFile<'a>)> {
    let (major, minor) = gpu.capability();
    let files = images.iter().map(|bytes| ImagesFile::open(bytes)).collect::<Result<Vec<_>>>()?;
    let Forced { arch: forced, only_ptx } = forced(variable)?;
    let file_of = |target: &Target| {
        files.iter().copied().find(|f| (f.info().arch, f.info().ptx) == (target.arch, target.ptx))
    };
    let usable = |target: &&Target| {
        let runs = if target.ptx {
            target.arch.ptx_runs_on(major, minor)
        } else {
            target.arch.runs_on(major, minor)
        };
        runs && forced.is_none_or(|arch| arch == target.arch)
            && (target.ptx || !only_ptx)
            && file_of(target).is_some()
    };
    // Machine code before PTX, then the most specific architecture.
    let rank = |target: &&Target| (!target.ptx, target.arch.capability(), target.arch.features());
    let best = program.targets.iter().filter(usable).max_by_key(rank);
    let found = best.and_then(|target| Some((target, file_of(target)?)));
    let (target, file) = found.ok_or_else(|| {
        let name = |f: &ImagesFile<'_>| {
            let kind = if f.info().ptx { " (PTX)" } else { "" };
            format!("{}{kind}", f.info().arch)
        };
        let has: Vec<String> = files.iter().map(name).collect();
        Error::NoImage {
            model: program.model.clone(),
            has: if has.is_empty() { "no GPU".to_owned() } else { has.join(", ") },
            gpu: gpu.name().to_owned(),
            capability: format!("sm_{major}{minor}"),
        }
    })?;
    if gpu.driver() < file.info().driver {
        return Err(Error::OldDriver {
            model: program.model.clone(),
            needed: version_text(file.info().driver),
            found: version_text(gpu.driver()),
        });
    }
    Ok((target, file))
}

/// Kernels of a target.
#[derive(Debug)]
pub(super) struct Functions {
    /// Those that launches name, in order.
    pub(super) launched: Vec<Function>,
    /// [`Target::loop_control`], where the driver has it.
    pub(super) control: Option<Function>,
}

/// The target's kernels.
pub(super) fn functions(
    gpu: &Arc<Gpu>,
    model: &str,
    target: &Target,
    file: &ImagesFile<'_>,
) -> Result<Functions> {
    let mut modules: HashMap<[u8; 32], Arc<Module>> = HashMap::new();
    let mut function = |kernel: &KernelRef| {
        let module = match modules.get(&kernel.key) {
            Some(module) => module.clone(),
            None => {
                let image = file.get(&kernel.key)?.ok_or_else(|| {
                    let which = format!("the images of `{model}` for {}", target.arch);
                    Error::artifact(which, format!("kernel `{}` is missing", kernel.entry))
                })?;
                let module = Module::load(gpu, &image)?;
                modules.insert(kernel.key, module.clone());
                module
            }
        };
        Function::new(&module, &kernel.entry, kernel.threads, kernel.shared)
    };
    let last = target.loop_control.map_or(target.kernels.len(), |n| n as usize);
    let (launched, control) = target.kernels.split_at(last.min(target.kernels.len()));
    let launched = launched.iter().map(&mut function).collect::<Result<_>>()?;
    let on_gpu = has_loops(gpu) && !flag(&variable, FORCE_HOST)?;
    let control = control.first().filter(|_| on_gpu).map(&mut function).transpose()?;
    let unlike = |control: &Function| control.parameter().is_some_and(|n| n != CONTROL_BYTES);
    match control.as_ref().is_some_and(unlike) {
        true => Err(Error::artifact("the kernel images", "the kernel that decides is another")),
        false => Ok(Functions { launched, control }),
    }
}

/// Checks that kernels take as many bytes of arguments as launches give them, where the driver tells.
pub(super) fn check_parameters(templates: &Templates, functions: &[Function]) -> Result<()> {
    for template in templates.all() {
        let wanted = functions.get(template.id.kernel as usize).map(Function::parameter);
        let given = template.argument_bytes();
        match wanted {
            None => return Err(Error::artifact("the program", "a kernel is missing")),
            Some(Some(wanted)) if wanted.next_multiple_of(8) != given => {
                let reason = format!("a kernel takes {wanted} bytes, not {given}");
                return Err(Error::artifact("the kernel images", reason));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Buffers that a program's steps read or write.
pub(super) fn used(target: &Target, steps: &[Step]) -> HashSet<BufferId> {
    let mut out = HashSet::new();
    for step in steps {
        match step {
            Step::Launch(n) => {
                let variants = target.launches.get(*n as usize).into_iter().flatten();
                for arg in variants.flat_map(|launch| &launch.args) {
                    if let LaunchArg::Buffer(id) = arg {
                        out.insert(*id);
                    }
                }
            }
            Step::Copy { from, to } => out.extend([*from, *to]),
            Step::ReadBack { buffer, .. } => out.extend([*buffer]),
            Step::Host(step) => out.extend(step.operands.iter().chain([&step.result])),
            Step::Loop(repeated) => {
                out.extend(repeated.condition);
                out.extend(used(target, &repeated.body));
            }
        }
    }
    out
}

/// Bytes of a buffer, at the greatest sizes.
pub(super) fn greatest_bytes(program: &Program, id: BufferId) -> Result<u64> {
    let buffer = &program.buffers[id.0 as usize];
    let bytes = u64::try_from(upper(program, &buffer.elements))
        .ok()
        .and_then(|n| buffer.dtype.bytes_for(n));
    bytes.ok_or_else(|| Error::artifact("the program", "a buffer has no sane size"))
}

fn upper(program: &Program, dim: &Dim) -> i64 {
    aot_ir::Scope::new(&program.symbols).interval(dim).hi
}

/// Bytes that the host holds at most of what it reads or makes.
pub(super) fn host_bytes(program: &Program, steps: &[Step]) -> Result<u64> {
    let mut most = 0;
    for step in steps {
        most = most.max(match step {
            Step::Host(step) => {
                let mut operands = 0u64;
                for id in &step.operands {
                    operands = operands.saturating_add(greatest_bytes(program, *id)?);
                }
                operands.max(greatest_bytes(program, step.result)?)
            }
            Step::Loop(repeated) => host_bytes(program, &repeated.body)?,
            Step::Launch(_) | Step::Copy { .. } | Step::ReadBack { .. } => 0,
        });
    }
    Ok(most)
}

/// Bytes of an input or output at the greatest sizes.
pub(super) fn most_bytes(program: &Program, port: &Port) -> u64 {
    let elements: Dim = port.shape.iter().product();
    port.dtype.bytes_for(upper(program, &elements).max(0) as u64).unwrap_or(u64::MAX >> 8)
}

/// Places for buffers one after the other, at multiples of [`WEIGHT_ALIGNMENT`]; the length of all.
pub(super) fn layout(
    program: &Program,
    ids: &[BufferId],
) -> Result<(HashMap<BufferId, u64>, usize)> {
    let mut end = 0u64;
    let mut out = HashMap::new();
    for &id in ids {
        out.insert(id, end);
        end = end
            .checked_add(greatest_bytes(program, id)?)
            .map(|e| e.next_multiple_of(WEIGHT_ALIGNMENT))
            .ok_or_else(|| Error::artifact("the program", "buffers have no sane size"))?;
    }
    let all = usize::try_from(end);
    Ok((out, all.map_err(|_| Error::artifact("the program", "buffers have no sane size"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_forces() {
        let with = |set: &'static [(&str, &str)]| {
            forced(move |name| {
                set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(with(&[]).unwrap(), Forced { arch: None, only_ptx: false });
        assert_eq!(with(&[(FORCE_ARCH, ""), (FORCE_PTX, "0")]).unwrap().arch, None);
        let both = with(&[(FORCE_ARCH, "sm_80"), (FORCE_PTX, "1")]).unwrap();
        assert_eq!(both, Forced { arch: "sm_80".parse().ok(), only_ptx: true });
        let text = |set| with(set).unwrap_err().to_string();
        let arch = "AOT_FORCE_ARCH is `ampere`; it takes an architecture such as sm_80";
        assert_eq!(text(&[(FORCE_ARCH, "ampere")]), arch);
        assert_eq!(text(&[(FORCE_PTX, "yes")]), "AOT_FORCE_PTX is `yes`; it takes 0 or 1");
        let blocks = |value: &'static str| blocking(move |_| Some(value.to_owned()));
        assert!(blocks("1").unwrap() && !blocks("").unwrap() && !blocks("0").unwrap());
        let text = blocks("all").unwrap_err().to_string();
        assert_eq!(text, "AOT_LAUNCH_BLOCKING is `all`; it takes 0 or 1");
    }
}
