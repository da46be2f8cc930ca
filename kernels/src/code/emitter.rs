//! The text of a kernel under construction.

use super::alignment::Divisors;
use super::arguments::{Arguments, Role};
use super::dependencies::{Dependencies, Uses};
use super::prelude::Part;
use super::value::{Int, Value};
use crate::group::{ExprId, Group, Operand, OperandId};
use crate::kernel::{Arg, Kernel, KernelError, Size};
use aot_ir::dim::{Cond, VarId};
use aot_ir::{DType, Dim, Scope, Symbols};
use std::collections::{BTreeSet, HashMap};

/// What a failed emission gives.
pub type Emit<T> = Result<T, KernelError>;

/// Collects statements, arguments and parts of the prelude for one kernel of a group.
///
/// Statements go to the current *layer*, which is a C++ block or a part of one. Variables and
/// results of the anchor are bound to C++ expressions in a layer; everything computed from them is
/// computed once and remembered until its layer ends or one of its inputs is bound anew inside.
///
/// One variable may run over *lanes*: `width` consecutive values from a base that is a multiple of
/// `width`. Expressions then have a value for every lane, and contiguous loads and stores are as
/// wide as alignment can be proved.
///
/// The text is a function of the group's structure alone: sizes, strides and offsets become
/// arguments, read as members of `p`, a `struct Args`.
#[derive(Debug)]
pub struct Emitter<'a> {
    pub(super) group: &'a Group,
    pub(super) scope: Scope<'a>,
    pub(super) uses: Dependencies,
    pub(super) divisors: Divisors,
    pub(super) lanes: Option<Lanes>,
    arguments: Arguments,
    parts: BTreeSet<Part>,
    written: Vec<bool>,
    /// The number of blocks that have something to do.
    surplus: Option<Int>,
    text: String,
    depth: usize,
    layers: Vec<Layer>,
    next: usize,
}

/// The variable that runs over lanes.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) var: VarId,
    pub(super) width: usize,
}

#[derive(Debug, Default)]
struct Layer {
    braces: bool,
    vars: HashMap<VarId, Int>,
    accs: HashMap<u32, Value>,
    ints: HashMap<(Dim, usize), Int>,
    conds: HashMap<(Cond, usize), String>,
    values: HashMap<ExprId, Value>,
    outer: Option<(Option<Lanes>, Divisors)>,
}

impl<'a> Emitter<'a> {
    /// Nothing yet.
    pub fn new(group: &'a Group, symbols: &'a Symbols) -> Self {
        let mut written = vec![false; group.operands.len()];
        for store in &group.stores {
            written[store.operand.index()] = true;
        }
        Self {
            group,
            scope: group.scope(symbols),
            uses: Dependencies::new(group),
            divisors: Divisors::default(),
            lanes: None,
            arguments: Arguments::default(),
            parts: BTreeSet::new(),
            written,
            surplus: None,
            text: String::new(),
            depth: 1,
            layers: vec![Layer::default()],
            next: 0,
        }
    }

