//! Launches with all sizes known.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::flight::LaunchId;
use super::model::Resources;
use crate::program::{
    BufferId, Launch, LaunchArg, LaunchSize, MemoryPlan, Place, Program, Step, Target,
};
use crate::{Error, Result};

/// Steps with everything in them that follows from sizes.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// A number that no other has.
    pub(super) id: u64,
    /// How many steps these are.
    pub(super) steps: usize,
    pub(super) actions: Vec<Action>,
    /// The launches among the actions.
    pub(super) launches: Arc<[LaunchId]>,
    /// What kernels read of sizes: [`Where::Sizes`].
    pub(super) sizes: Vec<u8>,
    /// Whether there are more or fewer actions at other sizes.
    pub(super) varies: bool,
}

/// What kernels read of sizes begins at multiples of this.
const SIZES_ALIGNMENT: usize = 16;

/// Loops that come to more launches than this are evaluated iteration by iteration.
const MOST_LAUNCHES: i64 = 4096;

/// Whether a step can be evaluated as a whole at sizes given by the symbols' atoms.
pub(super) fn is_whole(step: &Step, atoms: &[i64]) -> bool {
    step.is_foreseen() && launches(step, atoms).is_some_and(|n| n <= MOST_LAUNCHES)
}

/// How many launches and copies a step comes to, if that can be told.
fn launches(step: &Step, atoms: &[i64]) -> Option<i64> {
    match step {
        Step::Loop(repeated) => {
            let mut each = repeated.body.iter().map(|step| launches(step, atoms));
            let each = each.try_fold(0i64, |sum, n| sum.checked_add(n?))?;
            repeated.count.eval(atoms).ok()?.max(0).checked_mul(each)
        }
        _ => Some(1),
    }
}

/// Bytes of what kernels of some steps read of sizes, at most: atoms are the greatest.
pub(super) fn most_sizes(target: &Target, steps: &[Step], greatest: &[i64]) -> usize {
    let of = |launch: &Launch| {
        let bytes = |size: &LaunchSize| if matches!(size, LaunchSize::I64(_)) { 8 } else { 4 };
        launch.sizes.iter().map(bytes).sum::<usize>().next_multiple_of(SIZES_ALIGNMENT)
    };
    let each = steps.iter().map(|step| match step {
        Step::Launch(n) => {
            let variants = target.launches.get(*n as usize).into_iter().flatten();
            variants.map(of).max().unwrap_or(0)
        }
        Step::Loop(repeated) => {
            let inside: i64 = repeated.body.iter().filter_map(|s| launches(s, greatest)).sum();
            let turns = repeated.count.eval(greatest).unwrap_or(i64::MAX);
            let turns = turns.clamp(1, (MOST_LAUNCHES / inside.max(1)).max(1)) as usize;
            most_sizes(target, &repeated.body, greatest).saturating_mul(turns)
        }
        Step::Copy { .. } | Step::ReadBack { .. } | Step::Host(_) => 0,
    });
    each.fold(0, usize::saturating_add)
}

/// One thing to put into a stream.
#[derive(Debug)]
pub(super) enum Action {
    /// A kernel launch, which does nothing if there are no blocks: the argument structure in 8-byte
    /// words, and the words that are addresses of what changes from call to call.
    Launch {
        /// Index into the program's launches.
        launch: u32,
        function: usize,
        blocks: Blocks,
        words: Vec<u64>,
        patches: Vec<(usize, Where)>,
    },
    /// A copy of this many bytes.
    Copy { from: Where, to: Where, bytes: usize },
}

/// How many blocks a launch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    /// This many.
    Exactly(u32),
    /// This many or more: surplus ones leave at once.
    AtLeast(u32),
}

/// Where a buffer begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Where {
    /// There.
    Fixed(u64),
    /// Bytes into the arena.
    Arena(u64),
    /// The n-th input.
    Input(u32),
    /// The n-th output.
    Output(u32),
    /// Bytes into the zeroed scratch of an execution context.
    Scratch(u64),
    /// Bytes into what kernels read of sizes.
    Sizes(u64),
}

/// In which parts of memory buffers lie during one run.
#[derive(Debug)]
pub(super) struct Layout<'p> {
    program: &'p Program,
    resources: &'p Resources,
    plan: Option<&'p MemoryPlan>,
    offsets: Option<&'p HashMap<BufferId, u64>>,
}

