//! Bodies of nodes as loops of the graph.

use super::super::builder::{OpResult, Tensor};
use super::super::item::{Item, Names};
use super::super::known::{Content, Elem};
use super::super::nodes::{Importer, Opsets, Stop};
use super::super::proto::{GraphProto, NodeProto};
use super::counted::Counted;
use super::wrong_stop;
use aot_ir::{DType, Dim};

/// A body and what goes into it.
pub(super) struct Repeat<'a> {
    pub(super) body: &'a GraphProto,
    /// The number of iterations; with a condition that decides, the greatest.
    pub(super) count: Dim,
    /// Where the count is what the condition comes to.
    pub(super) counted: Option<Counted>,
    pub(super) shape: Shape,
    /// Carried values as the first iteration gets them.
    pub(super) initial: Vec<Tensor>,
    /// Of the collected results, those whose last iteration comes first.
    pub(super) backward: Vec<bool>,
}

/// How a body's inputs and outputs begin.
pub(super) enum Shape {
    /// Iteration and condition come first, a condition goes out first; whether there is a first iteration.
    Loop(Tensor),
    /// After the carried values come slices of these tensors along an axis, from the end where it is so.
    Scan(Vec<(Tensor, usize, bool)>),
}

/// What became of an attempt.
pub(super) enum Attempt {
    /// The outputs.
    Made(Vec<Option<Item>>),
    /// The node can't be imported in this way.
    No(Stop),
}

impl Importer<'_> {
    /// Tries one way to import a node. What it reports or guards is forgotten if it fails.
    pub(super) fn try_to(
        &mut self,
        way: impl FnOnce(&mut Self) -> Result<Vec<Option<Item>>, Stop>,
    ) -> Result<Attempt, Stop> {
        let (reported, guards) = (self.unsupported.len(), self.builder.guards());
        let name = self.builder.node.clone();
        let found = way(self);
        self.builder.node = name;
        let why = match found {
            Ok(outputs) if self.unsupported.len() == reported => return Ok(Attempt::Made(outputs)),
            Ok(_) => super::unsupported_stop("something in the body is not supported"),
            Err(Stop::Error(error)) => return Err(Stop::Error(error)),
            Err(stop) => stop,
        };
        self.unsupported.truncate(reported);
        self.builder.keep_guards(guards);
        Ok(Attempt::No(why))
    }

    /// Adds a loop; `None` instead of the outputs when something inside is reported already.
    pub(super) fn repeat(
        &mut self,
        repeat: &Repeat<'_>,
        opsets: &Opsets,
    ) -> Result<Option<Vec<Tensor>>, Stop> {
        let name = self.builder.node.clone();
        let conditional = matches!(repeat.shape, Shape::Loop(_)) && repeat.counted.is_none();
        let open = self.builder.begin_loop(&repeat.count, conditional, &repeat.initial);
        let counted = repeat.counted.as_ref();
        for (n, number) in counted.iter().flat_map(|counted| counted.before(&open.at())) {
            self.builder.set_integer(open.carried()[n], number);
        }
        let inside = self.inside(repeat, opsets, &open.at(), open.carried());
        self.builder.node = name;
        let (condition, results) = match inside {
            Ok(Some(inside)) => inside,
            Ok(None) => {
                self.builder.abandon_loop(open);
                return Ok(None);
            }
            Err(stop) => {
                self.builder.abandon_loop(open);
                return Err(stop);
            }
        };
        let (next, collected) = results.split_at(repeat.initial.len());
        let collected: Vec<(Tensor, bool)> = (collected.iter().copied().enumerate())
            .map(|(i, t)| (t, repeat.backward.get(i) == Some(&true)))
            .collect();
        let condition = condition.filter(|_| conditional);
        let out = self.builder.end_loop(open, condition, &repeat.initial, next, &collected)?;
        for (n, number) in counted.iter().flat_map(|counted| counted.before(&repeat.count)) {
            self.builder.set_integer(out[n], number);
        }
        Ok(Some(out))
    }

    /// One iteration: the conditions before the loop and after the iteration, if they are not both true anyway, and the
    /// other results.
    #[allow(clippy::type_complexity)]
    pub(super) fn inside(
        &mut self,
        repeat: &Repeat<'_>,
        opsets: &Opsets,
        at: &Dim,
        carried: &[Tensor],
    ) -> Result<Option<(Option<(Tensor, Tensor)>, Vec<Tensor>)>, Stop> {
        let mut values = Vec::new();
        if let Shape::Loop(_) = repeat.shape {
            let at = self.builder.known(DType::I64, Content::scalar(Elem::Int(at.clone())));
            values.extend([at, self.builder.scalar(1.0, DType::Bool)]);
        }
        values.extend(carried);
        if let Shape::Scan(scanned) = &repeat.shape {
            for &(t, axis, backward) in scanned {
                let at = if backward { &repeat.count - 1 - at } else { at.clone() };
                values.push(self.builder.pick(t, axis, at)?);
            }
        }
        let mut names = Names::new();
        for (input, value) in repeat.body.input.iter().zip(values) {
            names.insert(input.name.clone(), Some(Item::Tensor(value)));
        }
        let out = self.graph(repeat.body, opsets, names)?;
        let Some(out) = out.into_iter().collect::<Option<Vec<Item>>>() else { return Ok(None) };
        let out = out.iter().map(|item| item.tensor("a result of the body"));
        let mut out = out.collect::<OpResult<Vec<Tensor>>>()?;
        let Shape::Loop(first) = repeat.shape else { return Ok(Some((None, out))) };
        if out.is_empty() {
            return Err(wrong_stop("the body gives no condition"));
        }
        let again = out.remove(0);
        let always = |importer: &mut Self, t| importer.builder.uniform(t).is_some_and(|v| v != 0.0);
        let endless = always(self, first) && always(self, again);
        let again = self.builder.reshape(again, &[])?;
        Ok(Some(((!endless).then_some((first, again)), out)))
    }
}

/// Tensors as outputs.
pub(super) fn items(tensors: Vec<Tensor>) -> Vec<Option<Item>> {
    tensors.into_iter().map(|t| Some(Item::Tensor(t))).collect()
}

/// The nodes of a graph and those within them.
pub(super) fn nodes(graph: &GraphProto) -> i64 {
    let inner = |node: &NodeProto| -> i64 {
        node.attribute.iter().filter_map(|a| a.g.as_deref()).map(nodes).sum()
    };
    graph.node.iter().map(|node| 1 + inner(node)).sum()
}
