//! Rectangles of any direction around points.

use crate::pixels::Point;

/// Four corners: top left, top right, bottom right, bottom left.
pub type Quad = [Point; 4];

/// A rectangle by its centre, the direction of one side, and its extents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rectangle {
    pub centre: Point,
    /// A unit vector.
    pub direction: Point,
    /// Extent along `direction`.
    pub length: f64,
    /// Extent across it.
    pub breadth: f64,
}

impl Rectangle {
    /// The rectangle of least area around points that shares a direction with a side of their
    /// convex hull; none when fewer than two points differ.
    pub fn around(points: Vec<(i64, i64)>) -> Option<Self> {
        let points: Vec<Point> =
            hull(points).into_iter().map(|(x, y)| (x as f64, y as f64)).collect();
        let mut best: Option<(f64, Self)> = None;
        for (i, &(x0, y0)) in points.iter().enumerate() {
            let (x1, y1) = points[(i + 1) % points.len()];
            let side = ((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)).sqrt();
            if side == 0.0 {
                continue;
            }
            let (dx, dy) = ((x1 - x0) / side, (y1 - y0) / side);
            let (a0, a1) = extent(points.iter().map(|(x, y)| x * dx + y * dy));
            let (c0, c1) = extent(points.iter().map(|(x, y)| y * dx - x * dy));
            let area = (a1 - a0) * (c1 - c0);
            if best.is_none_or(|(least, _)| area < least) {
                let (a, c) = ((a0 + a1) / 2.0, (c0 + c1) / 2.0);
                let rectangle = Self {
                    centre: (a * dx - c * dy, a * dy + c * dx),
                    direction: (dx, dy),
                    length: a1 - a0,
                    breadth: c1 - c0,
                };
                best = Some((area, rectangle));
            }
        }
        best.map(|(_, rectangle)| rectangle)
    }

    /// The rectangle whose sides lie `distance` further out.
    pub fn grown(self, distance: f64) -> Self {
        Self {
            length: self.length + 2.0 * distance,
            breadth: self.breadth + 2.0 * distance,
            ..self
        }
    }

    /// Whether a point lies inside or within a millionth of a pixel.
    pub fn contains(&self, (x, y): Point) -> bool {
        let ((cx, cy), (dx, dy)) = (self.centre, self.direction);
        let along = (x - cx) * dx + (y - cy) * dy;
        let across = (y - cy) * dx - (x - cx) * dy;
        along.abs() <= self.length / 2.0 + 1e-6 && across.abs() <= self.breadth / 2.0 + 1e-6
    }

    /// The corners in the order of [`Quad`].
    pub fn corners(&self) -> Quad {
        let ((cx, cy), (dx, dy)) = (self.centre, self.direction);
        let mut points = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)].map(|(u, v)| {
            let (a, c) = (u * self.length, v * self.breadth);
            (cx + a * dx - c * dy, cy + a * dy + c * dx)
        });
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let [mut left, mut right] = [[points[0], points[1]], [points[2], points[3]]];
        left.sort_by(|a, b| a.1.total_cmp(&b.1));
        right.sort_by(|a, b| a.1.total_cmp(&b.1));
        [left[0], right[0], right[1], left[1]]
    }
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// The convex hull (Andrew's monotone chain), no three points in line.
fn hull(mut points: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    points.sort_unstable();
    points.dedup();
    if points.len() < 3 {
        return points;
    }
    let mut whole = half(points.iter().copied());
    whole.extend(half(points.iter().rev().copied()));
    whole
}

fn half(points: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut chain: Vec<(i64, i64)> = Vec::new();
    for p in points {
        while let [.., o, a] = chain[..]
            && (a.0 - o.0) * (p.1 - o.1) - (a.1 - o.1) * (p.0 - o.0) <= 0
        {
            chain.pop();
        }
        chain.push(p);
    }
    chain.pop();
    chain
}

/// The distance of two points.
pub fn distance(a: Point, b: Point) -> f64 {
    ((a.0 - b.0) * (a.0 - b.0) + (a.1 - b.1) * (a.1 - b.1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upright_box() {
        let r = Rectangle::around(vec![(1, 2), (5, 2), (5, 4), (1, 4), (3, 3)]).unwrap();
        assert_eq!(r.corners(), [(1.0, 2.0), (5.0, 2.0), (5.0, 4.0), (1.0, 4.0)]);
        assert!(r.contains((5.0, 4.0)) && !r.contains((5.1, 4.0)));
    }

    #[test]
    fn a_box_that_stands_on_a_corner() {
        let r = Rectangle::around(vec![(0, 2), (2, 0), (6, 4), (4, 6)]).unwrap();
        let (short, long) = (r.length.min(r.breadth), r.length.max(r.breadth));
        assert!((short - 8f64.sqrt()).abs() < 1e-12 && (long - 32f64.sqrt()).abs() < 1e-12);
        assert!(r.grown(1.0).contains((0.0, 1.0)) && !r.contains((0.0, 1.0)));
    }

    #[test]
    fn a_single_point_has_none_and_a_line_has_no_breadth() {
        assert_eq!(Rectangle::around(vec![(3, 3), (3, 3)]), None);
        assert_eq!(Rectangle::around(vec![(0, 0), (1, 0), (7, 0)]).unwrap().breadth, 0.0);
    }
}