impl<'p> Layout<'p> {
    /// The layout for sizes up to these atoms; it holds throughout the run.
    pub(super) fn new(program: &'p Program, resources: &'p Resources, atoms: &[i64]) -> Self {
        let plan = program.plan_for(atoms);
        let offsets = plan.and_then(|n| resources.arenas.get(n));
        Self { program, resources, plan: plan.map(|n| &program.plans[n]), offsets }
    }

    /// Bytes that the arena needs.
    pub(super) fn arena(&self) -> u64 {
        self.plan.map_or(0, |plan| plan.total)
    }

    /// Bytes that a buffer holds at sizes given by the symbols' atoms.
    pub(super) fn bytes(&self, id: BufferId, atoms: &[i64]) -> Result<usize> {
        let buffer = &self.program.buffers[id.0 as usize];
        let elements = u64::try_from(buffer.elements.eval(atoms)?).unwrap_or(0);
        Ok(buffer.dtype.bytes_for(elements).unwrap_or(0) as usize)
    }

    /// Where a buffer begins.
    pub(super) fn place(&self, id: BufferId) -> Result<Where> {
        let inconsistent = || Error::artifact("the program", "a buffer has no place");
        let buffer = self.program.buffers.get(id.0 as usize).ok_or_else(inconsistent)?;
        Ok(match buffer.place {
            Place::Input(i) => Where::Input(i),
            Place::Output(i) => Where::Output(i),
            Place::Arena => {
                let offset = self.offsets.and_then(|offsets| offsets.get(&id));
                Where::Arena(*offset.ok_or_else(inconsistent)?)
            }
            Place::ZeroedScratch => {
                Where::Scratch(*self.resources.scratch.get(&id).ok_or_else(inconsistent)?)
            }
            _ => Where::Fixed(*self.resources.fixed.get(&id).ok_or_else(inconsistent)?),
        })
    }
}

/// Evaluates launches and copies at sizes given by the symbols' atoms.
pub(super) fn evaluate(
    layout: &Layout<'_>,
    target: &Target,
    steps: &[Step],
    atoms: &[i64],
) -> Result<Evaluated> {
    let mut actions = Actions::default();
    add_actions(layout, target, steps, atoms, &mut actions)?;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let varies = steps.iter().any(|step| matches!(step, Step::Loop(_)));
    let Actions { actions, launches, sizes, .. } = actions;
    let (steps, launches) = (steps.len(), launches.into());
    Ok(Evaluated { id, steps, actions, launches, sizes, varies })
}

fn add_actions(
    layout: &Layout<'_>,
    target: &Target,
    steps: &[Step],
    atoms: &[i64],
    actions: &mut Actions,
) -> Result<()> {
    let place = |id: BufferId| layout.place(id);
    for step in steps {
        match step {
            Step::Launch(n) => {
                let variants = target.launches.get(*n as usize).map(Vec::as_slice);
                let mut chosen = None;
                for launch in variants.unwrap_or_default() {
                    if launch.when.eval(atoms)? {
                        chosen = Some(launch);
                        break;
                    }
                }
                let launch = chosen.ok_or_else(|| {
                    Error::artifact("the program", "no kernel is for these sizes")
                })?;
                actions.launch(*n, launch, atoms, &place)?;
            }
            Step::Copy { from, to } => {
                let bytes = layout.bytes(*from, atoms)?;
                actions.copy(Action::Copy { from: place(*from)?, to: place(*to)?, bytes });
            }
            Step::Loop(repeated) if is_whole(step, atoms) => {
                let mut atoms = atoms.to_vec();
                for at in 0..repeated.count.eval(atoms.as_slice())? {
                    if let Some(atom) = atoms.get_mut(repeated.iteration.0 as usize) {
                        *atom = at;
                    }
                    add_actions(layout, target, &repeated.body, &atoms, actions)?;
                }
            }
            Step::ReadBack { .. } | Step::Host(_) | Step::Loop(_) => {
                return Err(Error::artifact("the program", "a run waits where none can"));
            }
        }
    }
    Ok(())
}

/// Actions in the making.
#[derive(Debug, Default)]
struct Actions {
    actions: Vec<Action>,
    launches: Vec<LaunchId>,
    sizes: Vec<u8>,
    /// Where the last action, if it is a launch that has blocks, is told whether the next one begins early.
    told: Option<Told>,
}

