//! The lines of SVG pictures: with the corners of their steps, without points that change nothing.

use crate::format::picture::Step;

/// How far a line may pass by a point of its own, in pixels. A picture has whole pixels only: a
/// slanted line that stops at each of its points would waver by as much.
const OFF: f64 = 0.6;

/// The corners of a line on axes of which a unit is so many `pixels` long, if they are linear.
pub(super) fn corners(points: &[(f64, f64)], step: Step, pixels: (f64, f64)) -> Vec<(f64, f64)> {
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
    if step == Step::None { straightened(&corners, pixels) } else { corners }
}

/// The points without those that lie, for the eye, on the straight line between the others.
///
/// From the last corner on, each point leaves a cone open within which a line passes it closely
/// enough; the first point that lies outside of it makes the one before it a corner.
fn straightened(points: &[(f64, f64)], pixels: (f64, f64)) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    let (mut lowest, mut highest) = (f64::NEG_INFINITY, f64::INFINITY);
    for pair in points.windows(2) {
        let [before, point] = [pair[0], pair[1]];
        let mut corner = *corners.last().unwrap_or(&before);
        let slopes = |from: (f64, f64)| {
            let (x, y) = ((point.0 - from.0) * pixels.0, (point.1 - from.1) * pixels.1);
            [y - OFF, y, y + OFF].map(|y| y / x)
        };
        // Of what is straight above each other, all is a corner.
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

    const PIXELS: (f64, f64) = (1.0, 2.0);

    #[test]
    fn a_straight_line_has_two_ends_and_a_triangle_three_corners() {
        let line: Vec<(f64, f64)> = (0..100).map(|n| (f64::from(n), 3.0)).collect();
        assert_eq!(corners(&line, Step::None, PIXELS), [(0.0, 3.0), (99.0, 3.0)]);
        let mut triangle = vec![(-9.0, 3.0), (-1.0, 3.0), (-0.001, 3.0)];
        triangle.extend((0..=400).map(|n| (f64::from(n), 3.0 + f64::from(400 - n))));
        triangle.extend([(401.0, 3.0), (500.0, 3.0)]);
        let corners = corners(&triangle, Step::None, PIXELS);
        assert_eq!(corners, [(-9.0, 3.0), (-0.001, 3.0), (0.0, 403.0), (400.0, 3.0), (500.0, 3.0)]);
    }

    #[test]
    fn what_can_be_seen_stays() {
        let spike = [(0.0, 0.0), (50.0, 0.0), (50.0, 9.0), (50.0, 1.0), (51.0, 1.0), (99.0, 1.0)];
        let corners = corners(&spike, Step::None, PIXELS);
        assert!(spike[1..4].iter().all(|point| corners.contains(point)), "{corners:?}");
    }

    #[test]
    fn steps_keep_their_corners() {
        let points = [(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(corners(&points, Step::Start, PIXELS), [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]);
        assert_eq!(corners(&points, Step::End, PIXELS), [(0.0, 1.0), (1.0, 1.0), (1.0, 2.0)]);
        for few in [0, 1] {
            assert_eq!(corners(&points[..few], Step::None, PIXELS), points[..few]);
        }
    }
}
