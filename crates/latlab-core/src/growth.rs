//! Growth of a time with a number: flat, logarithmic or linear.

/// The growth that fits best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// None, or not distinguishable from noise.
    Flat,
    /// The same increase for each doubling of the number.
    Logarithmic,
    /// The same increase for each increment of the number.
    Linear,
}

/// A number, such as a number of tasks, and the value measured for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthPoint {
    /// The number; at least 0.
    pub number: f64,
    /// The measured value.
    pub value: f64,
}

/// Least-squares line through some points.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    /// Increase of the value per increment of the number.
    slope: f64,
    /// Residual sum of squares, and the same for slope 0.
    residual: f64,
    without_slope: f64,
}

impl Growth {
    /// An increase below this share of the mean is no growth.
    const LEAST: f64 = 0.05;

    /// Classifies the growth of some points. None with fewer than three different numbers, which
    /// any kind of growth would fit.
    ///
    /// It is flat if the fitted increase from the smallest to the largest number is below a
    /// twentieth of the mean, or if no kind of growth explains at least half of the variance.
    pub fn of(points: &[GrowthPoint]) -> Option<Growth> {
        if different_numbers(points) < 3 {
            return None;
        }
        let doublings =
            |point: &GrowthPoint| GrowthPoint { number: (1.0 + point.number).log2(), ..*point };
        let logarithms: Vec<GrowthPoint> = points.iter().map(doublings).collect();
        let (straight, bent) = (Fit::through(points)?, Fit::through(&logarithms)?);
        let (growth, fit, points) = if straight.residual < bent.residual {
            (Growth::Linear, straight, points)
        } else {
            (Growth::Logarithmic, bent, logarithms.as_slice())
        };
        let (smallest, largest) = ends(points);
        let rise = fit.slope * (largest - smallest);
        let grows = rise > Growth::LEAST * mean(points, |point| point.value);
        let explains = fit.residual <= fit.without_slope / 2.0;
        Some(if grows && explains { growth } else { Growth::Flat })
    }

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Growth::Flat => "flat",
            Growth::Logarithmic => "logarithmic",
            Growth::Linear => "linear",
        }
    }
}

/// Returns the least-squares slope: the increase of the value per increment of the number. None if
/// all numbers are equal.
pub fn slope(points: &[GrowthPoint]) -> Option<f64> {
    Fit::through(points).map(|fit| fit.slope)
}

impl Fit {
    fn through(points: &[GrowthPoint]) -> Option<Fit> {
        let (number, value) = (mean(points, |p| p.number), mean(points, |p| p.value));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|point| of(point.number - number, point.value - value)).sum()
        };
        let spread = sum(&|x, _| x * x);
        if spread <= 0.0 {
            return None;
        }
        let slope = sum(&|x, y| x * y) / spread;
        let residual = sum(&|x, y| (y - slope * x).powi(2));
        Some(Fit { slope, residual, without_slope: sum(&|_, y| y * y) })
    }
}

fn mean(points: &[GrowthPoint], of: impl Fn(&GrowthPoint) -> f64) -> f64 {
    points.iter().map(of).sum::<f64>() / points.iter().map(|_| 1.0).sum::<f64>().max(1.0)
}

fn ends(points: &[GrowthPoint]) -> (f64, f64) {
    let numbers = || points.iter().map(|point| point.number);
    (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max))
}

fn different_numbers(points: &[GrowthPoint]) -> usize {
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

    fn points(value: impl Fn(f64) -> f64) -> Vec<GrowthPoint> {
        NUMBERS
            .iter()
            .map(|number| GrowthPoint { number: *number, value: value(*number) })
            .collect()
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
    fn growth_of_linux_2_4_scheduler_is_linear_with_260_ns_per_task() {
        let points = TABLE_3.map(|(number, value)| GrowthPoint { number, value });
        assert_eq!(Growth::of(&points), Some(Growth::Linear));
        let slope = slope(&points).expect("the numbers differ");
        assert!((0.255..0.265).contains(&slope), "{slope}");
    }

    #[test]
    fn growth_of_fewer_than_three_numbers_is_unknown() {
        let at = |number, value| GrowthPoint { number, value };
        assert_eq!(Growth::of(&[]), None);
        assert_eq!(Growth::of(&[at(0.0, 1.0), at(9.0, 5.0), at(9.0, 6.0)]), None);
        assert_eq!(slope(&[at(3.0, 1.0), at(3.0, 2.0)]), None);
        assert_eq!(slope(&[at(1.0, 1.0), at(3.0, 2.0)]), Some(0.5));
    }

    #[test]
    fn falling_and_erratic_values_are_flat() {
        assert_eq!(Growth::of(&points(|n| 1_000.0 - n)), Some(Growth::Flat));
        assert_eq!(
            Growth::of(&points(|n| if (40.0..60.0).contains(&n) { 9.0 } else { 1.0 })),
            Some(Growth::Flat)
        );
        assert_eq!(Growth::of(&points(|_| 0.0)), Some(Growth::Flat));
    }

    /// Initial value, relative increase over all numbers, and the error of each value as a share of
    /// that increase.
    fn grown() -> impl Strategy<Value = (f64, f64, [f64; 8])> {
        (1.0..1e6, 0.1..50.0, prop::array::uniform8(-0.02..0.02))
    }

    fn with_noise(points: &mut [GrowthPoint], amount: f64, noise: &[f64; 8]) {
        for (point, noise) in points.iter_mut().zip(noise) {
            point.value += amount * noise;
        }
    }

    proptest! {
        #[test]
        fn linear_growth_is_recognized((level, share, noise) in grown()) {
            let rise = level * share;
            let mut points = points(|n| level + rise * n / 200.0);
            with_noise(&mut points, rise, &noise);
            prop_assert_eq!(Growth::of(&points), Some(Growth::Linear));
            let slope = slope(&points).unwrap();
            prop_assert!((slope - rise / 200.0).abs() <= 0.05 * rise / 200.0);
        }

        #[test]
        fn logarithmic_growth_is_recognized((level, share, noise) in grown()) {
            let rise = level * share;
            let mut points = points(|n| level + rise * (1.0 + n).log2() / 201_f64.log2());
            with_noise(&mut points, rise, &noise);
            prop_assert_eq!(Growth::of(&points), Some(Growth::Logarithmic));
        }

        #[test]
        fn noise_is_flat(level in 1.0..1e6, noise in prop::array::uniform8(-0.02..0.02)) {
            let mut points = points(|_| level);
            with_noise(&mut points, level, &noise);
            prop_assert_eq!(Growth::of(&points), Some(Growth::Flat));
        }

        #[test]
        fn growth_is_independent_of_the_unit(
            values in prop::array::uniform8(1.0..1e4),
            unit in prop::sample::select(vec![0.125, 0.5, 2.0, 1024.0]),
        ) {
            let mut points: Vec<GrowthPoint> = NUMBERS
                .iter()
                .zip(values)
                .map(|(number, value)| GrowthPoint { number: *number, value })
                .collect();
            let growth = Growth::of(&points);
            for point in &mut points {
                point.value *= unit;
            }
            prop_assert_eq!(Growth::of(&points), growth);
        }
    }
}
