//! Runs the rules over a graph's nodes.

use super::super::error::{ImportError, Unsupported};
use super::builder::{Builder, OpError, OpResult, Tensor, moves, unsupported};
use super::call::{Call, Rule};
use super::file::Files;

use super::item::{Item, Names};
use super::order::{OrderError, order};
use super::proto::{FunctionProto, GraphProto, NodeProto, TensorProto};
use super::{control, rules, sequences, tensor};

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;

/// Versions of operator sets by domain.
pub(super) type Opsets = BTreeMap<String, i64>;

/// Deepest nesting of graphs and functions.
pub(super) const MAX_DEPTH: usize = 24;
/// Most nodes that are imported, those of unrolled bodies counted each time.
const MAX_NODES: usize = 1 << 18;

/// The state of an import.
pub(super) struct Importer<'a> {
    pub(super) path: &'a Path,
    pub(super) builder: Builder,
    files: &'a mut Files,
    functions: HashMap<(&'a str, &'a str), &'a FunctionProto>,
    /// Innermost graph last.
    pub(super) scopes: Vec<Names>,
    pub(super) unsupported: Vec<Unsupported>,
    nodes: usize,
}

/// Why a graph can't be imported: an error of its own, or one of the node that holds it.
pub(super) enum Stop {
    /// To be reported as it is.
    Error(Box<ImportError>),
    /// To be reported for the node.
    Op(OpError),
}

impl From<OpError> for Stop {
    fn from(error: OpError) -> Self {
        Self::Op(error)
    }
}

impl From<ImportError> for Stop {
    fn from(error: ImportError) -> Self {
        Self::Error(Box::new(error))
    }
}

/// The name that a node is reported by.
fn name_of(node: &NodeProto) -> String {
    let first = || node.output.iter().find(|n| !n.is_empty()).cloned();
    if node.name.is_empty() {
        first().unwrap_or_else(|| node.op_type.clone())
    } else {
        node.name.clone()
    }
}

/// A domain's usual spelling.
fn domain_of(node: &NodeProto) -> &str {
    if node.domain == "ai.onnx" { "" } else { &node.domain }
}

/// Who imports a node.
enum Importing<'a> {
    Control,
    Structure,
    Function(&'a FunctionProto),
    Rule(Rule),
}

impl<'a> Importer<'a> {
    pub(super) fn new(
        path: &'a Path,
        builder: Builder,
        files: &'a mut Files,
        functions: &'a [FunctionProto],
    ) -> Self {
        let functions = functions.iter().map(|f| ((f.domain.as_str(), f.name.as_str()), f));
        Self {
            path,
            builder,
            files,
            functions: functions.collect(),
            scopes: Vec::new(),
            unsupported: Vec::new(),
            nodes: 0,
        }
    }

    /// Gives the tensors of an item the model's name for it, unless they have one.
    pub(super) fn name(&mut self, item: &Item, name: &str) {
        for (suffix, t) in item.tensors() {
            self.builder.name(t, &format!("{name}{suffix}"));
        }
    }

    /// What a name stands for, in the innermost graph that has it.
    fn lookup(&self, name: &str) -> Option<&Option<Item>> {
        self.scopes.iter().rev().find_map(|names| names.get(name))
    }

    /// Imports a graph with these names of its inputs; gives its outputs.
    pub(super) fn graph(
        &mut self,
        graph: &GraphProto,
        opsets: &Opsets,
        names: Names,
    ) -> Result<Vec<Option<Item>>, Stop> {
        let outputs: Vec<String> = graph.output.iter().map(|o| o.name.clone()).collect();
        let mut stored: HashMap<&str, Stored<'_>> = HashMap::new();
        for t in &graph.initializer {
            if stored.insert(&t.name, Stored::Dense(t)).is_some() {
                return Err(self.malformed(format!("two initializers are named `{}`", t.name)));
            }
        }
        for t in &graph.sparse_initializer {
            if let Some(values) = &t.values {
                stored.insert(&values.name, Stored::Sparse(t));
            }
        }
        self.run(&graph.node, &outputs, opsets, names, &stored)
    }

    pub(super) fn malformed(&self, reason: String) -> Stop {
        ImportError::Malformed { path: self.path.to_owned(), reason }.into()
    }

