//! How a time grows with a number: not at all, with the logarithm of the number, or in proportion.

/// What fits best to how a value grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It does not, or by no more than can be told from chance.
    Flat,
    /// By the same amount with each doubling.
    Logarithmic,
    /// By the same amount with each one more.
    Linear,
}

/// A value that belongs to a number: so many tasks, and the time that they make something take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// At least 0.
    pub number: f64,
    /// What was measured there.
    pub value: f64,
}

/// The straight line that is nearest to some points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    /// How much the value rises with each one more.
    slope: f64,
    /// What of the squares of the distances is left, and what it is without any slope.
    left: f64,
    without: f64,
}

impl Growth {
    /// Less than this share of the value is no growth.
    const LEAST: f64 = 0.05;

    /// What the points say. Nothing where they have fewer than three different numbers: any two
    /// values fit any way of growing.
    ///
    /// It is flat where the rise from the least number to the greatest is below a twentieth of the
    /// mean, or where no way of growing explains at least half of how the values differ.
    pub fn of(points: &[Point]) -> Option<Growth> {
        if different_numbers(points) < 3 {
            return None;
        }
        let doublings = |point: &Point| Point { number: (1.0 + point.number).log2(), ..*point };
        let logarithms: Vec<Point> = points.iter().map(doublings).collect();
        let (straight, bent) = (Line::through(points)?, Line::through(&logarithms)?);
        let (growth, line, points) = if straight.left < bent.left {
            (Growth::Linear, straight, points)
        } else {
            (Growth::Logarithmic, bent, logarithms.as_slice())
        };
        let (least, greatest) = ends(points);
        let rise = line.slope * (greatest - least);
        let grows = rise > Growth::LEAST * mean(points, |point| point.value);
        Some(if grows && line.left <= line.without / 2.0 { growth } else { Growth::Flat })
    }

    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Growth::Flat => "flat",
            Growth::Logarithmic => "logarithmic",
            Growth::Linear => "linear",
        }
    }
}

/// How much the value rises with each one more, over all points: the slope of the line nearest to
/// them. Nothing where all have the same number.
pub fn slope(points: &[Point]) -> Option<f64> {
    Line::through(points).map(|line| line.slope)
}

impl Line {
    fn through(points: &[Point]) -> Option<Line> {
        let (number, value) = (mean(points, |p| p.number), mean(points, |p| p.value));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|point| of(point.number - number, point.value - value)).sum()
        };
        let spread = sum(&|x, _| x * x);
        if spread <= 0.0 {
            return None;
        }
        let slope = sum(&|x, y| x * y) / spread;
        let left = sum(&|x, y| (y - slope * x).powi(2));
        Some(Line { slope, left, without: sum(&|_, y| y * y) })
    }
}

fn mean(points: &[Point], of: impl Fn(&Point) -> f64) -> f64 {
    points.iter().map(of).sum::<f64>() / points.iter().map(|_| 1.0).sum::<f64>().max(1.0)
}

fn ends(points: &[Point]) -> (f64, f64) {
    let numbers = || points.iter().map(|point| point.number);
    (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max))
}

fn different_numbers(points: &[Point]) -> usize {
    let mut numbers: Vec<f64> = points.iter().map(|point| point.number).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMBERS: [f64; 8] = [0.0, 10.0, 25.0, 50.0, 75.0, 100.0, 150.0, 200.0];

    fn points(value: impl Fn(f64) -> f64) -> Vec<Point> {
        NUMBERS.iter().map(|number| Point { number: *number, value: value(*number) }).collect()
    }

    /// The schedulers of Linux 2.4 (Heursch et al. 2001, table 3), in microseconds.
    const TABLE_3: [(f64, f64); 9] = [
        (0.0, 1.0),
        (10.0, 2.3),
        (20.0, 3.4),
        (30.0, 5.8),
        (40.0, 8.5),
        (50.0, 11.1),
        (100.0, 25.7),
        (150.0, 38.8),
        (200.0, 52.1),
    ];

    #[test]
    fn the_scheduler_of_linux_2_4_is_linear_with_260_ns_for_each_task() {
        let points = TABLE_3.map(|(number, value)| Point { number, value });
        assert_eq!(Growth::of(&points), Some(Growth::Linear));
        let slope = slope(&points).expect("there are several numbers");
        assert!((0.255..0.265).contains(&slope), "{slope}");
    }

    #[test]
    fn two_numbers_say_nothing() {
        let at = |number, value| Point { number, value };
        assert_eq!(Growth::of(&[]), None);
        assert_eq!(Growth::of(&[at(0.0, 1.0), at(9.0, 5.0), at(9.0, 6.0)]), None);
        assert_eq!(slope(&[at(3.0, 1.0), at(3.0, 2.0)]), None);
        assert_eq!(slope(&[at(1.0, 1.0), at(3.0, 2.0)]), Some(0.5));
    }

    #[test]
    fn what_falls_or_jumps_about_is_flat() {
        assert_eq!(Growth::of(&points(|n| 1_000.0 - n)), Some(Growth::Flat));
        assert_eq!(
            Growth::of(&points(|n| if (40.0..60.0).contains(&n) { 9.0 } else { 1.0 })),
            Some(Growth::Flat)
        );
        assert_eq!(Growth::of(&points(|_| 0.0)), Some(Growth::Flat));
    }

    /// A level, by how much of it the value rises over all numbers, and what each value is off by,
    /// as a share of that rise.
    fn grown() -> impl Strategy<Value = (f64, f64, [f64; 8])> {
        (1.0..1e6, 0.1..50.0, prop::array::uniform8(-0.02..0.02))
    }

    fn with_noise(points: &mut [Point], amount: f64, noise: &[f64; 8]) {
        for (point, noise) in points.iter_mut().zip(noise) {
            point.value += amount * noise;
        }
    }

    proptest! {
        #[test]
        fn linear_growth_is_seen((level, share, noise) in grown()) {
            let rise = level * share;
            let mut points = points(|n| level + rise * n / 200.0);
            with_noise(&mut points, rise, &noise);
            prop_assert_eq!(Growth::of(&points), Some(Growth::Linear));
            let slope = slope(&points).unwrap();
            prop_assert!((slope - rise / 200.0).abs() <= 0.05 * rise / 200.0);
        }

        #[test]
        fn logarithmic_growth_is_seen((level, share, noise) in grown()) {
            let rise = level * share;
            let mut points = points(|n| level + rise * (1.0 + n).log2() / 201_f64.log2());
            with_noise(&mut points, rise, &noise);
            prop_assert_eq!(Growth::of(&points), Some(Growth::Logarithmic));
        }

        #[test]
        fn chance_is_flat(level in 1.0..1e6, noise in prop::array::uniform8(-0.02..0.02)) {
            let mut points = points(|_| level);
            with_noise(&mut points, level, &noise);
            prop_assert_eq!(Growth::of(&points), Some(Growth::Flat));
        }

        #[test]
        fn the_unit_does_not_matter(
            values in prop::array::uniform8(1.0..1e4),
            unit in prop::sample::select(vec![0.125, 0.5, 2.0, 1024.0]),
        ) {
            let mut points: Vec<Point> = NUMBERS
                .iter()
                .zip(values)
                .map(|(number, value)| Point { number: *number, value })
                .collect();
            let growth = Growth::of(&points);
            for point in &mut points {
                point.value *= unit;
            }
            prop_assert_eq!(Growth::of(&points), growth);
        }
    }
}
