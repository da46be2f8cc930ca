//! Launches with everything filled in that does not follow from sizes.

use std::collections::HashSet;
use std::ops::Range;

use super::actions::Where;
use super::context::Places;
use super::flight::LaunchId;
use super::values::{DimId, Expressions, Values};
use crate::program::{BufferId, Launch, LaunchArg, LaunchSize, Step, Target};
use crate::{Error, Result};

/// What kernels read of sizes begins at multiples of this.
const SIZES_ALIGNMENT: usize = 16;

/// All variants of the launches of some steps.
#[derive(Debug)]
pub(super) struct Templates {
    expressions: Expressions,
    all: Vec<Template>,
    /// By launch of the program: where its variants are; nowhere if it is in none of the steps.
    variants: Vec<Range<usize>>,
}

/// A variant of a launch.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) id: LaunchId,
    /// Sizes at which it is chosen.
    when: DimId,
    pub(super) blocks: DimId,
    /// Whether `blocks` is a constant, so that no more may be launched.
    pub(super) exactly: bool,
    /// See [`Launch::early`].
    pub(super) early: bool,
    /// The argument structure in 8-byte words, 0 where sizes or addresses of a run come.
    words: Vec<u64>,
    /// Words that are addresses of buffers.
    buffers: Vec<(usize, Where)>,
    /// Words that are the address of the launch's sizes.
    own: Vec<usize>,
    /// Words that are the address of [`LaunchArg::Progress`].
    progress: Vec<usize>,
    /// What the kernel reads of sizes, and at which byte of them.
    pub(super) sizes: Vec<(usize, Size)>,
    /// Bytes that these take.
    pub(super) room: usize,
    /// Where the kernel is told of launches that begin early.
    pub(super) told: Option<Told>,
}

/// A size that a kernel reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    I64(DimId),
    I32(DimId),
    /// [`LaunchSize::Early`].
    Early,
}

/// Where a launch has [`LaunchSize::Early`] or [`LaunchArg::Early`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// From this byte of its sizes on.
    Size(usize),
    /// From this byte of its arguments on.
    Argument(usize),
}

impl Templates {
    /// The launches of steps of a target's program, whose buffers have these places.
    pub(super) fn new(
        target: &Target,
        steps: &[Step],
        place: impl Fn(BufferId) -> Result<Where>,
    ) -> Result<Self> {
        let mut expressions = Expressions::default();
        let mut all = Vec::new();
        let mut variants = Vec::with_capacity(target.launches.len());
        let wanted: HashSet<u32> = steps.iter().flat_map(Step::launches).collect();
        for (step, launches) in (0..).zip(&target.launches) {
            let start = all.len();
            for launch in launches.iter().filter(|_| wanted.contains(&step)) {
                all.push(Template::new(step, launch, &mut expressions, &place)?);
            }
            variants.push(start..all.len());
        }
        Ok(Self { expressions, all, variants })
    }

    /// The values of what these launches need, at sizes given by the symbols' atoms.
    pub(super) fn values(&self, atoms: &[i64]) -> Values<'_> {
        Values::new(&self.expressions, atoms)
    }

    pub(super) fn all(&self) -> &[Template] {
        &self.all
    }

    /// The variants of a launch of the program.
    pub(super) fn variants(&self, launch: u32) -> &[Template] {
        self.variants.get(launch as usize).map_or(&[], |range| &self.all[range.clone()])
    }

    /// The variant of a launch that is for these sizes: its index among all templates.
    pub(super) fn choose(&self, launch: u32, values: &mut Values<'_>) -> Result<usize> {
        for at in self.variants.get(launch as usize).cloned().unwrap_or_default() {
            if values.holds(self.all[at].when)? {
                return Ok(at);
            }
        }
        Err(Error::artifact("the program", "no kernel is for these sizes"))
    }
}

impl Template {
    fn new(
        step: u32,
        launch: &Launch,
        expressions: &mut Expressions,
        place: impl Fn(BufferId) -> Result<Where>,
    ) -> Result<Self> {
        let mut told = None;
        let mut sizes = Vec::with_capacity(launch.sizes.len());
        let mut room = 0usize;
        for size in &launch.sizes {
            let (bytes, size) = match size {
                LaunchSize::I64(dim) => (8, Size::I64(expressions.dim(dim))),
                LaunchSize::I32(dim) => (4, Size::I32(expressions.dim(dim))),
                LaunchSize::Early => (4, Size::Early),
            };
            let at = room.next_multiple_of(bytes);
            if let Size::Early = size {
                told = Some(Told::Size(at));
            }
            sizes.push((at, size));
            room = at + bytes;
        }
        let mut arguments: Vec<u8> = Vec::new();
        let (mut buffers, mut own, mut progress) = (Vec::new(), Vec::new(), Vec::new());
        let id = LaunchId { step, kernel: launch.kernel };
        for arg in &launch.args {
            match arg {
                LaunchArg::Sizes => own.push(append(&mut arguments, &[0; 8]) / 8),
                LaunchArg::Buffer(id) => match place(*id)? {
                    Where::Fixed(address) => {
                        append(&mut arguments, &address.to_le_bytes());
                    }
                    other => buffers.push((append(&mut arguments, &[0; 8]) / 8, other)),
                },
                LaunchArg::Progress => progress.push(append(&mut arguments, &[0; 8]) / 8),
                LaunchArg::Number => {
                    append(&mut arguments, &id.number().to_le_bytes());
                }
                LaunchArg::I64(number) => {
                    append(&mut arguments, &number.to_le_bytes());
                }
                LaunchArg::I32(number) => {
                    append(&mut arguments, &number.to_le_bytes());
                }
                LaunchArg::Early => told = Some(Told::Argument(append(&mut arguments, &[0; 4]))),
            }
        }
        arguments.resize(arguments.len().next_multiple_of(8).max(8), 0);
        let (words, _) = arguments.as_chunks::<8>();
        Ok(Self {
            id,
            when: expressions.cond(&launch.when),
            blocks: expressions.dim(&launch.blocks),
            exactly: launch.blocks.as_const().is_some(),
            early: launch.early,
            words: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
            buffers,
            own,
            progress,
            sizes,
            room: room.next_multiple_of(SIZES_ALIGNMENT),
            told,
        })
    }

    /// Bytes of the argument structure.
    pub(super) fn argument_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Writes the argument structure in 8-byte words: of a launch whose sizes begin that many bytes into what a run's
    /// kernels read of sizes, and that is told `early` ([`LaunchArg::Early`]).
    pub(super) fn arguments(
        &self,
        places: &Places<'_>,
        sizes: u64,
        early: u32,
        words: &mut Vec<u64>,
    ) {
        words.clear();
        words.extend_from_slice(&self.words);
        for (word, place) in &self.buffers {
            words[*word] = places.address(*place);
        }
        for word in &self.own {
            words[*word] = places.sizes + sizes;
        }
        for word in &self.progress {
            words[*word] = places.progress;
        }
        if let Some(Told::Argument(at)) = self.told {
            words[at / 8] |= u64::from(early) << (at % 8 * 8);
        }
    }
}

/// Appends a number, naturally aligned; where it begins.
fn append(bytes: &mut Vec<u8>, number: &[u8]) -> usize {
    let at = bytes.len().next_multiple_of(number.len());
    bytes.resize(at, 0);
    bytes.extend_from_slice(number);
    at
}
