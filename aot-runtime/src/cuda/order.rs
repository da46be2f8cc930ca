//! Which launches may follow which.

use super::actions::{Action, Blocks, Mode};
use super::flight::LaunchId;
use super::templates::Templates;

/// What may come first, last, and after what, of launches that are put into a stream as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) firsts: Vec<LaunchId>,
    pub(super) lasts: Vec<LaunchId>,
    /// A launch and one that may come next.
    pub(super) pairs: Vec<(LaunchId, LaunchId)>,
    /// Whether it may be that none of them is launched.
    pub(super) skipped: bool,
}

impl Order {
    fn empty() -> Self {
        Self { firsts: Vec::new(), lasts: Vec::new(), pairs: Vec::new(), skipped: true }
    }

    /// One launch.
    pub(super) fn of(launch: LaunchId) -> Self {
        let mut order = Self::empty();
        order.launch(launch);
        order
    }

    /// The launches of actions, without those of no blocks.
    pub(super) fn new(actions: &[Action], templates: &Templates) -> Self {
        let (mut order, mut around) = (Self::empty(), Vec::new());
        for action in actions {
            match action {
                Action::Launch { blocks: Blocks::Exactly(0) | Blocks::AtLeast(0), .. }
                | Action::Copy { .. } => {}
                Action::Launch { template, .. } => order.launch(templates.all()[*template].id),
                Action::Control(control) => match control.mode {
                    Mode::Begin => around.push(std::mem::replace(&mut order, Self::empty())),
                    Mode::End => {
                        let body = std::mem::replace(&mut order, Self::empty()).repeated();
                        order = around.pop().unwrap_or(order);
                        order.then(body);
                    }
                    Mode::Choose => {}
                },
            }
        }
        order
    }

    /// Continues with a launch.
    fn launch(&mut self, launch: LaunchId) {
        self.pairs.extend(self.lasts.drain(..).map(|last| (last, launch)));
        self.lasts.push(launch);
        if std::mem::take(&mut self.skipped) {
            self.firsts.push(launch);
        }
    }

    /// Continues with others.
    fn then(&mut self, next: Self) {
        let pairs = self.lasts.iter().flat_map(|a| next.firsts.iter().map(|b| (*a, *b)));
        self.pairs.extend(pairs);
        self.pairs.extend(next.pairs);
        if self.skipped {
            self.firsts.extend(next.firsts);
        }
        if !next.skipped {
            self.lasts.clear();
        }
        self.lasts.extend(next.lasts);
        self.skipped &= next.skipped;
    }

    /// As often as data say, or not at all.
    fn repeated(mut self) -> Self {
        let pairs = self.lasts.iter().flat_map(|a| self.firsts.iter().map(|b| (*a, *b)));
        let pairs: Vec<_> = pairs.collect();
        self.pairs.extend(pairs);
        self.skipped = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(step: u32) -> LaunchId {
        LaunchId { step, kernel: 0 }
    }

    fn chain(steps: &[u32]) -> Order {
        let mut order = Order::empty();
        steps.iter().for_each(|step| order.launch(id(*step)));
        order
    }

    /// What may come after a launch, or first.
    fn after(order: &Order, launch: Option<u32>) -> Vec<u32> {
        let mut found: Vec<u32> = match launch {
            None => order.firsts.iter().map(|id| id.step).collect(),
            Some(launch) => {
                let next = order.pairs.iter().filter(|(before, _)| before.step == launch);
                next.map(|(_, after)| after.step).collect()
            }
        };
        found.sort_unstable();
        found
    }

    #[test]
    fn chains_follow_one_another() {
        let order = chain(&[4, 5, 6]);
        assert_eq!(
            [None, Some(4), Some(5), Some(6)].map(|n| after(&order, n)),
            [vec![4], vec![5], vec![6], vec![]]
        );
        assert_eq!((order.lasts, order.skipped), (vec![id(6)], false));
    }

    #[test]
    fn loops_are_entered_repeated_left_and_skipped() {
        let mut order = chain(&[0]);
        let mut body = chain(&[1]);
        body.then(chain(&[2]).repeated());
        body.then(chain(&[3]));
        order.then(body.repeated());
        order.then(chain(&[4]).repeated());
        let next = [None, Some(0), Some(1), Some(2), Some(3), Some(4)].map(|n| after(&order, n));
        assert_eq!(next, [vec![0], vec![1, 4], vec![2, 3], vec![2, 3], vec![1, 4], vec![4]]);
        let mut lasts: Vec<u32> = order.lasts.iter().map(|id| id.step).collect();
        lasts.sort_unstable();
        assert_eq!((lasts, order.skipped), (vec![0, 3, 4], false));
        assert!(chain(&[1]).repeated().skipped);
    }
}