    /// Imports nodes in a scope of their own.
    pub(super) fn run(
        &mut self,
        nodes: &[NodeProto],
        outputs: &[String],
        opsets: &Opsets,
        names: Names,
        stored: &HashMap<&str, Stored<'_>>,
    ) -> Result<Vec<Option<Item>>, Stop> {
        if self.scopes.len() >= MAX_DEPTH {
            return Err(self.malformed(format!("graphs are nested more than {MAX_DEPTH} deep")));
        }
        let given = |name: &str| {
            names.contains_key(name) || stored.contains_key(name) || self.lookup(name).is_some()
        };
        let order = match order(nodes, outputs, &given) {
            Ok(order) => order,
            Err(error) => return Err(self.order_error(nodes, error).into()),
        };
        self.scopes.push(names);
        let found = self.run_ordered(nodes, outputs, opsets, stored, &order);
        self.scopes.pop();
        found
    }

    fn order_error(&self, nodes: &[NodeProto], error: OrderError) -> ImportError {
        let path = self.path.to_owned();
        match error {
            OrderError::Cycle(cycle) => ImportError::Cycle {
                path,
                nodes: cycle.into_iter().take(16).map(|i| name_of(&nodes[i])).collect(),
            },
            OrderError::Undefined(missing) => ImportError::Undefined {
                path,
                missing: missing
                    .into_iter()
                    .map(|(reader, name)| match reader {
                        Some(i) => (format!("node `{}`", name_of(&nodes[i])), name),
                        None => ("the output list".to_owned(), name),
                    })
                    .collect(),
            },
            OrderError::Twice(name) => ImportError::Malformed {
                path,
                reason: format!("two nodes make the value `{name}`"),
            },
        }
    }

