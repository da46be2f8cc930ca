//! Runs as work for a stream: one by one, or as a graph that is kept and changed from run to run.

// Work is put into streams; `Run` says what makes that sound.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::Gpu;
use super::Stream;
use super::context::Places;
use super::driver::{Function, Graph, GraphBuilder, Transfer, Work, execute};
use super::evaluate::{Action, Evaluated};
use crate::Result;

/// Graphs that a context keeps: as many different sizes can take turns without a node being changed.
const KEPT: usize = 4;
/// With fewer launches a graph is no faster.
const WORTH_A_GRAPH: usize = 2;

/// Everything that a run puts into a stream.
///
/// Arguments were packed from the kernels' own lists and their lengths were checked; addresses are of
/// buffers as long as the program says, which stay until the event after the run has happened.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) functions: &'a [Function],
    pub(super) evaluated: &'a Evaluated,
    pub(super) places: Places<'a>,
    /// Staged inputs, before everything else.
    pub(super) upload: Option<Transfer>,
    /// Staged outputs, after everything else.
    pub(super) download: Option<Transfer>,
}

impl Run<'_> {
    /// Hands out all work in order, numbered.
    fn each(&self, mut take: impl FnMut(usize, &Work<'_>) -> Result<()>) -> Result<()> {
        let mut number = 0;
        let mut give = |work: &Work<'_>| {
            number += 1;
            take(number - 1, work)
        };
        if let Some(upload) = self.upload {
            give(&Work::Copy(upload))?;
        }
        let mut patched: Vec<u64> = Vec::new();
        for action in &self.evaluated.actions {
            match action {
                Action::Launch { function, grid, words, patches } => {
                    patched.clear();
                    patched.extend_from_slice(words);
                    for (word, place) in patches {
                        patched[*word] = patched[*word].wrapping_add(self.places.address(*place));
                    }
                    let function = &self.functions[*function];
                    give(&Work::Launch { function, grid: *grid, arguments: &patched })?;
                }
                Action::Copy { from, to, bytes } => {
                    let (from, to) = (self.places.address(*from), self.places.address(*to));
                    give(&Work::Copy(Transfer::Within { from, to, bytes: *bytes }))?;
                }
            }
        }
        self.download.map_or(Ok(()), |download| give(&Work::Copy(download)))
    }

    /// Puts the work into a stream piece by piece.
    pub(super) fn submit(&self, stream: &Stream) -> Result<()> {
        // SAFETY: what `Run` says of its arguments and addresses.
        self.each(|_, work| unsafe { execute(stream, work) })
    }
}

/// The graphs of an execution context, the last used first.
#[derive(Debug, Default)]
pub(super) struct Replays {
    kept: Vec<Replay>,
    /// Whether the context has had a run.
    used: bool,
    /// The sizes of the last run, see [`Evaluated::id`].
    last: u64,
}

#[derive(Debug)]
struct Replay {
    graph: Graph,
    /// What the nodes do now.
    nodes: Vec<Node>,
    transfers: (bool, bool),
    /// The sizes that it ran last, see [`Evaluated::id`].
    sizes: u64,
}

/// A node's work, to be compared.
#[derive(Debug)]
enum Node {
    /// The kernel is told by the address of its [`Function`].
    Launch {
        function: usize,
        grid: [u32; 3],
        arguments: Vec<u64>,
    },
    Copy(Transfer),
}

impl Node {
    fn of(work: &Work<'_>) -> Self {
        match work {
            Work::Launch { function, grid, arguments } => Self::Launch {
                function: identity(function),
                grid: *grid,
                arguments: arguments.to_vec(),
            },
            Work::Copy(copy) => Self::Copy(*copy),
        }
    }

    fn does(&self, work: &Work<'_>) -> bool {
        match (self, work) {
            (
                Self::Launch { function, grid, arguments },
                Work::Launch { function: f, grid: g, arguments: a },
            ) => *function == identity(f) && grid == g && arguments == a,
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
    /// one run more than it saves. So do runs of loops at new sizes.
    pub(super) fn run(&mut self, gpu: &Arc<Gpu>, stream: &Stream, run: &Run<'_>) -> Result<()> {
        if !std::mem::replace(&mut self.used, true) || run.evaluated.actions.len() < WORTH_A_GRAPH {
            return run.submit(stream);
        }
        let transfers = (run.upload.is_some(), run.download.is_some());
        let count =
            run.evaluated.actions.len() + usize::from(transfers.0) + usize::from(transfers.1);
        let fits = |r: &Replay| r.transfers == transfers && r.nodes.len() == count;
        let same = |r: &Replay| fits(r) && r.sizes == run.evaluated.id;
        // With another number of nodes a new graph is needed, which is worth it if there is a second such run.
        let again = std::mem::replace(&mut self.last, run.evaluated.id) == run.evaluated.id;
        if run.evaluated.varies && !again && !self.kept.iter().any(same) {
            return run.submit(stream);
        }
        let at = self.kept.iter().position(same).or_else(|| {
            let full = self.kept.len() >= KEPT;
            full.then(|| self.kept.iter().rposition(fits)).flatten()
        });
        match at {
            // A graph whose change fails half-way is not put back.
            Some(at) => {
                let mut replay = self.kept.remove(at);
                replay.change(run)?;
                self.kept.insert(0, replay);
            }
            None => {
                self.kept.truncate(KEPT - 1);
                self.kept.insert(0, Replay::new(gpu, run, transfers)?);
            }
        }
        // SAFETY: what `Run` says of its arguments and addresses; the graph does the run's work.
        unsafe { self.kept[0].graph.launch(stream) }
    }
}

impl Replay {
    fn new(gpu: &Arc<Gpu>, run: &Run<'_>, transfers: (bool, bool)) -> Result<Self> {
        let mut builder = GraphBuilder::new(gpu)?;
        let mut nodes = Vec::with_capacity(run.evaluated.actions.len() + 2);
        run.each(|_, work| {
            nodes.push(Node::of(work));
            builder.push(work)
        })?;
        let graph = builder.finish()?;
        Ok(Self { graph, nodes, transfers, sizes: run.evaluated.id })
    }

    /// Makes the nodes do the run's work.
    fn change(&mut self, run: &Run<'_>) -> Result<()> {
        let Self { graph, nodes, .. } = self;
        run.each(|n, work| {
            if !nodes[n].does(work) {
                graph.set(n, work)?;
                nodes[n] = Node::of(work);
            }
            Ok(())
        })?;
        self.sizes = run.evaluated.id;
        Ok(())
    }
}
