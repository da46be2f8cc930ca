//! What is put into a stream, with everything known but addresses that change from call to call.

use super::flight::LaunchId;
use crate::program::{BufferId, Launch, LaunchArg, LaunchSize};
use crate::{Error, Result};

/// What kernels read of sizes begins at multiples of this.
pub(super) const SIZES_ALIGNMENT: usize = 16;

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

/// Actions in the making.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) actions: Vec<Action>,
    /// The launches among them.
    pub(super) launches: Vec<LaunchId>,
    /// What kernels read of sizes.
    pub(super) sizes: Vec<u8>,
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
    /// Adds a copy.
    pub(super) fn copy(&mut self, copy: Action) {
        self.told = None;
        self.actions.push(copy);
    }

    /// Adds a launch at sizes given by the symbols' atoms.
    pub(super) fn launch(
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
