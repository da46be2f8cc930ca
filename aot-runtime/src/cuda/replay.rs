//! Runs as work for a stream: one by one, or as a graph that is kept and changed from run to run.

// Work is put into streams; `Run` says what makes that sound.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::Gpu;
use super::Stream;
use super::actions::{Action, Blocks, Mode};
use super::context::Places;
use super::driver::{Function, Graph, GraphBuilder, Transfer, Work, execute};
use super::evaluate::Evaluated;
use super::flight::{Flight, LaunchId};
use super::timer::{Piece, Timer};
use crate::{Error, Result};

/// Graphs that a context keeps: one for each chain of nodes, which depends on where inputs and outputs are and on loops.
const KEPT: usize = 8;
/// With fewer launches a graph is no faster.
const WORTH_A_GRAPH: usize = 2;

/// Everything that a run puts into a stream.
///
/// Arguments were packed from the kernels' own lists and their lengths were checked; addresses are of
/// buffers as long as the program says, which stay until the event after the run has happened.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) functions: &'a [Function],
    /// Decides on the GPU what data decide.
    pub(super) control: Option<&'a Function>,
    /// Whether kernels wait for the launch before by themselves.
    pub(super) waits: bool,
    pub(super) evaluated: &'a Evaluated,
    pub(super) places: Places<'a>,
    /// Knows what is launched.
    pub(super) flight: &'a Flight,
    /// Whether every kernel is waited for, and none runs beside it.
    pub(super) blocking: bool,
    /// Staged inputs, before everything else.
    pub(super) upload: Option<Transfer>,
    /// Staged outputs, after everything else.
    pub(super) download: Option<Transfer>,
}

impl Run<'_> {
    /// Hands out all work in order, numbered.
    fn each(&self, mut take: impl FnMut(usize, &Work<'_>, Freedom) -> Result<()>) -> Result<()> {
        let mut number = 0;
        let mut give = |work: &Work<'_>, freedom: Freedom| {
            number += 1;
            take(number - 1, work, freedom)
        };
        let none = Freedom { more: false, waits: false, piece: None, control: None };
        if let Some(upload) = self.upload {
            give(&Work::Copy(upload), none)?;
        }
        let mut arguments: Vec<u64> = Vec::new();
        for action in &self.evaluated.actions {
            match action {
                Action::Launch { template, blocks, sizes, early } => {
                    let template = &self.evaluated.templates.all()[*template];
                    let (launch, function) = (template.id.step, template.id.kernel as usize);
                    let piece = Piece::Launch { launch, function };
                    template.arguments(&self.places, *sizes, *early, &mut arguments);
                    let function = &self.functions[function];
                    let (blocks, more) = match *blocks {
                        Blocks::Exactly(n) => (n, false),
                        Blocks::AtLeast(n) => (n, true),
                    };
                    let (waits, piece) = (self.waits, Some(piece));
                    let freedom = Freedom { more, waits, piece, control: None };
                    give(&Work::Launch { function, blocks, arguments: &arguments }, freedom)?;
                }
                Action::Control(control) => {
                    let function = self.control.ok_or_else(|| {
                        Error::artifact("the program", "it has no kernel that decides")
                    })?;
                    let arguments = control.arguments(&self.places);
                    let freedom = Freedom { control: Some(control.mode), ..none };
                    give(&Work::Launch { function, blocks: 1, arguments: &arguments }, freedom)?;
                }
                Action::Copy { from, to, bytes } => {
                    let (from, to) = (self.places.address(*from), self.places.address(*to));
                    give(&Work::Copy(Transfer::Within { from, to, bytes: *bytes }), none)?;
                }
            }
        }
        self.download.map_or(Ok(()), |download| give(&Work::Copy(download), none))
    }

    /// Whether a run did the same work at the same places.
    fn is(&self, other: &Identity) -> bool {
        other.evaluated == self.evaluated.id
            && other.transfers == (self.upload, self.download)
            && self.places.all().eq(other.places.iter().copied())
    }

    fn identity(&self) -> Identity {
        Identity {
            evaluated: self.evaluated.id,
            transfers: (self.upload, self.download),
            places: self.places.all().collect(),
        }
    }

    /// Puts the work into a stream piece by piece.
    pub(super) fn submit(&self, stream: &Stream) -> Result<()> {
        // SAFETY: what `Run` says of its arguments and addresses.
        self.put(stream, |work, _| unsafe { execute(stream, work) })
    }

    /// As [`Run::submit`], timing every piece.
    pub(super) fn submit_timed(
        &self,
        stream: &Stream,
        timer: &mut Timer,
        atoms: &Arc<[i64]>,
    ) -> Result<()> {
        self.put(stream, |work, freedom| {
            let piece = match (work, freedom.piece) {
                (_, Some(piece)) => piece,
                (Work::Copy(copy), None) => Piece::Copy { bytes: copy.bytes() },
                (Work::Launch { .. }, None) => return Ok(()),
            };
            // SAFETY: what `Run` says of its arguments and addresses.
            timer.time(stream, piece, atoms, || unsafe { execute(stream, work) })?;
            if self.blocking {
                timer.open();
            }
            Ok(())
        })
    }

    /// Hands out all work, which decides nothing; waits for each piece of it, with nothing beside, if runs are to be so.
    fn put(
        &self,
        stream: &Stream,
        mut put: impl FnMut(&Work<'_>, Freedom) -> Result<()>,
    ) -> Result<()> {
        if self.evaluated.decides {
            return Err(Error::artifact("the program", "data decide where the host should"));
        }
        if !self.blocking {
            self.flight.add(&self.evaluated.launches);
            return self.each(|_, work, freedom| put(work, freedom));
        }
        self.each(|_, work, freedom| {
            let _alone = stream.gpu().alone();
            if let Some(Piece::Launch { launch: step, function }) = freedom.piece {
                self.flight.only(LaunchId { step, kernel: function as u32 });
            }
            put(work, freedom)?;
            stream.synchronize()?;
            self.flight.over();
            Ok(())
        })
    }
}

