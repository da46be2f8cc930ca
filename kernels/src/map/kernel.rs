//! One thread per place, or per `width` places along one variable.

use super::lanes;
use crate::code::{Emit, Emitter, Int, Role};
use crate::group::{Anchor, Group};
use crate::kernel::{Kernel, KernelError};
use aot_ir::dim::VarId;
use aot_ir::{Arch, Dim, Symbols};

/// Threads per block.
const THREADS: u32 = 256;

/// Kernels for a group whose anchor is [`Anchor::Map`].
///
/// # Errors
/// If an expression can't be computed on a GPU.
pub fn kernels(group: &Group, symbols: &Symbols, _arch: Arch) -> Result<Vec<Kernel>, KernelError> {
    let group = group.merged();
    let mut emitter = Emitter::new(&group, symbols);
    let Anchor::Map { space } = &group.anchor else {
        return Err(emitter.unsupported("its anchor is no map"));
    };
    let (lane, width) = lanes::choose(&mut emitter, space);
    let scope = emitter.scope();
    let mut order: Vec<VarId> = space.iter().copied().filter(|v| Some(*v) != lane).collect();
    order.extend(lane);
    let steps = |var: VarId| match Some(var) == lane {
        true => scope.ceil_div(group.extent(var), &Dim::from(width as i64)),
        false => group.extent(var).clone(),
    };
    let total: Dim = order.iter().map(|v| steps(*v)).product();
    let wide = scope.interval(&total).hi > i64::from(i32::MAX) - i64::from(THREADS);

    let (number, cast) = if wide { ("long long", "(long long)") } else { ("int", "(int)") };
    emitter.line(format!("const {number} t = {cast}blockIdx.x * {THREADS} + (int)threadIdx.x;"));
    let count = emitter.uniform(&total, Role::Other);
    emitter.line(format!("if (t >= {}) return;", count.text));
    let mut rest = Int { text: "t".to_owned(), wide };
    let mut first = None;
    for (i, var) in order.iter().enumerate().rev() {
        let steps = emitter.uniform(&steps(*var), Role::Extent(var.0));
        let place = if i == 0 { rest.clone() } else { emitter.split(&mut rest, &steps) };
        if Some(*var) == lane && width > 1 {
            let text = format!("{} * {width}", place.text);
            first = Some((*var, emitter.constant_int("n", &Int { text, wide: place.wide })));
        } else {
            emitter.bind(*var, place);
        }
    }
    match first {
        None => stores(&mut emitter)?,
        Some((var, first)) => lanes_or_tail(&mut emitter, var, first, width)?,
    }

    let blocks = scope.ceil_div(&total, &Dim::from(i64::from(THREADS)));
    let schedule = format!("map, {width} per thread");
    Ok(vec![emitter.finish("aot_map", THREADS, blocks, schedule)])
}

/// All places from `first` on, or one by one where fewer than `width` are left.
fn lanes_or_tail(emitter: &mut Emitter<'_>, var: VarId, first: Int, width: usize) -> Emit<()> {
    let extent = emitter.group().extent(var).clone();
    if emitter.divisors().divides(width as i64, &extent) {
        emitter.bind_lanes(var, first, width);
        return stores(emitter);
    }
    let extent = emitter.uniform(&extent, Role::Extent(var.0));
    emitter.open(format!("if ({} + {width} <= {})", first.text, extent.text));
    emitter.bind_lanes(var, first.clone(), width);
    stores(emitter)?;
    emitter.close();
    let (name, number) = (emitter.fresh("k"), first.type_name());
    emitter.open("else");
    emitter.line("#pragma unroll 1");
    emitter.open(format!(
        "for ({number} {name} = {}; {name} < {}; ++{name})",
        first.text, extent.text
    ));
    emitter.bind(var, Int { text: name, wide: first.wide });
    stores(emitter)?;
    emitter.close();
    emitter.close();
    Ok(())
}

fn stores(emitter: &mut Emitter<'_>) -> Emit<()> {
    let stores: Vec<_> = emitter.group().stores.iter().collect();
    emitter.store_all(&stores)
}
