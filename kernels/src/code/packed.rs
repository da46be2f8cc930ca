//! Elements of 2 or 4 bits, packed in bytes: the first one in the lowest bits.

use super::arguments::Role;
use super::emitter::{Emit, Emitter};
use super::index::{Index, Step};
use super::prelude::Part;
use super::value::Value;
use crate::group::{Store, compute_type};
use aot_ir::dim::Cond;
use aot_ir::op::ScatterReduction;
use aot_ir::{DType, Dim};

/// Packed elements of a 32-bit word.
pub(super) fn per_word(storage: DType) -> usize {
    32 / storage.bits() as usize
}

impl<'a> Emitter<'a> {
    /// Packed elements at all lanes.
    pub(super) fn load_packed(
        &mut self,
        pointer: &str,
        index: &Index,
        guard: &Cond,
        fallback: &str,
        storage: DType,
    ) -> Emit<Value> {
        let dtype = compute_type(storage);
        let steady = self.lanes_agree(guard) && matches!(index.step, Step::Same);
        let count = if steady { 1 } else { self.width() };
        let mut lanes = Vec::with_capacity(count);
        for lane in 0..count {
            let at = self.index_at(index, lane, Role::Other).text;
            let bits = storage.bits();
            let (per_byte, shift) = (8 / bits, (8 / bits).ilog2());
            let byte = format!("(int)load_one({pointer} + ({at} >> {shift}))");
            // The element at the top of 32 bits, then shifted down with or without its sign.
            let up = format!("{} - (int)({at} & {}) * {bits}", 32 - bits, per_byte - 1);
            let top = format!("{byte} << ({up})");
            let down = 32 - bits;
            let mut text = match storage {
                DType::F4E2M1 => {
                    self.require(Part::Types);
                    format!("widen(f4e2m1{{(unsigned char)((unsigned)({top}) >> {down})}})")
                }
                t if t.is_signed_int() => format!("({top}) >> {down}"),
                _ => format!("(int)((unsigned)({top}) >> {down})"),
            };
            if self.scope.decide_cond(guard) != Some(true) {
                let condition = self.cond_at(guard, lane, Role::Other)?;
                text = format!("{condition} ? {text} : {fallback}");
            }
            lanes.push(self.scalar(dtype, &text));
        }
        Ok(Value { dtype, lanes })
    }

    /// Whether lanes that go on by one from an offset are whole words.
    pub(super) fn has_whole_words(&self, storage: DType, offset: &Dim) -> bool {
        let word = per_word(storage);
        self.width().is_multiple_of(word) && self.divisors.divides(word as i64, offset)
    }

    /// Does a store of packed elements at all lanes: of whole words plainly, of single elements
    /// atomically, as other threads may write their neighbours at the same time. Nothing else writes to a
    /// word that a thread has as a whole. What no element has of the last byte is filled up with zero.
    pub(super) fn store_packed(&mut self, store: &Store, value: &Value) -> Emit<()> {
        if store.combine != ScatterReduction::None {
            return Err(self.unsupported("an update of packed elements"));
        }
        let role = Role::Operand(store.operand);
        let storage = self.storage(store.operand);
        let (bits, word) = (storage.bits(), per_word(storage));
        let code = |x: &str| match storage {
            DType::F4E2M1 => format!("narrow<f4e2m1>({x}).bits"),
            _ => format!("(unsigned){x} & {}", (1 << bits) - 1),
        };
        if storage == DType::F4E2M1 {
            self.require(Part::Types);
        }
        let steady = self.lanes_agree(&store.guard);
        let index = self.index(&store.offset, role)?;
        let pointer = self.pointer(store.operand);
        let guarded = self.scope.decide_cond(&store.guard) != Some(true);
        if steady && matches!(index.step, Step::One) && self.has_whole_words(storage, &store.offset)
        {
            if guarded {
                let condition = self.cond_at(&store.guard, 0, role)?;
                self.open(format!("if ({condition})"));
            }
            for first in (0..self.width()).step_by(word) {
                let part = |i: usize| {
                    format!(
                        "((unsigned)({})) << {}",
                        code(value.lane(first + i)),
                        bits as usize * i
                    )
                };
                let parts = (0..word).map(part).collect::<Vec<_>>().join(" | ");
                let (base, shift) = (&index.base.text, (8 / bits).ilog2());
                let at = format!("(({base} + {first}) >> {shift})");
                self.line(format!("*(unsigned*)({pointer} + {at}) = {parts};"));
            }
            if guarded {
                self.close();
            }
            return Ok(());
        }
        self.require(Part::Atomics);
        let elements = self.group.operands[store.operand.index()].elements.clone();
        let last = match self.divisors.divides(i64::from(8 / bits), &elements) {
            true => None,
            false => Some(self.uniform(&(elements - 1), role)),
        };
        // Of lanes that write one element in turn the last one stays.
        let same = steady && matches!(index.step, Step::Same);
        for lane in if same { self.width() - 1..self.width() } else { 0..self.width() } {
            let at = self.index_at(&index, lane, role).text;
            let ends = match &last {
                Some(last) => format!("{at} == {}", last.text),
                None => "false".to_owned(),
            };
            let code = code(value.lane(lane));
            let statement = format!("store_packed<{bits}>({pointer}, {at}, {code}, {ends});");
            if guarded {
                let condition = self.cond_at(&store.guard, lane, role)?;
                self.line(format!("if ({condition}) {statement}"));
            } else {
                self.line(statement);
            }
        }
        Ok(())
    }
}
