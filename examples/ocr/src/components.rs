//! Connected regions of a mask.

/// A run of set pixels of one row: `first..=last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub y: usize,
    pub first: usize,
    pub last: usize,
}

/// The regions of `mask` (rows of `width` pixels) that are connected along sides or corners, as
/// runs from top to bottom; regions come in the order of their first runs.
pub fn components(mask: &[bool], width: usize) -> Vec<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut parents: Vec<usize> = Vec::new();
    let mut above = 0..0;
    for (y, row) in mask.chunks(width.max(1)).enumerate() {
        let start = runs.len();
        let mut x = 0;
        while x < row.len() {
            if !row[x] {
                x += 1;
                continue;
            }
            let first = x;
            while x < row.len() && row[x] {
                x += 1;
            }
            parents.push(runs.len());
            runs.push(Run { y, first, last: x - 1 });
        }
        let here = start..runs.len();
        let mut from = above.start;
        for i in here.clone() {
            // Runs are sorted: those that end before this one begins are of no use to later ones.
            while from < above.end && runs[from].last + 1 < runs[i].first {
                from += 1;
            }
            for j in from..above.end {
                if runs[j].first > runs[i].last + 1 {
                    break;
                }
                let (a, b) = (root(&mut parents, i), root(&mut parents, j));
                parents[a.max(b)] = a.min(b);
            }
        }
        above = here;
    }

    let mut regions: Vec<Vec<Run>> = Vec::new();
    let mut region_of = vec![usize::MAX; runs.len()];
    for (i, run) in runs.iter().enumerate() {
        let top = root(&mut parents, i);
        if region_of[top] == usize::MAX {
            region_of[top] = regions.len();
            regions.push(Vec::new());
        }
        regions[region_of[top]].push(*run);
    }
    regions
}

fn root(parents: &mut [usize], mut i: usize) -> usize {
    while parents[i] != i {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(picture: &str) -> Vec<usize> {
        let width = picture.lines().next().unwrap().len();
        let mask: Vec<bool> =
            picture.lines().flat_map(|line| line.chars()).map(|c| c == '#').collect();
        let size = |runs: &Vec<Run>| runs.iter().map(|run| run.last - run.first + 1).sum();
        components(&mask, width).iter().map(size).collect()
    }

    #[test]
    fn corners_connect() {
        assert_eq!(sizes("#..\n.#.\n..#"), [3]);
        assert_eq!(sizes("#..\n..#\n#.."), [1, 1, 1]);
    }

    #[test]
    fn arms_that_meet_below_are_one_region() {
        assert_eq!(sizes("#.#.#\n#.#.#\n#####\n.....\n..##."), [11, 2]);
    }

    #[test]
    fn an_empty_mask_has_no_region() {
        assert_eq!(components(&[], 0), Vec::<Vec<Run>>::new());
        assert_eq!(sizes("...\n..."), Vec::<usize>::new());
    }
}
