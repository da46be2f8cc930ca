//! Typed reads and writes of buffers' bytes.

use super::super::arena::ArenaPlan;
use super::super::plan::{BufferKind, Plan};
use super::InterpretError;
use super::eval::Num;
use aot_ir::DType;
use aot_ir::exec::NarrowFloat;
use half::{bf16, f16};

/// Bytes of every buffer; those of the arena overlap as planned.
#[derive(Debug)]
pub struct Memory {
    arena: Vec<u8>,
    own: Vec<Vec<u8>>,
    /// Where a buffer lies in the arena.
    offsets: Vec<Option<usize>>,
    /// Bytes that a buffer holds.
    sizes: Vec<usize>,
    dtypes: Vec<DType>,
    /// By buffer, whether an element is padding; empty where none is.
    padding: Vec<Vec<bool>>,
}

impl Memory {
    /// Memory for a plan at given sizes (atoms by symbol). Everything is filled with a pattern that
    /// reads as NaN or as a large number, so that unwritten elements show.
    ///
    /// # Errors
    /// When a size has no value or an arena buffer exceeds its planned place.
    pub fn new(plan: &Plan<'_>, arena: &ArenaPlan, atoms: &[i64]) -> Result<Self, InterpretError> {
        let mut memory = Self {
            arena: vec![0xff; arena.total as usize],
            own: Vec::new(),
            offsets: Vec::new(),
            sizes: Vec::new(),
            dtypes: Vec::new(),
            padding: padding(plan, atoms)?,
        };
        for (i, buffer) in plan.buffers.iter().enumerate() {
            let elements = buffer.elements.eval(atoms)?.max(0) as u64;
            let bytes = buffer.dtype.bytes_for(elements).unwrap_or(0) as usize;
            let offset = match buffer.kind {
                BufferKind::Arena => arena.offsets.get(&(i as u32)).map(|o| *o as usize),
                _ => None,
            };
            if let Some(offset) = offset
                && offset + bytes > memory.arena.len()
            {
                return Err(InterpretError::Arena(buffer.name.clone()));
            }
            memory.own.push(if offset.is_some() { Vec::new() } else { vec![0xff; bytes] });
            memory.offsets.push(offset);
            memory.sizes.push(bytes);
            memory.dtypes.push(buffer.dtype);
        }
        Ok(memory)
    }

    /// Memory of buffers that lie apart, with their contents.
    pub fn of_buffers(buffers: Vec<(DType, Vec<u8>)>) -> Self {
        let (dtypes, own): (Vec<DType>, Vec<Vec<u8>>) = buffers.into_iter().unzip();
        Self {
            arena: Vec::new(),
            offsets: vec![None; own.len()],
            padding: vec![Vec::new(); own.len()],
            sizes: own.iter().map(Vec::len).collect(),
            dtypes,
            own,
        }
    }

    /// Lets every buffer be as long as its expression says now that more sizes are known.
    ///
    /// # Errors
    /// When a size has no value.
    pub(super) fn resize(&mut self, plan: &Plan<'_>, atoms: &[i64]) -> Result<(), InterpretError> {
        for (i, buffer) in plan.buffers.iter().enumerate() {
            let elements = buffer.elements.eval(atoms)?.max(0) as u64;
            self.sizes[i] = buffer.dtype.bytes_for(elements).unwrap_or(0) as usize;
            if self.offsets[i].is_none() {
                self.own[i].resize(self.sizes[i], 0xff);
            }
        }
        Ok(())
    }

    /// A buffer's bytes.
    pub fn bytes(&self, buffer: u32) -> &[u8] {
        let i = buffer as usize;
        match self.offsets[i] {
            Some(offset) => &self.arena[offset..offset + self.sizes[i]],
            None => &self.own[i],
        }
    }

    /// A buffer's bytes, to be written.
    pub fn bytes_mut(&mut self, buffer: u32) -> &mut [u8] {
        let i = buffer as usize;
        match self.offsets[i] {
            Some(offset) => &mut self.arena[offset..offset + self.sizes[i]],
            None => &mut self.own[i],
        }
    }

    /// Whether an element is padding, which must be zero where it is read.
    pub(super) fn is_padding(&self, buffer: u32, element: i64) -> bool {
        let at = usize::try_from(element).unwrap_or(usize::MAX);
        self.padding[buffer as usize].get(at).copied().unwrap_or(false)
    }

