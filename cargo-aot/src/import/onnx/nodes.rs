//! Runs the rules over a graph's nodes.

use super::super::error::{ImportError, Unsupported};
use super::builder::{Builder, OpError, OpResult, Tensor};
use super::call::{Call, Rule};
use super::file::Files;
use super::inputs::Bound;
use super::order::{OrderError, order};
use super::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto};
use super::{rules, tensor};
use aot_ir::Graph;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Versions of operator sets by domain.
pub(super) type Opsets = BTreeMap<String, i64>;

/// Deepest nesting of graphs and functions.
const MAX_DEPTH: usize = 24;
/// Most nodes that are imported, those of unrolled bodies counted each time.
const MAX_NODES: usize = 1 << 18;

/// Names of a graph and what they stand for; `None` where an unsupported node would make it.
pub(super) type Names = HashMap<String, Option<Tensor>>;

/// The state of an import.
pub(super) struct Importer<'a> {
    path: &'a Path,
    pub(super) builder: Builder,
    files: &'a mut Files,
    functions: HashMap<(&'a str, &'a str), &'a FunctionProto>,
    /// Innermost graph last.
    pub(super) scopes: Vec<Names>,
    unsupported: Vec<Unsupported>,
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

/// Operators whose nodes hold graphs; [`super::control`] imports them.
fn is_control(node: &NodeProto) -> bool {
    domain_of(node).is_empty() && matches!(node.op_type.as_str(), "If" | "Loop" | "Scan")
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

    /// Imports the model's graph; gives its outputs.
    pub(super) fn main_graph(
        &mut self,
        graph: &GraphProto,
        opsets: Opsets,
        inputs: Vec<(String, Bound)>,
    ) -> Result<Vec<(String, Tensor)>, ImportError> {
        let mut names = Names::new();
        for (name, bound) in inputs {
            let t = match bound {
                Bound::Input(dtype, shape) => self.builder.input(&name, dtype, shape),
                Bound::Constant(constant) => self.builder.constant(constant),
            };
            names.insert(name, Some(t));
        }
        let outputs: Vec<String> = graph.output.iter().map(|o| o.name.clone()).collect();
        let found = match self.graph(graph, &opsets, names) {
            Ok(found) => found,
            Err(Stop::Error(error)) => return Err(*error),
            Err(Stop::Op(OpError::Wrong(reason) | OpError::Unsupported(reason))) => {
                return Err(ImportError::Malformed { path: self.path.to_owned(), reason });
            }
        };
        if !self.unsupported.is_empty() {
            let nodes = std::mem::take(&mut self.unsupported);
            return Err(ImportError::Unsupported { path: self.path.to_owned(), nodes });
        }
        outputs
            .into_iter()
            .zip(found)
            .map(|(name, t)| match t {
                Some(t) => {
                    self.builder.name(t, &name);
                    Ok((name, t))
                }
                None => Err(ImportError::Malformed {
                    path: self.path.to_owned(),
                    reason: format!("output `{name}` has no value"),
                }),
            })
            .collect()
    }

    /// The finished graph.
    pub(super) fn finish(self, outputs: Vec<(String, Tensor)>) -> Result<Graph, ImportError> {
        let path = self.path.to_owned();
        self.builder.finish(outputs).map_err(|error| match error {
            OpError::Wrong(reason) | OpError::Unsupported(reason) => {
                ImportError::Malformed { path, reason }
            }
        })
    }

    /// What a name stands for, in the innermost graph that has it.
    fn lookup(&self, name: &str) -> Option<Option<Tensor>> {
        self.scopes.iter().rev().find_map(|names| names.get(name).copied())
    }

    /// Imports a graph with these names of its inputs; gives its outputs.
    pub(super) fn graph(
        &mut self,
        graph: &GraphProto,
        opsets: &Opsets,
        names: Names,
    ) -> Result<Vec<Option<Tensor>>, Stop> {
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

    fn malformed(&self, reason: String) -> Stop {
        ImportError::Malformed { path: self.path.to_owned(), reason }.into()
    }

    /// Imports nodes in a scope of their own.
    fn run(
        &mut self,
        nodes: &[NodeProto],
        outputs: &[String],
        opsets: &Opsets,
        names: Names,
        stored: &HashMap<&str, Stored<'_>>,
    ) -> Result<Vec<Option<Tensor>>, Stop> {
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
    ) -> Result<Vec<Option<Tensor>>, Stop> {
        for name in &order.read {
            if let Some(data) = stored.get(name.as_str())
                && !self.scopes.last().is_some_and(|names| names.contains_key(name))
            {
                let constant = match data {
                    Stored::Dense(t) => tensor::constant(t, self.files),
                    Stored::Sparse(t) => tensor::dense(t, self.files),
                };
                let constant = constant.map_err(|reason| ImportError::Tensor {
                    path: self.path.to_owned(),
                    tensor: name.clone(),
                    reason,
                })?;
                let t = self.builder.constant(constant);
                self.define(name, Some(t));
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
                    Some(Some(value)) => *value,
                    Some(None) if wanted[k] => {
                        self.report(node, opsets, format!("output {k} is not supported"));
                        None
                    }
                    _ => None,
                };
                if let Some(t) = value {
                    self.builder.name(t, name);
                }
                self.define(name, value);
            }
        }
        Ok(outputs.iter().map(|name| self.lookup(name).flatten()).collect())
    }

    fn define(&mut self, name: &str, value: Option<Tensor>) {
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

    /// Imports a node; `None` when something it reads is not supported.
    fn node(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        wanted: &[bool],
    ) -> Result<Option<Vec<Option<Tensor>>>, Stop> {
        let domain = domain_of(node);
        let opset = opsets.get(domain).copied().unwrap_or(1);
        let rule = rules::find(domain, &node.op_type, opset);
        let function = self.functions.get(&(node.domain.as_str(), node.op_type.as_str())).copied();
        if rule.is_none() && function.is_none() && !is_control(node) {
            let text = match domain {
                "" => "this operator is not supported yet; export the model without it",
                _ => "operators of this domain are not supported; export the model without them",
            };
            return Err(OpError::Unsupported(text.to_owned()).into());
        }
        let mut inputs = Vec::with_capacity(node.input.len());
        for name in &node.input {
            inputs.push(if name.is_empty() {
                None
            } else {
                match self.lookup(name) {
                    Some(Some(t)) => Some(t),
                    // Made by a node that is reported itself.
                    _ => return Ok(None),
                }
            });
        }
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        self.builder.node = name_of(node);
        if is_control(node) {
            return self.control(node, opsets, &inputs).map(Some);
        }
        if let Some(function) = function {
            return self.call(function, node, &inputs).map(Some);
        }
        let made = match rule {
            Some(rule) => self.apply(rule, node, opset, &inputs, wanted)?,
            None => return Ok(None),
        };
        Ok(Some(made.into_iter().map(Some).collect()))
    }

    fn apply(
        &mut self,
        rule: Rule,
        node: &NodeProto,
        opset: i64,
        inputs: &[Option<Tensor>],
        wanted: &[bool],
    ) -> OpResult<Vec<Tensor>> {
        let Self { builder, files, .. } = self;
        rule(&mut Call { builder, node, opset, inputs, wanted, files })
    }

    /// Inlines a function of the model.
    fn call(
        &mut self,
        function: &FunctionProto,
        node: &NodeProto,
        inputs: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Stop> {
        if inputs.len() > function.input.len() {
            let reason = format!("{} inputs for {}", inputs.len(), function.input.len());
            return Err(OpError::Wrong(reason).into());
        }
        let mut body = function.node.clone();
        body.iter_mut()
            .for_each(|n| bind_attributes(n, &node.attribute, &function.attribute_proto));
        let mut opsets = Opsets::new();
        for import in &function.opset_import {
            let domain = if import.domain == "ai.onnx" { "" } else { import.domain.as_str() };
            opsets.insert(domain.to_owned(), import.version);
        }
        let mut names = Names::new();
        for (i, name) in function.input.iter().enumerate() {
            if let Some(Some(t)) = inputs.get(i) {
                names.insert(name.clone(), Some(*t));
            } else {
                // Left out: as an empty name inside.
                body.iter_mut().for_each(|n| clear_name(n, name));
            }
        }
        // A function sees none of its caller's names.
        let outer = std::mem::take(&mut self.scopes);
        let depth = outer.len();
        if depth >= MAX_DEPTH {
            self.scopes = outer;
            return Err(self.malformed(format!("functions are nested more than {MAX_DEPTH} deep")));
        }
        self.scopes = (0..depth).map(|_| Names::new()).collect();
        let found = self.run(&body, &function.output, &opsets, names, &HashMap::new());
        self.scopes = outer;
        found
    }
}

enum Stored<'a> {
    Dense(&'a TensorProto),
    Sparse(&'a super::proto::SparseTensorProto),
}

/// Replaces references to a function's attributes by their values.
fn bind_attributes(node: &mut NodeProto, given: &[AttributeProto], defaults: &[AttributeProto]) {
    node.attribute.retain_mut(|a| {
        if a.ref_attr_name.is_empty() {
            if let Some(graph) = &mut a.g {
                graph.node.iter_mut().for_each(|n| bind_attributes(n, given, defaults));
            }
            return true;
        }
        let value = given.iter().chain(defaults).find(|g| g.name == a.ref_attr_name);
        match value {
            Some(value) => {
                let name = std::mem::take(&mut a.name);
                *a = AttributeProto { name, ..value.clone() };
                true
            }
            None => false,
        }
    });
}

fn clear_name(node: &mut NodeProto, name: &str) {
    node.input.iter_mut().filter(|n| *n == name).for_each(String::clear);
    for graph in node.attribute.iter_mut().filter_map(|a| a.g.as_mut()) {
        graph.node.iter_mut().for_each(|n| clear_name(n, name));
    }
}
