//! Loads and stores.

use super::arguments::Role;
use super::ctype::{element_bytes, storage_type};
use super::emitter::{Emit, Emitter};
use super::index::Step;
use super::operators::literal;
use super::prelude::Part;
use super::value::Value;
use crate::group::{ExprId, OperandId, Store, compute_type};
use aot_ir::dim::{Atom, Cond};
use aot_ir::op::ScatterReduction;
use aot_ir::{DType, Dim, Scalar};

impl<'a> Emitter<'a> {
    /// How many elements one access can have from an offset on that grows by one from lane to lane:
    /// a power of two, at most 16 bytes, aligned as far as can be proved.
    pub fn access_width(&self, dtype: DType, offset: &Dim) -> usize {
        let Some(bytes) = element_bytes(dtype) else { return 1 };
        let most = (self.width() as i64).min(16 / bytes).max(1);
        let most = 1i64 << most.ilog2();
        self.divisors.power_of_two(offset, most) as usize
    }

    pub(super) fn load(
        &mut self,
        operand: OperandId,
        offset: &Dim,
        guard: &Cond,
        other: Scalar,
        dtype: DType,
    ) -> Emit<Value> {
        let role = Role::Operand(operand);
        let storage = self.storage(operand);
        let steady = self.lanes_agree(guard);
        let index = self.index(offset, role)?;
        let pointer = self.pointer(operand);
        self.require(Part::Pack);
        let guarded = self.scope.decide_cond(guard) != Some(true);
        let fallback = literal(dtype, other);
        if storage.bits() < 8 {
            return self.load_packed(&pointer, &index, guard, &fallback, storage);
        }
        if steady && matches!(index.step, Step::One) {
            let width = self.access_width(storage, offset);
            if width > 1 {
                let condition = if guarded { Some(self.cond_at(guard, 0, role)?) } else { None };
                return Ok(self.load_packs(
                    &pointer,
                    &index.base.text,
                    width,
                    condition,
                    &fallback,
                    storage,
                ));
            }
        }
        let count = if steady && matches!(index.step, Step::Same) { 1 } else { self.width() };
        let mut lanes = Vec::with_capacity(count);
        for lane in 0..count {
            let at = self.index_at(&index, lane, role);
            let mut text = format!("widen(load_one({pointer} + {}))", at.text);
            if guarded {
                let condition = self.cond_at(guard, lane, role)?;
                text = format!("{condition} ? {text} : {fallback}");
            }
            lanes.push(self.scalar(dtype, &text));
        }
        Ok(Value { dtype, lanes })
    }

    fn load_packs(
        &mut self,
        pointer: &str,
        base: &str,
        width: usize,
        condition: Option<String>,
        fallback: &str,
        storage: DType,
    ) -> Value {
        let (dtype, element) = (compute_type(storage), storage_type(storage));
        let zero = literal(dtype, Scalar::Int(0));
        let mut lanes = Vec::with_capacity(self.width());
        for first in (0..self.width()).step_by(width) {
            let at = if first == 0 { base.to_owned() } else { format!("{base} + {first}") };
            let mut text = format!("load_pack<{width}>({pointer} + {at})");
            if let Some(condition) = &condition {
                text = format!("{condition} ? {text} : zero_pack<{width}, {element}>()");
            }
            let pack = self.constant(&format!("Pack<{element}, {width}>"), "r", &text);
            for lane in 0..width {
                let mut text = format!("widen({pack}.at[{lane}])");
                if let Some(condition) = condition.as_ref().filter(|_| *fallback != zero) {
                    text = format!("{condition} ? {text} : {fallback}");
                }
                lanes.push(self.scalar(dtype, &text));
            }
        }
        Value { dtype, lanes }
    }

    /// Does several stores at all lanes: all values, then all stores, so that nothing is read after the
    /// first write.
    pub fn store_all(&mut self, stores: &[&Store]) -> Emit<()> {
        let values = stores.iter().map(|s| self.stored_value(s)).collect::<Emit<Vec<_>>>()?;
        stores.iter().zip(&values).try_for_each(|(s, v)| self.store_value(s, v))
    }