    pub(super) fn read(&self, buffer: u32, element: i64) -> Option<Num> {
        let dtype = self.dtypes[buffer as usize];
        let at = usize::try_from(element).ok()?;
        let bytes = self.bytes(buffer);
        if dtype.bits() < 8 {
            let (bits, count) = (dtype.bits(), (8 / dtype.bits()) as usize);
            let code = *bytes.get(at / count)? >> (at % count * bits as usize) & ((1 << bits) - 1);
            return Some(match NarrowFloat::of(dtype) {
                Some(format) => Num::F(format.decode(code).into()),
                None if dtype.is_signed_int() => {
                    Num::I(((code << (8 - bits)) as i8 >> (8 - bits)).into())
                }
                None => Num::I(code.into()),
            });
        }
        let size = dtype.bits() as usize / 8;
        let raw = bytes.get(at.checked_mul(size)?..(at + 1).checked_mul(size)?)?;
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(raw);
        let word = u64::from_le_bytes(word);
        Some(match dtype {
            DType::Bool => Num::B(word != 0),
            DType::I8 => Num::I((word as i8).into()),
            DType::I16 => Num::I((word as i16).into()),
            DType::I32 => Num::I((word as i32).into()),
            DType::F16 => Num::F(f16::from_bits(word as u16).to_f64()),
            DType::Bf16 => Num::F(bf16::from_bits(word as u16).to_f64()),
            DType::F32 => Num::F(f32::from_bits(word as u32).into()),
            DType::F64 => Num::F(f64::from_bits(word)),
            t => match NarrowFloat::of(t) {
                Some(format) => Num::F(format.decode(word as u8).into()),
                None => Num::I(word as i64),
            },
        })
    }

    /// Writes an element of a buffer of `elements`; `None` if it has no such element. What
    /// no packed element has of the last byte is filled up with zero.
    pub(super) fn write(
        &mut self,
        buffer: u32,
        elements: i64,
        element: i64,
        value: Num,
    ) -> Option<()> {
        let dtype = self.dtypes[buffer as usize];
        let at = usize::try_from(element).ok()?;
        let narrow = NarrowFloat::of(dtype);
        if dtype.bits() < 8 {
            let (bits, count) = (dtype.bits() as usize, (8 / dtype.bits()) as usize);
            let byte = self.bytes_mut(buffer).get_mut(at / count)?;
            let low = at % count * bits;
            let code = match narrow {
                Some(format) => format.encode(value.float()),
                None => value.int() as u8 & ((1 << bits) - 1),
            };
            let own = if element + 1 == elements { 0xff } else { (1u8 << bits) - 1 };
            *byte = *byte & !(own << low) | code << low;
            return Some(());
        }
        let word = match dtype {
            DType::Bool => u64::from(value.truth()),
            DType::F16 => f16::from_f32(value.float() as f32).to_bits().into(),
            DType::Bf16 => bf16::from_f32(value.float() as f32).to_bits().into(),
            DType::F32 => (value.float() as f32).to_bits().into(),
            DType::F64 => value.float().to_bits(),
            _ => match narrow {
                Some(format) => format.encode(value.float()).into(),
                None => value.int() as u64,
            },
        };
        let size = dtype.bits() as usize / 8;
        let bytes = self.bytes_mut(buffer);
        let place = bytes.get_mut(at.checked_mul(size)?..(at + 1).checked_mul(size)?)?;
        place.copy_from_slice(&word.to_le_bytes()[..size]);
        Some(())
    }
}

/// By buffer, whether an element is padding of a home.
fn padding(plan: &Plan<'_>, atoms: &[i64]) -> Result<Vec<Vec<bool>>, InterpretError> {
    let mut out = vec![Vec::new(); plan.buffers.len()];
    let homes = plan.homes.iter().map(|(v, home)| (*v, home));
    let copies = plan.converted.iter().map(|((v, _), home)| (*v, home));
    for (value, home) in homes.chain(copies) {
        let Some(padding) = home.padding else { continue };
        let buffer = home.buffer as usize;
        let elements = plan.buffers[buffer].elements.eval(atoms)?;
        let flags: &mut Vec<bool> = &mut out[buffer];
        flags.resize(usize::try_from(elements).unwrap_or(0), false);
        let mut places = vec![home.offset.eval(atoms)?];
        for (axis, extent) in plan.graph[value].shape.iter().enumerate() {
            let stride = home.strides[axis].eval(atoms)?;
            let (first, end) = match axis == padding.axis {
                true => (padding.from, padding.to),
                false => (0, extent.eval(atoms)?),
            };
            let along =
                |place: &i64| (first..end).map(move |i| place + i * stride).collect::<Vec<_>>();
            places = places.iter().flat_map(along).collect();
        }
        for place in places {
            if let Some(flag) = usize::try_from(place).ok().and_then(|p| flags.get_mut(p)) {
                *flag = true;
            }
        }
    }
    Ok(out)
}