/// What is left open of a piece of work, and what it is.
#[derive(Clone, Copy, Debug)]
struct Freedom {
    /// Which launch it is.
    piece: Option<Piece>,
    /// Surplus blocks leave at once.
    more: bool,
    /// It waits by itself until the launch before it is done, so it may begin when that one lets it.
    waits: bool,
    /// What it decides.
    control: Option<Mode>,
}

/// The graphs of an execution context, the last used first.
#[derive(Debug, Default)]
pub(super) struct Replays {
    kept: Vec<Replay>,
    /// Whether the context has had a run.
    used: bool,
    /// What the last run evaluated, see [`Evaluated::id`].
    last: u64,
}

#[derive(Debug)]
struct Replay {
    graph: Graph,
    /// What the nodes do now.
    nodes: Vec<Node>,
    /// What it ran last.
    last: Identity,
}

/// What stays of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Launch,
    Copy,
    /// A launch that begins the body of a loop.
    Begin,
    /// One that ends it.
    End,
    /// One that the launch after it does not begin before.
    Choose,
    /// A launch of no block, ever: the kernel after it does not wait for it, and so not for the one before.
    Nothing,
}

/// All that the nodes of a run follow from.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// See [`Evaluated::id`].
    evaluated: u64,
    /// The upload and the download.
    transfers: (Option<Transfer>, Option<Transfer>),
    places: Vec<u64>,
}

/// A node's work, to be compared.
#[derive(Debug)]
enum Node {
    /// The kernel is told by the address of its [`Function`].
    Launch {
        function: usize,
        blocks: u32,
        arguments: Vec<u64>,
        kind: Kind,
    },
    Copy(Transfer),
}

impl Kind {
    /// Of a launch that does something.
    fn of(control: Option<Mode>) -> Self {
        match control {
            Some(Mode::Begin) => Self::Begin,
            Some(Mode::End) => Self::End,
            Some(Mode::Choose) => Self::Choose,
            None => Self::Launch,
        }
    }
}

impl Node {
    fn of(work: &Work<'_>, control: Option<Mode>) -> Self {
        match work {
            Work::Launch { function, blocks, arguments } => Self::Launch {
                function: identity(function),
                blocks: *blocks,
                arguments: arguments.to_vec(),
                kind: if *blocks == 0 { Kind::Nothing } else { Kind::of(control) },
            },
            Work::Copy(copy) => Self::Copy(*copy),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Launch { kind, .. } => *kind,
            Self::Copy(_) => Kind::Copy,
        }
    }

    /// Whether it does this work, with so many blocks or with as many as cost next to nothing more.
    fn does(&self, work: &Work<'_>, more: bool) -> bool {
        match (self, work) {
            (
                Self::Launch { function, blocks, arguments, .. },
                Work::Launch { function: f, blocks: needed, arguments: a },
            ) => {
                let enough = blocks == needed || (more && has_room(*blocks, *needed));
                enough && *function == identity(f) && arguments == a
            }
            (Self::Copy(now), Work::Copy(copy)) => now == copy,
            _ => false,
        }
    }
}

fn identity(function: &Function) -> usize {
    std::ptr::from_ref(function).addr()
}