    /// Does a store at all lanes.
    pub fn store(&mut self, store: &Store) -> Emit<()> {
        let value = self.stored_value(store)?;
        self.store_value(store, &value)
    }

    /// The value that a store writes, as its buffer's compute type. Where it depends on data, the
    /// place is computed too, so that nothing need be read for the store itself.
    pub fn stored_value(&mut self, store: &Store) -> Emit<Value> {
        let mut coordinates = Vec::new();
        let mut collect = |atom: &Atom| {
            if let Atom::Value(n) = atom {
                coordinates.push(ExprId(*n));
            }
        };
        store.offset.visit(&mut collect);
        store.guard.visit(&mut collect);
        for id in coordinates {
            self.value(id)?;
        }
        let storage = self.storage(store.operand);
        let value = self.value(store.value)?;
        if value.dtype == compute_type(storage) {
            return Ok(value);
        }
        self.cast_value(&value, storage)
    }

    /// Does a store of a given value, of the buffer's compute type, at all lanes.
    pub fn store_value(&mut self, store: &Store, value: &Value) -> Emit<()> {
        let role = Role::Operand(store.operand);
        let storage = self.storage(store.operand);
        if storage.bits() < 8 {
            return self.store_packed(store, value);
        }
        let element = storage_type(storage);
        let steady = self.lanes_agree(&store.guard);
        let index = self.index(&store.offset, role)?;
        let pointer = self.pointer(store.operand);
        self.require(Part::Pack);
        let guarded = self.scope.decide_cond(&store.guard) != Some(true);
        let plain = store.combine == ScatterReduction::None;
        if plain && steady && matches!(index.step, Step::One) {
            let width = self.access_width(storage, &store.offset);
            if guarded {
                let condition = self.cond_at(&store.guard, 0, role)?;
                self.open(format!("if ({condition})"));
            }
            for first in (0..self.width()).step_by(width) {
                let parts: Vec<String> = (first..first + width)
                    .map(|l| format!("narrow<{element}>({})", value.lane(l)))
                    .collect();
                let base = &index.base.text;
                let at = if first == 0 { base.clone() } else { format!("{base} + {first}") };
                if width == 1 {
                    self.line(format!("{pointer}[{at}] = {};", parts[0]));
                } else {
                    let pack = self.fresh("r");
                    let parts = parts.join(", ");
                    self.line(format!("const Pack<{element}, {width}> {pack} = {{{{{parts}}}}};"));
                    self.line(format!("store_pack<{width}>({pointer} + {at}, {pack});"));
                }
            }
            if guarded {
                self.close();
            }
            return Ok(());
        }
        // Lanes that write one element in turn: a plain store keeps the last, an update does all.
        let same = steady && matches!(index.step, Step::Same);
        let lanes = if same && plain { self.width() - 1..self.width() } else { 0..self.width() };
        for lane in lanes {
            let at = self.index_at(&index, lane, role).text;
            let condition =
                if guarded { Some(self.cond_at(&store.guard, lane, role)?) } else { None };
            let x = value.lane(lane);
            let statement = match update_function(store.combine) {
                None => format!("{pointer}[{at}] = narrow<{element}>({x});"),
                Some(update) => {
                    self.require(Part::Atomics);
                    match update {
                        Update::Plus => format!("atomic_plus({pointer} + {at}, {x});"),
                        Update::With(f) => format!("atomic_update({pointer} + {at}, {x}, {f}());"),
                    }
                }
            };
            match condition {
                Some(condition) => self.line(format!("if ({condition}) {statement}")),
                None => self.line(statement),
            }
        }
        Ok(())
    }
}

enum Update {
    Plus,
    With(&'static str),
}

fn update_function(combine: ScatterReduction) -> Option<Update> {
    match combine {
        ScatterReduction::Add => Some(Update::Plus),
        ScatterReduction::Mul => Some(Update::With("Times")),
        ScatterReduction::Max => Some(Update::With("Larger")),
        ScatterReduction::Min => Some(Update::With("Smaller")),
        _ => None,
    }
}
