//! Packed 4-bit integers: two elements a byte, the first one in the lower half.

use super::arguments::Role;
use super::emitter::{Emit, Emitter};
use super::index::{Index, Step};
use super::prelude::Part;
use super::value::Value;
use crate::group::Store;
use aot_ir::dim::Cond;
use aot_ir::op::ScatterReduction;
use aot_ir::{DType, Dim};

/// Elements of a 32-bit word.
pub(super) const WORD: usize = 8;

impl<'a> Emitter<'a> {
    /// The elements of packed 4-bit integers at all lanes.
    pub(super) fn load_nibbles(
        &mut self,
        pointer: &str,
        index: &Index,
        guard: &Cond,
        fallback: &str,
        storage: DType,
    ) -> Emit<Value> {
        let steady = self.lanes_agree(guard) && matches!(index.step, Step::Same);
        let count = if steady { 1 } else { self.width() };
        let mut lanes = Vec::with_capacity(count);
        for lane in 0..count {
            let at = self.index_at(index, lane, Role::Other).text;
            let byte = format!("(int)load_one({pointer} + ({at} >> 1))");
            // The nibble at the top of 32 bits, then shifted down with or without its sign.
            let top = format!("{byte} << (28 - (int)({at} & 1) * 4)");
            let mut text = if storage == DType::I4 {
                format!("({top}) >> 28")
            } else {
                format!("(int)((unsigned)({top}) >> 28)")
            };
            if self.scope.decide_cond(guard) != Some(true) {
                let condition = self.cond_at(guard, lane, Role::Other)?;
                text = format!("{condition} ? {text} : {fallback}");
            }
            lanes.push(self.scalar(DType::I32, &text));
        }
        Ok(Value { dtype: DType::I32, lanes })
    }

    /// Whether lanes that go on by one from an offset are whole words.
    pub(super) fn has_whole_words(&self, offset: &Dim) -> bool {
        self.width().is_multiple_of(WORD) && self.divisors.divides(WORD as i64, offset)
    }

    /// Does a store of packed integers at all lanes: of whole words plainly, of single elements
    /// atomically, as other threads may write their neighbours at the same time. Nothing else writes to a
    /// word that a thread has as a whole. Past an odd count of elements the last byte is filled up with zero.
    pub(super) fn store_nibbles(&mut self, store: &Store, value: &Value) -> Emit<()> {
        if store.combine != ScatterReduction::None {
            return Err(self.unsupported("an update of packed 4-bit integers"));
        }
        let role = Role::Operand(store.operand);
        let steady = self.lanes_agree(&store.guard);
        let index = self.index(&store.offset, role)?;
        let pointer = self.pointer(store.operand);
        let guarded = self.scope.decide_cond(&store.guard) != Some(true);
        if steady && matches!(index.step, Step::One) && self.has_whole_words(&store.offset) {
            if guarded {
                let condition = self.cond_at(&store.guard, 0, role)?;
                self.open(format!("if ({condition})"));
            }
            for first in (0..self.width()).step_by(WORD) {
                let part =
                    |i: usize| format!("((unsigned){} & 15) << {}", value.lane(first + i), 4 * i);
                let word = (0..WORD).map(part).collect::<Vec<_>>().join(" | ");
                let base = &index.base.text;
                self.line(format!("*(unsigned*)({pointer} + (({base} + {first}) >> 1)) = {word};"));
            }
            if guarded {
                self.close();
            }
            return Ok(());
        }
        self.require(Part::Atomics);
        let elements = self.group.operands[store.operand.index()].elements.clone();
        let last = match self.divisors.divides(2, &elements) {
            true => None,
            false => Some(self.uniform(&(elements - 1), role)),
        };
        // Of lanes that write one element in turn the last one stays.
        let same = steady && matches!(index.step, Step::Same);
        for lane in if same { self.width() - 1..self.width() } else { 0..self.width() } {
            let at = self.index_at(&index, lane, role).text;
            let alone = match &last {
                Some(last) => format!("{at} == {}", last.text),
                None => "false".to_owned(),
            };
            let statement =
                format!("store_nibble({pointer}, {at}, {}, {alone});", value.lane(lane));
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
