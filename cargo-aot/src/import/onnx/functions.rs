//! Functions of the model, inlined.

use super::builder::OpError;
use super::item::{Item, Names};
use super::nodes::{Importer, MAX_DEPTH, Opsets, Stop};
use super::proto::{AttributeProto, FunctionProto, NodeProto};
use std::collections::HashMap;

impl Importer<'_> {
    /// Inlines a function of the model.
    pub(super) fn call(
        &mut self,
        function: &FunctionProto,
        node: &NodeProto,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
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
            if let Some(Some(item)) = inputs.get(i) {
                names.insert(name.clone(), Some(item.clone()));
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
