//! Polylines of SVG pictures: with the corners of steps, without redundant points.

use crate::picture::Step;

/// Greatest distance of a simplified line from its points, in pixels. It is below one pixel, to
/// which points are rounded anyway.
const TOLERANCE: f64 = 0.6;

/// Returns the corners of a line. `pixel` is the place of a point in the picture: a line is straight
/// there, which on a logarithmic axis differs from its numbers.
pub(super) fn corners(
    points: &[(f64, f64)],
    step: Step,
    pixel: impl Fn((f64, f64)) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        match step {
            Step::Start => corners.push((from.0, to.1)),
            Step::End => corners.push((to.0, from.1)),
            Step::None => {}
        }
        corners.push(to);
    }
    if step == Step::None { straightened(&corners, pixel) } else { corners }
}

/// Returns the points without those on a straight line between others.
///
/// From the last corner, each point narrows the cone of directions that pass it within the
/// tolerance. The first point outside of the cone makes its predecessor a corner.
fn straightened(
    points: &[(f64, f64)],
    pixel: impl Fn((f64, f64)) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    let (mut lowest, mut highest) = (f64::NEG_INFINITY, f64::INFINITY);
    for pair in points.windows(2) {
        let [before, point] = [pair[0], pair[1]];
        let mut corner = *corners.last().unwrap_or(&before);
        let slopes = |from: (f64, f64)| {
            let (from, to) = (pixel(from), pixel(point));
            let (x, y) = (to.0 - from.0, to.1 - from.1);
            [y - TOLERANCE, y, y + TOLERANCE].map(|y| y / x)
        };
        // Points with the same x are all corners.
        let passed = before.0 < point.0 && (lowest..=highest).contains(&slopes(corner)[1]);
        if corners.is_empty() || !passed {
            corners.push(before);
            corner = before;
            (lowest, highest) = (f64::NEG_INFINITY, f64::INFINITY);
        }
        let [below, _, above] = slopes(corner);
        (lowest, highest) = (lowest.max(below), highest.min(above));
    }
    corners.extend(points.last());
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixel((x, y): (f64, f64)) -> (f64, f64) {
        (x, 2.0 * y)
    }

    #[test]
    fn corners_of_line_and_triangle_are_minimal() {
        let line: Vec<(f64, f64)> = (0..100).map(|n| (f64::from(n), 3.0)).collect();
        assert_eq!(corners(&line, Step::None, pixel), [(0.0, 3.0), (99.0, 3.0)]);
        let mut triangle = vec![(-9.0, 3.0), (-1.0, 3.0), (-0.001, 3.0)];
        triangle.extend((0..=400).map(|n| (f64::from(n), 3.0 + f64::from(400 - n))));
        triangle.extend([(401.0, 3.0), (500.0, 3.0)]);
        let corners = corners(&triangle, Step::None, pixel);
        assert_eq!(corners, [(-9.0, 3.0), (-0.001, 3.0), (0.0, 403.0), (400.0, 3.0), (500.0, 3.0)]);
    }

    #[test]
    fn corners_keep_point_beside_straight_line_on_logarithmic_axis() {
        let logarithmic = |(x, y): (f64, f64)| (100.0 * x, 100.0 * y.log10());
        let line = [(0.0, 1.0), (1.0, 10.0), (2.0, 100.0)];
        assert_eq!(corners(&line, Step::None, logarithmic), [line[0], line[2]]);
        let line = [(0.0, 2.0), (1.0, 51.0), (2.0, 100.0)];
        assert_eq!(corners(&line, Step::None, logarithmic), line);
        assert_eq!(corners(&line, Step::None, pixel), [line[0], line[2]]);
    }

    #[test]
    fn corners_keep_visible_spike() {
        let spike = [(0.0, 0.0), (50.0, 0.0), (50.0, 9.0), (50.0, 1.0), (51.0, 1.0), (99.0, 1.0)];
        let corners = corners(&spike, Step::None, pixel);
        assert!(spike[1..4].iter().all(|point| corners.contains(point)), "{corners:?}");
    }

    #[test]
    fn corners_of_steps_are_kept() {
        let points = [(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(corners(&points, Step::Start, pixel), [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]);
        assert_eq!(corners(&points, Step::End, pixel), [(0.0, 1.0), (1.0, 1.0), (1.0, 2.0)]);
        for few in [0, 1] {
            assert_eq!(corners(&points[..few], Step::None, pixel), points[..few]);
        }
    }
}