/// [`LaunchSize::Early`]: the launch begins early.
const EARLY: i32 = 1;
/// [`LaunchSize::Early`]: the launch after it begins early.
const NEXT_EARLY: u8 = 2;

/// Where a launch has [`LaunchSize::Early`] or [`LaunchArg::Early`].
#[derive(Clone, Copy, Debug)]
enum Told {
    /// From this byte of the sizes on.
    Size(usize),
    /// From this byte of the launch's arguments on.
    Argument(usize),
}

impl Actions {
    fn copy(&mut self, copy: Action) {
        self.told = None;
        self.actions.push(copy);
    }

    /// Adds a launch with everything but addresses known.
    fn launch(
        &mut self,
        number: u32,
        launch: &Launch,
        atoms: &[i64],
        place: &impl Fn(BufferId) -> Result<Where>,
    ) -> Result<()> {
        let blocks = launch.blocks.eval(atoms)?;
        let blocks = u32::try_from(blocks.max(0))
            .map_err(|_| Error::Execution(format!("a kernel would need {blocks} blocks")))?;
        let blocks = match launch.blocks.as_const() {
            Some(_) => Blocks::Exactly(blocks),
            None => Blocks::AtLeast(blocks),
        };
        let early = launch.early && blocks != Blocks::Exactly(0) && self.let_begin_early();
        let early = if early { EARLY } else { 0 };
        let mut told = None;
        let own = self.sizes.len() as u64;
        for size in &launch.sizes {
            match size {
                LaunchSize::I64(dim) => append(&mut self.sizes, &dim.eval(atoms)?.to_le_bytes()),
                LaunchSize::I32(dim) => {
                    let value = dim.eval(atoms)?;
                    let value = i32::try_from(value).map_err(|_| {
                        Error::Execution(format!("a size, {value}, exceeds 32 bits"))
                    })?;
                    append(&mut self.sizes, &value.to_le_bytes());
                }
                LaunchSize::Early => {
                    append(&mut self.sizes, &early.to_le_bytes());
                    told = Some(Told::Size(self.sizes.len() - 4));
                }
            }
        }
        self.sizes.resize(self.sizes.len().next_multiple_of(SIZES_ALIGNMENT), 0);
        let mut bytes: Vec<u8> = Vec::new();
        let mut patches = Vec::new();
        for arg in &launch.args {
            let place = match arg {
                LaunchArg::Sizes => Where::Sizes(own),
                LaunchArg::Buffer(id) => place(*id)?,
                LaunchArg::I64(number) => {
                    append(&mut bytes, &number.to_le_bytes());
                    continue;
                }
                LaunchArg::I32(number) => {
                    append(&mut bytes, &number.to_le_bytes());
                    continue;
                }
                LaunchArg::Early => {
                    append(&mut bytes, &early.to_le_bytes());
                    told = Some(Told::Argument(bytes.len() - 4));
                    continue;
                }
            };
            let word = bytes.len().div_ceil(8);
            let address = match place {
                Where::Fixed(address) => address,
                other => {
                    patches.push((word, other));
                    0
                }
            };
            append(&mut bytes, &address.to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(8).max(8), 0);
        let (words, _) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let function = launch.kernel as usize;
        self.launches.push(LaunchId { step: number, kernel: launch.kernel });
        self.told = told.filter(|_| blocks != Blocks::Exactly(0));
        self.actions.push(Action::Launch { launch: number, function, blocks, words, patches });
        Ok(())
    }

    /// Tells the launch before, if there is one, that the next one begins early; whether there is.
    fn let_begin_early(&mut self) -> bool {
        match (self.told, self.actions.last_mut()) {
            (Some(Told::Size(at)), _) => self.sizes[at] |= NEXT_EARLY,
            (Some(Told::Argument(at)), Some(Action::Launch { words, .. })) => {
                words[at / 8] |= u64::from(NEXT_EARLY) << (at % 8 * 8);
            }
            _ => return false,
        }
        true
    }
}

/// Appends a number, naturally aligned.
fn append(bytes: &mut Vec<u8>, number: &[u8]) {
    bytes.resize(bytes.len().next_multiple_of(number.len()), 0);
    bytes.extend_from_slice(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use aot_ir::dim::Cond;
    use aot_ir::{Dim, Symbol, Symbols};

    #[test]
    fn arguments_are_packed_as_the_kernel_reads_them() {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 0, 100, 1));
        let n = symbols.dim(n);
        let launch = Launch {
            when: Cond::always(),
            kernel: 3,
            blocks: Dim::from(2),
            early: true,
            args: vec![
                LaunchArg::Sizes,
                LaunchArg::Buffer(BufferId(0)),
                LaunchArg::Buffer(BufferId(1)),
                LaunchArg::I64(1 << 40),
                LaunchArg::I32(-1),
                LaunchArg::I32(7),
                LaunchArg::I32(9),
            ],
            sizes: vec![
                LaunchSize::I64(n.clone()),
                LaunchSize::I32(&n + 1),
                LaunchSize::I32(&n + 2),
                LaunchSize::Early,
            ],
        };
        let place =
            |id: BufferId| Ok(if id.0 == 0 { Where::Fixed(0x1000) } else { Where::Arena(256) });
        let mut actions = Actions { sizes: vec![0; 32], ..Actions::default() };
        actions.launch(3, &launch, &[5], &place).unwrap();
        let [Action::Launch { launch: 3, function, blocks, words, patches }] = &*actions.actions
        else {
            panic!("{actions:?}")
        };
        assert_eq!((*function, *blocks), (3, Blocks::Exactly(2)));
        assert_eq!(*words, [0, 0x1000, 0, 1 << 40, 0x7_ffff_ffff, 9]);
        assert!(matches!(patches.as_slice(), [(0, Where::Sizes(32)), (2, Where::Arena(256))]));
        assert_eq!(actions.sizes[32..], [5u64, 6 | 7 << 32, 0, 0].map(u64::to_le_bytes).concat());
        let varying = Launch { blocks: n, ..launch };
        actions.launch(0, &varying, &[0], &place).unwrap();
        let last = actions.actions.last();
        assert!(matches!(last, Some(Action::Launch { blocks: Blocks::AtLeast(0), .. })));
    }