    fn run_ordered(
        &mut self,
        nodes: &[NodeProto],
        outputs: &[String],
        opsets: &Opsets,
        stored: &HashMap<&str, Stored<'_>>,
        order: &super::order::Order,
    ) -> Result<Vec<Option<Item>>, Stop> {
        for name in &order.read {
            if let Some(data) = stored.get(name.as_str())
                && !self.scopes.last().is_some_and(|names| names.contains_key(name))
            {
                let (path, tensor) = (self.path.to_owned(), name.clone());
                let refused = |reason| ImportError::Tensor { path, tensor, reason };
                let made = match data {
                    Stored::Dense(t) => self.dense(t),
                    Stored::Sparse(t) => {
                        tensor::dense(t, self.files).map(|made| self.builder.constant(made))
                    }
                };
                let t = made.map_err(refused)?;
                let t = self.builder.widened(t)?;
                self.define(name, Some(Item::Tensor(t)));
            }
        }
        for &i in &order.nodes {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return Err(self.malformed(format!("more than {MAX_NODES} nodes")));
            }
            let node = &nodes[i];
            let wanted: Vec<bool> =
                node.output.iter().map(|o| !o.is_empty() && order.read.contains(o)).collect();
            let made = match self.node(node, opsets, &wanted) {
                Ok(made) => made,
                Err(Stop::Error(error)) => return Err(Stop::Error(error)),
                Err(Stop::Op(OpError::Wrong(reason))) => {
                    return Err(ImportError::Node {
                        path: self.path.to_owned(),
                        node: name_of(node),
                        operator: node.op_type.clone(),
                        reason,
                    }
                    .into());
                }
                Err(Stop::Op(OpError::Unsupported(reason))) => {
                    self.report(node, opsets, reason);
                    None
                }
            };
            for (k, name) in node.output.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
                let value = match made.as_ref().map(|made| made.get(k)) {
                    Some(Some(value)) => value.clone(),
                    Some(None) if wanted[k] => {
                        self.report(node, opsets, format!("output {k} is not supported"));
                        None
                    }
                    _ => None,
                };
                if let Some(item) = &value {
                    self.name(item, name);
                }
                self.define(name, value);
            }
        }
        Ok(outputs.iter().map(|name| self.lookup(name).cloned().flatten()).collect())
    }

    /// A stored tensor.
    fn dense(&mut self, stored: &TensorProto) -> Result<Tensor, String> {
        if let Some(texts) = tensor::texts(stored)? {
            return self.builder.text_constant(texts).map_err(|error| match error {
                OpError::Wrong(reason) | OpError::Unsupported(reason) => reason,
            });
        }
        Ok(self.builder.constant(tensor::constant(stored, self.files)?))
    }

    fn define(&mut self, name: &str, value: Option<Item>) {
        if let Some(names) = self.scopes.last_mut() {
            names.insert(name.to_owned(), value);
        }
    }

    fn report(&mut self, node: &NodeProto, opsets: &Opsets, reason: String) {
        let unsupported = Unsupported {
            node: name_of(node),
            operator: node.op_type.clone(),
            domain: domain_of(node).to_owned(),
            opset: opsets.get(domain_of(node)).copied().unwrap_or(1),
            reason,
        };
        if !self.unsupported.contains(&unsupported) {
            self.unsupported.push(unsupported);
        }
    }

    /// Who imports a node; the model's own functions go before ONNX's rules.
    fn importing(&self, node: &NodeProto, opset: i64) -> OpResult<Importing<'a>> {
        let domain = domain_of(node);
        if domain.is_empty() && control::is_control(&node.op_type) {
            return Ok(Importing::Control);
        }
        if domain.is_empty() && sequences::is_structural(&node.op_type) {
            return Ok(Importing::Structure);
        }
        if let Some(function) = self.functions.get(&(node.domain.as_str(), node.op_type.as_str())) {
            return Ok(Importing::Function(function));
        }
        match (rules::find(domain, &node.op_type, opset), domain) {
            (Some(rule), _) => Ok(Importing::Rule(rule)),
            (None, "") => {
                unsupported("this operator is not supported yet; export the model without it")
            }
            (None, "com.microsoft.nchwc") => unsupported(
                "onnxruntime made this operator for one kind of CPU; import the model that was optimised, or save it \
                 with at most ORT_ENABLE_EXTENDED",
            ),
            (None, _) => unsupported(
                "operators of this domain are not supported; export the model without them",
            ),
        }
    }

    /// Imports a node; `None` when something it reads is not supported.
    fn node(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        wanted: &[bool],
    ) -> Result<Option<Vec<Option<Item>>>, Stop> {
        let opset = opsets.get(domain_of(node)).copied().unwrap_or(1);
        let importing = self.importing(node, opset)?;
        let mut items = Vec::with_capacity(node.input.len());
        for name in &node.input {
            items.push(if name.is_empty() {
                None
            } else {
                match self.lookup(name) {
                    Some(Some(item)) => Some(item.clone()),
                    // Made by a node that is reported itself.
                    _ => return Ok(None),
                }
            });
        }
        while items.last().is_some_and(Option::is_none) {
            items.pop();
        }
        self.builder.node = name_of(node);
        let rule = match importing {
            Importing::Control => return self.control(node, opsets, &items).map(Some),
            Importing::Function(function) => return self.call(function, node, &items).map(Some),
            Importing::Structure => None,
            Importing::Rule(rule) => Some(rule),
        };
        let inputs: Vec<Option<Tensor>> = match rule {
            Some(_) => tensors_of(&items)?,
            None => items.iter().map(|item| tensor_in(item.as_ref())).collect(),
        };
        let texts = self.texts_read(node, &inputs)?;
        let Self { builder, files, .. } = self;
        let mut call = Call { builder, node, opset, inputs: &inputs, wanted, files };
        let made = match rule {
            Some(rule) => {
                let made = rule(&mut call)?;
                let widened = made.into_iter().map(|t| call.builder.widened(t).map(Item::Tensor));
                widened.collect::<OpResult<_>>()?
            }
            None => vec![sequences::apply(&mut call, &items)?],
        };
        if let (Some(texts), [Item::Tensor(moved)]) = (texts, made.as_slice()) {
            self.builder.stand_for(*moved, texts);
        }
        Ok(Some(made.into_iter().map(Some).collect()))
    }

    /// The texts that a node moves.
    fn texts_read(
        &self,
        node: &NodeProto,
        inputs: &[Option<Tensor>],
    ) -> OpResult<Option<Rc<[String]>>> {
        let mut read = inputs.iter().enumerate();
        let read = read.find_map(|(n, t)| self.builder.texts_of((*t)?).map(|texts| (n, texts)));
        match read {
            None => Ok(None),
            Some((0, texts)) if moves(&node.op_type) => Ok(Some(texts)),
            Some(_) => unsupported("texts can be moved, but not computed with"),
        }
    }
}

/// Inputs that all have to be tensors.
fn tensors_of(items: &[Option<Item>]) -> OpResult<Vec<Option<Tensor>>> {
    let one = |(n, item): (usize, &Option<Item>)| match item {
        Some(item) => item.tensor(&format!("input {n}")).map(Some),
        None => Ok(None),
    };
    items.iter().enumerate().map(one).collect()
}

fn tensor_in(item: Option<&Item>) -> Option<Tensor> {
    match item {
        Some(Item::Tensor(t)) => Some(*t),
        _ => None,
    }
}

/// A tensor that a graph stores.
pub(super) enum Stored<'a> {
    Dense(&'a TensorProto),
    Sparse(&'a super::proto::SparseTensorProto),
}
