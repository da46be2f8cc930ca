//! What is put into a stream, with everything known but addresses that change from call to call.

use super::context::Places;
use super::templates::{Size, Template, Told};
use super::values::Values;
use crate::program::BufferId;
use crate::{Error, Result};

/// One thing to put into a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A kernel launch, which does nothing if there are no blocks.
    Launch {
        /// Index into the [templates](super::templates::Templates).
        template: usize,
        blocks: Blocks,
        /// Where its sizes begin: bytes into what kernels read of sizes.
        sizes: u64,
        /// What it is told: [`LaunchSize::Early`](crate::program::LaunchSize::Early).
        early: u32,
    },
    /// A copy of this many bytes.
    Copy { from: Where, to: Where, bytes: usize },
    /// A launch of the kernel that decides on the GPU what data decide.
    Control(Control),
}

/// What [`Target::loop_control`](crate::program::Target::loop_control) is to do. Places in what kernels read of sizes are
/// bytes from its beginning on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) mode: Mode,
    /// Of a loop: one byte that says whether it goes on.
    pub(super) condition: Option<Where>,
    /// How many iterations a loop has at most, or the size that chooses a row.
    pub(super) value: Value,
    /// Of a loop: how many iterations were made.
    pub(super) progress: u64,
    /// Rows of sizes, one after the other.
    pub(super) rows: u64,
    /// Where kernels read theirs.
    pub(super) sizes: u64,
    /// Units of 16 bytes in a row.
    pub(super) vectors: u32,
    /// Rows, after which they begin anew.
    pub(super) period: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// A loop, whose body are the actions up to its end, has its first iteration.
    #[default]
    Begin,
    /// It has another iteration.
    End,
    /// The actions after this have the sizes of a row.
    Choose,
}

/// Where 64 bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Among what kernels read of sizes.
    Sizes(u64),
    Buffer(Where),
}

impl Default for Value {
    fn default() -> Self {
        Self::Sizes(0)
    }
}

/// Bytes of its argument structure.
pub(super) const CONTROL_BYTES: usize = 64;

impl Control {
    /// What it is with its sizes so many bytes later.
    pub(super) fn moved(self, by: u64) -> Self {
        let value = match self.value {
            Value::Sizes(at) => Value::Sizes(at + by),
            buffer @ Value::Buffer(_) => buffer,
        };
        let (progress, rows, sizes) = (self.progress + by, self.rows + by, self.sizes + by);
        Self { value, progress, rows, sizes, ..self }
    }

    /// The argument structure in 8-byte words. The first one, the loop's handle, is 0.
    pub(super) fn arguments(&self, places: &Places<'_>) -> [u64; CONTROL_BYTES / 8] {
        let value = match self.value {
            Value::Sizes(at) => places.sizes + at,
            Value::Buffer(place) => places.address(place),
        };
        let mode = match self.mode {
            Mode::Begin => 0,
            Mode::End => 1,
            Mode::Choose => 2,
        };
        [
            0,
            self.condition.map_or(0, |place| places.address(place)),
            value,
            places.sizes + self.progress,
            places.sizes + self.rows,
            places.sizes + self.sizes,
            u64::from(self.vectors) | u64::from(self.period) << 32,
            mode,
        ]
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// There.
    Fixed(u64),
    /// In the arena, where the memory plan has this buffer.
    Arena(BufferId),
    /// The n-th input.
    Input(u32),
    /// The n-th output.
    Output(u32),
    /// Bytes into the zeroed scratch of an execution context.
    Scratch(u64),
}

/// Actions in the making.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) actions: Vec<Action>,
    /// What kernels read of sizes.
    pub(super) sizes: Vec<u8>,
    /// Where the last action, if it is a launch that has blocks, is told whether the next one begins early.
    told: Option<Told>,
}

/// What a launch is told: it begins early.
const EARLY: u32 = 1;
/// What a launch is told: the launch after it begins early.
const NEXT_EARLY: u8 = 2;

impl Actions {
    /// Adds a copy.
    pub(super) fn copy(&mut self, copy: Action) {
        self.told = None;
        self.actions.push(copy);
    }

    /// Adds a launch of the kernel that decides.
    pub(super) fn control(&mut self, control: Control) {
        self.told = None;
        self.actions.push(Action::Control(control));
    }

    /// Adds a launch of the template with this index.
    pub(super) fn launch(
        &mut self,
        index: usize,
        template: &Template,
        values: &mut Values<'_>,
    ) -> Result<()> {
        let blocks = values.get(template.blocks)?;
        let blocks = u32::try_from(blocks.max(0))
            .map_err(|_| Error::Execution(format!("a kernel would need {blocks} blocks")))?;
        let blocks = match template.exactly {
            true => Blocks::Exactly(blocks),
            false => Blocks::AtLeast(blocks),
        };
        let early = template.early && blocks != Blocks::Exactly(0) && self.let_begin_early();
        let early = if early { EARLY } else { 0 };
        let start = self.sizes.len();
        self.sizes.resize(start + template.room, 0);
        for (at, size) in &template.sizes {
            let at = start + at;
            match size {
                Size::I64(dim) => self.put(at, values.get(*dim)?.to_le_bytes()),
                Size::I32(dim) => {
                    let value = values.get(*dim)?;
                    let value = i32::try_from(value).map_err(|_| {
                        Error::Execution(format!("a size, {value}, exceeds 32 bits"))
                    })?;
                    self.put(at, value.to_le_bytes());
                }
                Size::Early => self.put(at, early.to_le_bytes()),
            }
        }
        self.told = match template.told {
            _ if blocks == Blocks::Exactly(0) => None,
            Some(Told::Size(at)) => Some(Told::Size(start + at)),
            argument => argument,
        };
        let sizes = start as u64;
        self.actions.push(Action::Launch { template: index, blocks, sizes, early });
        Ok(())
    }