    /// Actions of launches: whether each begins early, whether it has sizes in memory, and its blocks.
    fn actions_of(launches: &[(bool, bool, i64)]) -> Actions {
        let mut actions = Actions::default();
        for (n, &(early, in_memory, blocks)) in launches.iter().enumerate() {
            let (sizes, args) = match in_memory {
                true => {
                    (vec![LaunchSize::I32(7.into()), LaunchSize::Early], vec![LaunchArg::Sizes])
                }
                false => (Vec::new(), vec![LaunchArg::I32(7), LaunchArg::Early]),
            };
            let blocks = Dim::from(blocks);
            let launch = Launch { when: Cond::always(), kernel: 0, blocks, early, args, sizes };
            actions.launch(n as u32, &launch, &[], &|_| unreachable!()).unwrap();
        }
        actions
    }

    /// What the launches are told of those after them.
    fn told(actions: &Actions) -> Vec<u8> {
        let mut sizes = actions.sizes.as_chunks::<16>().0.iter();
        let told = actions.actions.iter().map(|action| match action {
            Action::Launch { patches, .. } if !patches.is_empty() => sizes.next().unwrap()[4],
            Action::Launch { words, .. } => (words[0] >> 32) as u8,
            Action::Copy { .. } => panic!("no copy was added"),
        });
        told.collect()
    }

    #[test]
    fn launches_are_told_which_begin_early() {
        let (early, late) = (true, false);
        let (memory, value) = (true, false);
        let launches = [
            (early, memory, 1),
            (early, value, 1),
            (late, memory, 1),
            (early, value, 1),
            (early, memory, 1),
        ];
        assert_eq!(told(&actions_of(&launches)), [2, 1, 2, 3, 1]);
        // A launch of no blocks waits for nothing, so the one after it can't begin before it is done.
        let launches = [(late, value, 1), (early, value, 0), (early, memory, 1)];
        assert_eq!(told(&actions_of(&launches)), [0, 0, 0]);
        // Nor can one after a copy.
        let mut actions = actions_of(&[(late, value, 1)]);
        let (from, to) = (Where::Fixed(0), Where::Fixed(0));
        actions.copy(Action::Copy { from, to, bytes: 1 });
        assert!(!actions.let_begin_early());
        assert!(matches!(&actions.actions[0], Action::Launch { words, .. } if words[0] == 7));
    }
}
