//! Which of a program's targets a GPU runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use aot_ir::Arch;

use super::driver::{Function, Gpu, Module, during, version_text};
use super::evaluate::parameter_bytes;
use crate::artifact::ImagesFile;
use crate::program::{Program, Target};
use crate::{Error, Result};

/// What the environment asks for: `AOT_FORCE_PTX=1`, `AOT_FORCE_ARCH=sm_80`.
#[derive(Debug, Default)]
pub(super) struct Force {
    pub(super) ptx: bool,
    pub(super) arch: Option<Arch>,
}

impl Force {
    /// Reads the environment.
    pub(super) fn from_env() -> Result<Self> {
        let text = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
        let arch = text("AOT_FORCE_ARCH").map(|name| {
            let wrong = |e| Error::NoCuda(format!("AOT_FORCE_ARCH: {e}"));
            name.parse().map_err(wrong)
        });
        Ok(Self {
            ptx: text("AOT_FORCE_PTX").is_some_and(|v| v != "0"),
            arch: arch.transpose()?,
        })
    }
}

/// Indices of the targets that run on a GPU, best first: cubins of the latest architecture, then
/// PTX.
pub(super) fn candidates(targets: &[Target], (major, minor): (u16, u16), force: &Force) -> Vec<usize> {
    let runs = |target: &Target| match target.ptx {
        true => target.arch.ptx_runs_on(major, minor),
        false => !force.ptx && target.arch.runs_on(major, minor),
    };
    let wanted = |target: &Target| force.arch.is_none_or(|arch| arch == target.arch);
    let mut found: Vec<usize> =
        (0..targets.len()).filter(|&i| runs(&targets[i]) && wanted(&targets[i])).collect();
    found.sort_by_key(|&i| (targets[i].ptx, std::cmp::Reverse(targets[i].arch)));
    found
}

/// Loads the kernels of the best target whose images are there.
pub(super) fn load(
    gpu: &Arc<Gpu>,
    program: &Program,
    images: &[&[u8]],
) -> Result<(usize, Vec<Function>)> {
    let files = images.iter().map(|bytes| ImagesFile::open(bytes)).collect::<Result<Vec<_>>>()?;
    let mut too_old = None;
    'targets: for index in candidates(&program.targets, gpu.capability(), &Force::from_env()?) {
        let target = &program.targets[index];
        let mut found: HashMap<[u8; 32], Cow<'_, [u8]>> = HashMap::new();
        for kernel in &target.kernels {
            if found.contains_key(&kernel.key) {
                continue;
            }
            let mut image = None;
            for file in &files {
                image = file.get(&kernel.key)?.map(|image| (image, file.info()));
                if image.is_some() {
                    break;
                }
            }
            match image {
                // Left out of this executable.
                None => continue 'targets,
                Some((_, info)) if info.driver > gpu.driver() => {
                    too_old.get_or_insert(info.driver);
                    continue 'targets;
                }
                Some((image, _)) => found.insert(kernel.key, image),
            };
        }
        return Ok((index, functions(gpu, program, target, &found)?));
    }
    Err(match too_old {
        Some(needed) => Error::OldDriver {
            model: program.model.clone(),
            needed: version_text(needed),
            found: version_text(gpu.driver()),
        },
        None => no_image(gpu, program),
    })
}

fn functions(
    gpu: &Arc<Gpu>,
    program: &Program,
    target: &Target,
    images: &HashMap<[u8; 32], Cow<'_, [u8]>>,
) -> Result<Vec<Function>> {
    let mut modules: HashMap<[u8; 32], Arc<Module>> = HashMap::new();
    let mut functions = Vec::with_capacity(target.kernels.len());
    for kernel in &target.kernels {
        let module = match (modules.get(&kernel.key), images.get(&kernel.key)) {
            (Some(module), _) => module.clone(),
            (None, Some(image)) => {
                let about = || format!("loading kernel `{}` of `{}`", kernel.entry, program.model);
                let module = during(Module::load(gpu, image), about)?;
                modules.insert(kernel.key, module.clone());
                module
            }
            (None, None) => return Err(no_image(gpu, program)),
        };
        functions.push(Function::new(&module, &kernel.entry, kernel.threads, kernel.shared)?);
    }
    for launch in target.launches.iter().flatten() {
        let packed = parameter_bytes(&launch.args);
        let function = functions.get(launch.kernel as usize);
        if let Some(bytes) = function.and_then(Function::parameter)
            && bytes != packed
        {
            let entry = target.kernels.get(launch.kernel as usize).map_or("", |k| &k.entry);
            let reason = format!("kernel `{entry}` takes {bytes} bytes, but is given {packed}");
            return Err(Error::artifact(format!("the program of `{}`", program.model), reason));
        }
    }
    Ok(functions)
}

fn no_image(gpu: &Gpu, program: &Program) -> Error {
    let name = |t: &Target| match t.ptx {
        true => format!("PTX of {}", t.arch),
        false => t.arch.to_string(),
    };
    let has: Vec<String> = program.targets.iter().map(name).collect();
    let (major, minor) = gpu.capability();
    Error::NoImage {
        model: program.model.clone(),
        has: if has.is_empty() { "no GPU".to_owned() } else { has.join(", ") },
        gpu: gpu.name().to_owned(),
        capability: format!("sm_{major}{minor}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets() -> Vec<Target> {
        let target = |arch: &str, ptx| Target {
            arch: arch.parse().unwrap(),
            ptx,
            kernels: vec![],
            launches: vec![],
        };
        vec![target("sm_80", true), target("sm_80", false), target("sm_86", false), target("sm_90a", false)]
    }

    #[test]
    fn the_latest_image_that_runs_is_first_and_ptx_is_last() {
        let find = |capability, force: &Force| candidates(&targets(), capability, force);
        let none = Force::default();
        assert_eq!(find((9, 0), &none), [3, 0]);
        assert_eq!(find((8, 9), &none), [2, 1, 0]);
        assert_eq!(find((10, 0), &none), [0]);
        assert!(find((7, 5), &none).is_empty());
        let ptx = Force { ptx: true, arch: None };
        assert_eq!(find((9, 0), &ptx), [0]);
        let arch = Force { ptx: false, arch: "sm_80".parse().ok() };
        assert_eq!(find((8, 6), &arch), [1, 0]);
    }
}