    /// Writes a number to the sizes.
    fn put<const N: usize>(&mut self, at: usize, number: [u8; N]) {
        self.sizes[at..at + N].copy_from_slice(&number);
    }

    /// Tells the launch before, if there is one, that the next one begins early; whether there is.
    fn let_begin_early(&mut self) -> bool {
        match (self.told, self.actions.last_mut()) {
            (Some(Told::Size(at)), _) => self.sizes[at] |= NEXT_EARLY,
            (Some(Told::Argument(_)), Some(Action::Launch { early, .. })) => {
                *early |= u32::from(NEXT_EARLY);
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::templates::Templates;
    use super::*;
    use crate::program::{Launch, LaunchArg, LaunchSize, Step, Target};
    use aot_ir::dim::Cond;
    use aot_ir::{Arch, Dim, Symbol, Symbols};

    const PLACES: Places<'_> = Places {
        arena: 0x10_0000,
        offsets: &[0, 256],
        scratch: 0,
        sizes: 0x2000,
        progress: 0x3000,
        inputs: &[],
        outputs: &[],
    };

    /// Templates of launches that have one variant each, in order.
    fn templates(launches: Vec<Launch>) -> Templates {
        let steps: Vec<Step> = (0..launches.len()).map(|n| Step::Launch(n as u32)).collect();
        let target = Target {
            arch: Arch::of_capability(90),
            ptx: false,
            kernels: Vec::new(),
            launches: launches.into_iter().map(|launch| vec![launch]).collect(),
            loop_control: None,
        };
        let place = |id: BufferId| {
            Ok(if id.0 == 0 { Where::Fixed(0x1000) } else { Where::Arena(BufferId(1)) })
        };
        Templates::new(&target, &steps, place).unwrap()
    }

    /// The arguments of a launch.
    fn words(templates: &Templates, action: &Action) -> Vec<u64> {
        let Action::Launch { template, sizes, early, .. } = action else { panic!("{action:?}") };
        let mut words = vec![7; 99];
        templates.all()[*template].arguments(&PLACES, *sizes, *early, &mut words);
        words
    }

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
                LaunchArg::Progress,
                LaunchArg::Number,
            ],
            sizes: vec![
                LaunchSize::I64(n.clone()),
                LaunchSize::I32(&n + 1),
                LaunchSize::I32(&n + 2),
                LaunchSize::Early,
            ],
        };
        let varying = Launch { blocks: n, ..launch.clone() };
        let templates = templates(vec![launch, varying]);
        let [template, varying] = templates.all() else { panic!("{templates:?}") };
        assert_eq!((template.id.step, template.id.kernel, template.argument_bytes()), (0, 3, 64));
        let mut actions = Actions { sizes: vec![0; 32], ..Actions::default() };
        actions.launch(0, template, &mut templates.values(&[5])).unwrap();
        let [action] = &*actions.actions else { panic!("{actions:?}") };
        assert!(matches!(action, Action::Launch { blocks: Blocks::Exactly(2), sizes: 32, .. }));
        let expected = [0x2020, 0x1000, 0x10_0100, 1 << 40, 0x7_ffff_ffff, 9, 0x3000, 3 << 32 | 1];
        assert_eq!(words(&templates, action), expected);
        assert_eq!(actions.sizes[32..], [5u64, 6 | 7 << 32, 0, 0].map(u64::to_le_bytes).concat());
        actions.launch(1, varying, &mut templates.values(&[0])).unwrap();
        let last = actions.actions.last();
        assert!(matches!(last, Some(Action::Launch { blocks: Blocks::AtLeast(0), .. })));
    }

    /// Actions of launches: whether each begins early, whether it has sizes in memory, and its blocks.
    fn actions_of(launches: &[(bool, bool, i64)]) -> (Templates, Actions) {
        let launches = launches.iter().map(|&(early, in_memory, blocks)| {
            let (sizes, args) = match in_memory {
                true => {
                    (vec![LaunchSize::I32(7.into()), LaunchSize::Early], vec![LaunchArg::Sizes])
                }
                false => (Vec::new(), vec![LaunchArg::I32(7), LaunchArg::Early]),
            };
            let blocks = Dim::from(blocks);
            Launch { when: Cond::always(), kernel: 0, blocks, early, args, sizes }
        });
        let templates = templates(launches.collect());
        let mut actions = Actions::default();
        for (n, template) in templates.all().iter().enumerate() {
            actions.launch(n, template, &mut templates.values(&[])).unwrap();
        }
        (templates, actions)
    }

    /// What the launches are told of those after them.
    fn told((templates, actions): &(Templates, Actions)) -> Vec<u8> {
        let told = actions.actions.iter().map(|action| match words(templates, action)[0] {
            address @ 0x2000.. if address < 1 << 32 => {
                actions.sizes[(address - PLACES.sizes) as usize + 4]
            }
            word => (word >> 32) as u8,
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
        let (templates, mut actions) = actions_of(&[(late, value, 1)]);
        let (from, to) = (Where::Fixed(0), Where::Fixed(0));
        actions.copy(Action::Copy { from, to, bytes: 1 });
        assert!(!actions.let_begin_early());
        assert_eq!(words(&templates, &actions.actions[0]), [7]);
    }
}