impl Replays {
    /// Puts a run into a stream.
    ///
    /// The first run of a context goes piece by piece: making a graph would cost a process that has
    /// one run more than it saves. So do runs of loops at new sizes, and those that wait for every kernel; but never one of
    /// which the GPU decides something.
    pub(super) fn run(&mut self, gpu: &Arc<Gpu>, stream: &Stream, run: &Run<'_>) -> Result<()> {
        let few = run.evaluated.actions.len() < WORTH_A_GRAPH;
        let decides = run.evaluated.decides;
        let first = !std::mem::replace(&mut self.used, true);
        if (first || few || run.blocking) && !decides {
            return run.submit(stream);
        }
        if self.kept.first().is_none_or(|replay| !run.is(&replay.last)) {
            // With another number of nodes a new graph is needed, which is worth it if there is a second such run.
            let again = std::mem::replace(&mut self.last, run.evaluated.id) == run.evaluated.id;
            match self.kept.iter().position(|replay| replay.fits(run)) {
                // A graph whose change fails half-way is not put back.
                Some(at) => {
                    let mut replay = self.kept.remove(at);
                    replay.change(run, stream)?;
                    self.kept.insert(0, replay);
                }
                None if run.evaluated.varies && !again && !decides => return run.submit(stream),
                None => {
                    self.kept.truncate(KEPT - 1);
                    self.kept.insert(0, Replay::new(gpu, run)?);
                }
            }
        }
        run.flight.add(&run.evaluated.launches);
        // SAFETY: what `Run` says of its arguments and addresses; the graph does the run's work.
        unsafe { self.kept[0].graph.launch(stream) }
    }
}

impl Replay {
    fn new(gpu: &Arc<Gpu>, run: &Run<'_>) -> Result<Self> {
        let mut builder = GraphBuilder::new(gpu)?;
        let mut nodes = Vec::with_capacity(run.evaluated.actions.len() + 2);
        run.each(|_, work, freedom| {
            let work = roomy(work, freedom.more);
            nodes.push(Node::of(&work, freedom.control));
            match freedom.control {
                Some(Mode::Begin) => builder.begin_loop(&work),
                Some(Mode::End) => builder.end_loop(&work),
                Some(Mode::Choose) => builder.push_apart(&work),
                None => builder.push(&work, freedom.waits),
            }
        })?;
        let graph = builder.finish()?;
        Ok(Self { graph, nodes, last: run.identity() })
    }

    /// Whether it can be changed to do the run's work.
    fn fits(&self, run: &Run<'_>) -> bool {
        let kinds = run.evaluated.actions.iter().map(|action| match action {
            Action::Launch { blocks: Blocks::Exactly(0), .. } => Kind::Nothing,
            Action::Launch { .. } => Kind::Launch,
            Action::Copy { .. } => Kind::Copy,
            Action::Control(control) => Kind::of(Some(control.mode)),
        });
        let upload = run.upload.map(|_| Kind::Copy).into_iter();
        let download = run.download.map(|_| Kind::Copy).into_iter();
        let here = self.nodes.iter().map(Node::kind);
        upload.chain(kinds).chain(download).eq(here)
    }

    /// Makes the nodes do the run's work. The run before it is ahead of it in the stream.
    fn change(&mut self, run: &Run<'_>, stream: &Stream) -> Result<()> {
        if run.is(&self.last) {
            return Ok(());
        }
        let Self { graph, nodes, .. } = self;
        // Bodies of loops are the GPU's to launch: they are not changed while they may run.
        let mut runs = graph.decides();
        run.each(|n, work, freedom| {
            if !nodes[n].does(work, freedom.more) {
                if std::mem::take(&mut runs) {
                    stream.synchronize()?;
                }
                let work = roomy(work, freedom.more);
                graph.set(n, &work)?;
                nodes[n] = Node::of(&work, freedom.control);
            }
            Ok(())
        })?;
        self.last = run.identity();
        Ok(())
    }
}

/// The work as a node has it: with room for a few more blocks, so that the next sizes need no change.
fn roomy<'a>(work: &Work<'a>, more: bool) -> Work<'a> {
    match *work {
        Work::Launch { function, blocks, arguments } if more => {
            let blocks = blocks.max(1);
            let step = (blocks.next_power_of_two() / 16).max(FEW_BLOCKS);
            let blocks = blocks.checked_next_multiple_of(step).unwrap_or(blocks);
            Work::Launch { function, blocks, arguments }
        }
        work => work,
    }
}

/// Blocks that are always given beyond those that are needed.
const FEW_BLOCKS: u32 = 32;
/// Surplus blocks that a launch keeps: leaving costs each 0.65 ns (docs/spikes.md).
const IDLE_BLOCKS: u32 = 512;

/// Whether a launch of so many blocks may stay as it is where another number is needed.
fn has_room(blocks: u32, needed: u32) -> bool {
    needed <= blocks && blocks - needed <= IDLE_BLOCKS.max(needed / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_keep_their_blocks_while_the_surplus_is_cheap() {
        assert!(has_room(64, 64) && has_room(64, 0) && has_room(9000, 8000));
        assert!(!has_room(64, 65) && !has_room(1000, 400) && !has_room(9001, 8000));
    }
}
