//! Several coordinates as one number.

use super::arguments::Role;
use super::emitter::Emitter;
use super::value::Int;
use aot_ir::Dim;
use aot_ir::dim::VarId;

/// Coordinates as one number: the variable that runs over lanes comes last.
#[derive(Clone, Debug)]
pub struct Flat {
    /// Outermost first.
    pub order: Vec<VarId>,
    /// The last variable's places are taken this many at a time.
    pub width: usize,
    /// How many numbers there are.
    pub count: Dim,
    /// The most there can be.
    pub most: i64,
}

impl Flat {
    /// `vars` with `lane` last, which is taken `width` places at a time; `width` divides its extent.
    pub fn new(emitter: &Emitter<'_>, vars: &[VarId], lane: Option<VarId>, width: usize) -> Self {
        let mut order: Vec<VarId> = vars.iter().copied().filter(|v| Some(*v) != lane).collect();
        order.extend(lane);
        let (group, scope) = (emitter.group(), emitter.scope());
        let steps = |v: &VarId| match Some(*v) == lane {
            true => scope.floor_div(group.extent(*v), &Dim::from(width as i64)),
            false => group.extent(*v).clone(),
        };
        let count: Dim = order.iter().map(steps).product();
        let most = scope.interval(&count).hi.max(1);
        Self { order, width, count, most }
    }

    /// Binds the variables for a number, the last one to lanes if there are several.
    pub fn bind(&self, emitter: &mut Emitter<'_>, number: Int) {
        let mut rest = number;
        let group = emitter.group();
        for (i, var) in self.order.iter().enumerate().rev() {
            let last = i + 1 == self.order.len();
            let width = if last { self.width } else { 1 };
            let steps = emitter.scope().floor_div(group.extent(*var), &Dim::from(width as i64));
            let place = if i == 0 {
                rest.clone()
            } else {
                let steps = emitter.uniform(&steps, Role::Extent(var.0));
                emitter.split(&mut rest, &steps)
            };
            if width > 1 {
                let first = Int { text: format!("{} * {width}", place.text), wide: place.wide };
                let first = emitter.constant_int("n", &first);
                emitter.bind_lanes(*var, first, width);
            } else {
                emitter.bind(*var, place);
            }
        }
    }
}