    /// The group.
    pub fn group(&self) -> &'a Group {
        self.group
    }

    /// What can be proved about its index maps.
    pub fn scope(&self) -> Scope<'a> {
        self.scope
    }

    /// What its expressions depend on.
    pub fn dependencies(&self) -> &Dependencies {
        &self.uses
    }

    /// What divides variables and symbols here.
    pub fn divisors(&self) -> &Divisors {
        &self.divisors
    }

    /// States further divisibility, valid until the current layer ends.
    pub fn divisors_mut(&mut self) -> &mut Divisors {
        &mut self.divisors
    }

    /// An error that says what can't be done.
    pub fn unsupported(&self, reason: impl Into<String>) -> KernelError {
        KernelError::Unsupported { group: self.group.label.clone(), reason: reason.into() }
    }

    // Text.

    /// Appends a line.
    pub fn line(&mut self, text: impl AsRef<str>) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// Begins a block, `header {`, and a layer.
    pub fn open(&mut self, header: impl AsRef<str>) {
        let header = header.as_ref();
        self.line(if header.is_empty() { "{".to_owned() } else { format!("{header} {{") });
        self.depth += 1;
        self.enter();
        self.top().braces = true;
    }

    /// Begins a layer without a block of its own.
    pub fn enter(&mut self) {
        let outer = Some((self.lanes.clone(), self.divisors.clone()));
        self.layers.push(Layer { outer, ..Layer::default() });
    }

    /// Ends the current layer, and its block if it has one.
    pub fn close(&mut self) {
        if self.layers.len() < 2 {
            return;
        }
        if let Some(layer) = self.layers.pop() {
            if let Some((lanes, divisors)) = layer.outer {
                (self.lanes, self.divisors) = (lanes, divisors);
            }
            if layer.braces {
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    /// A name that is not in use yet.
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next - 1)
    }

    /// Declares a constant and gives its name.
    pub fn constant(&mut self, type_name: &str, prefix: &str, value: &str) -> String {
        let name = self.fresh(prefix);
        self.line(format!("const {type_name} {name} = {value};"));
        name
    }

    /// Declares an integer constant and gives its name.
    pub fn constant_int(&mut self, prefix: &str, value: &Int) -> Int {
        let text = self.constant(value.type_name(), prefix, &value.text);
        Int { text, wide: value.wide }
    }

    /// The statements so far, which leave: for a function of its own. Layers stay.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Puts statements that were taken before those since then.
    pub fn put(&mut self, statements: String) {
        self.text.insert_str(0, &statements);
    }

    // Bindings.

    /// Binds a variable in the current layer.
    pub fn bind(&mut self, var: VarId, value: Int) {
        self.divisors.clear_var(var);
        if self.lanes.as_ref().is_some_and(|l| l.var == var) {
            self.lanes = None;
        }
        self.top().vars.insert(var, value);
    }

    /// Binds a variable to a value that is a multiple of `divisor`.
    pub fn bind_multiple(&mut self, var: VarId, value: Int, divisor: i64) {
        self.bind(var, value);
        self.divisors.set_var(var, divisor);
    }

    /// Binds a variable to `width` lanes from `base`, which is a multiple of `width`.
    pub fn bind_lanes(&mut self, var: VarId, base: Int, width: usize) {
        self.bind_multiple(var, base, width as i64);
        self.lanes = Some(Lanes { var, width });
    }

    /// Binds a result of the anchor in the current layer.
    pub fn bind_acc(&mut self, n: u32, value: Value) {
        self.top().accs.insert(n, value);
    }

    /// How many lanes there are.
    pub fn width(&self) -> usize {
        self.lanes.as_ref().map_or(1, |l| l.width)
    }

    pub(super) fn var(&self, var: VarId) -> Option<&Int> {
        self.layers.iter().rev().find_map(|l| l.vars.get(&var))
    }

    pub(super) fn acc(&self, n: u32) -> Option<&Value> {
        self.layers.iter().rev().find_map(|l| l.accs.get(&n))
    }

    // Memory of what is computed.

    pub(super) fn known_int(&self, dim: &Dim, lane: usize) -> Option<Int> {
        let uses = self.uses.of_dim(dim);
        self.remembered(&uses, |l| l.ints.get(&(dim.clone(), lane)).cloned())
    }

    pub(super) fn remember_int(&mut self, dim: &Dim, lane: usize, value: Int) {
        self.top().ints.insert((dim.clone(), lane), value);
    }

    pub(super) fn known_cond(&self, cond: &Cond, lane: usize) -> Option<String> {
        let uses = self.uses.of_cond(cond);
        self.remembered(&uses, |l| l.conds.get(&(cond.clone(), lane)).cloned())
    }

    pub(super) fn remember_cond(&mut self, cond: &Cond, lane: usize, value: String) {
        self.top().conds.insert((cond.clone(), lane), value);
    }

    /// The value of an expression, if it was computed already and nothing of it was bound anew.
    pub fn known_value(&self, id: ExprId) -> Option<Value> {
        self.remembered(self.uses.of(id), |l| l.values.get(&id).cloned())
    }

    /// Says that an expression's value is at hand, for as long as the current layer lasts.
    pub fn remember_value(&mut self, id: ExprId, value: Value) {
        self.top().values.insert(id, value);
    }

    fn remembered<T>(&self, uses: &Uses, get: impl Fn(&Layer) -> Option<T>) -> Option<T> {
        for layer in self.layers.iter().rev() {
            if let Some(found) = get(layer) {
                return Some(found);
            }
            let bound_here = uses.vars.iter().any(|v| layer.vars.contains_key(v))
                || uses.accs.iter().any(|n| layer.accs.contains_key(n));
            if bound_here {
                return None;
            }
        }
        None
    }

    fn top(&mut self) -> &mut Layer {
        if self.layers.is_empty() {
            self.layers.push(Layer::default());
        }
        let last = self.layers.len() - 1;
        &mut self.layers[last]
    }

    // Arguments and prelude.

    /// A size as a C++ expression: a literal for 0 and ±1, else an argument.
    pub fn uniform(&mut self, dim: &Dim, role: Role) -> Int {
        self.arguments.uniform(&self.scope, dim, role)
    }

    /// The extent of a variable.
    pub fn extent(&mut self, var: VarId) -> Int {
        let dim = self.group.extent(var).clone();
        self.uniform(&dim, Role::Extent(var.0))
    }

    /// The address of an operand's first element, as a pointer to its storage type.
    pub fn pointer(&mut self, operand: OperandId) -> String {
        self.require(Part::Types);
        let written = self.written[operand.index()];
        self.arguments.operand(operand, &self.group.operands[operand.index()], written)
    }

    /// Has an operand brought near while an early launch waits for the one before, if it is constant.
    pub fn prefetch(&mut self, operand: OperandId) {
        let Operand { dtype, elements, constant, .. } = &self.group.operands[operand.index()];
        if let (true, Some(elements)) = (*constant, elements.as_const())
            && let Some(bytes) = dtype.bytes_for(elements.max(0) as u64)
        {
            let bytes = self.uniform(&Dim::from(bytes as i64), Role::Operand(operand));
            let address = self.pointer(operand);
            self.arguments.prefetch(address, bytes);
        }
    }

    /// Whether the kernel writes an operand.
    pub fn is_written(&self, operand: OperandId) -> bool {
        self.written[operand.index()]
    }

    /// How an operand's elements are stored.
    pub fn storage(&self, operand: OperandId) -> DType {
        self.group.operands[operand.index()].dtype
    }

    /// The address of a zeroed scratch area, which the kernel must leave zeroed.
    pub fn scratch(&mut self, bytes: &Dim, type_name: &str) -> String {
        self.arguments.scratch(bytes, type_name)
    }

    /// Makes a part of the prelude available.
    pub fn require(&mut self, part: Part) {
        if self.parts.insert(part) {
            part.needs().iter().for_each(|p| self.require(*p));
        }
    }

    /// The text of all required parts.
    pub fn prelude(&self) -> String {
        self.parts.iter().map(|p| p.text()).collect()
    }

    /// Has more blocks than these leave at once. Constant numbers are launched as they are, unless the same text is
    /// for launches of which another's varies.
    pub fn leave_surplus(&mut self, blocks: &Dim, varies: bool) {
        if blocks.as_const().is_none() || varies {
            self.surplus = Some(self.arguments.size(&self.scope, blocks, Role::Blocks));
        }
    }

    /// The declarations of its arguments, as they are now.
    pub fn declaration(&self) -> String {
        self.arguments.declaration()
    }

    /// A kernel with this body, which reads the members of `p`.
    pub fn function(&self, entry: &str, threads: u32, body: &str) -> String {
        self.arguments.function(entry, threads, self.surplus.as_ref(), body)
    }

    /// What to pass by value and what to have in memory, as it is now.
    pub fn arguments(&self) -> (Vec<Arg>, Vec<Size>) {
        (self.arguments.list(), self.arguments.sizes())
    }

    /// A kernel whose body is everything that was emitted, on so many blocks.
    pub fn finish(mut self, entry: &str, threads: u32, blocks: Dim, schedule: String) -> Kernel {
        while self.layers.len() > 1 {
            self.close();
        }
        self.require(Part::Base);
        self.leave_surplus(&blocks, false);
        let function = self.function(entry, threads, &self.text);
        let (args, sizes) = self.arguments();
        Kernel {
            source: self.prelude() + &self.declaration() + &function,
            entry: entry.to_owned(),
            options: Vec::new(),
            schedule,
            when: Cond::always(),
            blocks,
            early: true,
            threads,
            shared: 0,
            args,
            sizes,
        }
    }
}
