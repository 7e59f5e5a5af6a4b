//! Tests whether late samples are evenly distributed over runs, CPUs and time. Records do not keep
//! the order of samples; only runs and time lines can be tested.

use crate::random::Random;
use crate::record::Series;
use crate::time::Nanos;

/// Number of random draws of each test.
const DRAWN: usize = 999;

/// Number of equal parts into which a time line is divided.
const PARTS: usize = 10;

/// Returns the probability that late samples are as unevenly distributed over runs and CPUs by
/// chance: (late samples, all samples) of each series.
#[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
pub(super) fn over_runs(late: &[(u64, u64)]) -> f64 {
    let total: u64 = late.iter().map(|(late, _)| late).sum();
    let all: u64 = late.iter().map(|(_, all)| all).sum();
    let expected: Vec<f64> =
        late.iter().map(|(_, own)| total as f64 * *own as f64 / (all.max(1)) as f64).collect();
    let mut ends: Vec<f64> = expected.clone();
    (1..ends.len()).for_each(|n| ends[n] += ends[n - 1]);
    let observed = uneven(&late.iter().map(|(late, _)| *late).collect::<Vec<_>>(), &expected);
    probability(observed, |random| {
        let mut counts = vec![0; late.len()];
        for _ in 0..total {
            let place = random.share() * total as f64;
            counts[ends.partition_point(|end| *end <= place).min(late.len() - 1)] += 1;
        }
        uneven(&counts, &expected)
    })
}

/// Returns, for each interval of a time line with samples, whether its worst is above the
/// threshold.
pub(super) fn above(series: &Series, threshold: Nanos) -> Vec<bool> {
    sampled(series).map(|(_, worst)| worst > threshold).collect()
}

/// Returns, for each interval of a time line with samples, whether it contains any of these
/// moments.
pub(super) fn holding(series: &Series, moments: &[Nanos]) -> Vec<bool> {
    let width = series.timeline.width();
    let holds = |from: Nanos| moments.iter().any(|at| (from..from + width).contains(at));
    sampled(series).map(|(from, _)| holds(from)).collect()
}

fn sampled(series: &Series) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
    series.timeline.points().filter(|(_, worst)| *worst > Nanos(0))
}

/// Returns the probability that late intervals are as unevenly distributed over the parts of the
/// time lines, or follow one another as often, by chance. None where the time lines are too short
/// or too full.
pub(super) fn over_time(lines: &[Vec<bool>]) -> Option<f64> {
    let late = lines.iter().flatten().filter(|late| **late).count();
    let all: usize = lines.iter().map(Vec::len).sum();
    if lines.iter().any(|line| line.len() < 2 * PARTS) || late == 0 || late > all / 2 {
        return None;
    }
    let both = [unevenness, in_a_row].map(|figure: fn(&[bool]) -> f64| {
        let sum = |lines: &[Vec<bool>]| lines.iter().map(|line| figure(line)).sum::<f64>();
        let mut shuffled = lines.to_vec();
        probability(sum(lines), |random| {
            for line in &mut shuffled {
                shuffle(line, random);
            }
            sum(&shuffled)
        })
    });
    // Bonferroni correction of two tests.
    Some((2.0 * both[0].min(both[1])).min(1.0))
}

/// Returns how unevenly the late intervals are distributed over the parts of a line.
#[expect(clippy::cast_precision_loss, reason = "a time line has 1024 places")]
fn unevenness(line: &[bool]) -> f64 {
    let late = line.iter().filter(|late| **late).count() as f64;
    let mut counts = vec![0; PARTS];
    let mut expected = vec![0.0; PARTS];
    for (place, is_late) in line.iter().enumerate() {
        let part = place * PARTS / line.len();
        counts[part] += u64::from(*is_late);
        expected[part] += late / line.len() as f64;
    }
    uneven(&counts, &expected)
}

/// Counts the late intervals that follow another.
#[expect(clippy::cast_precision_loss, reason = "a time line has 1024 places")]
fn in_a_row(line: &[bool]) -> f64 {
    line.windows(2).filter(|two| two[0] && two[1]).count() as f64
}

fn shuffle(line: &mut [bool], random: &mut Random) {
    for nth in (1..line.len()).rev() {
        line.swap(nth, random.below(nth + 1));
    }
}

/// Returns Pearson's chi-square statistic.
#[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
fn uneven(counts: &[u64], expected: &[f64]) -> f64 {
    let parts = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    parts.map(|(count, expected)| (*count as f64 - expected).powi(2) / expected).sum()
}

/// Returns the share of random draws that reach the observed value.
#[expect(clippy::cast_precision_loss, reason = "a thousand are drawn")]
fn probability(observed: f64, mut draw: impl FnMut(&mut Random) -> f64) -> f64 {
    let mut random = Random::new(4);
    let as_much = (0..DRAWN).filter(|_| draw(&mut random) >= observed - 1e-9).count();
    (as_much + 1) as f64 / (DRAWN + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Timeline;

    fn series(late: impl Fn(u64) -> bool) -> Series {
        let mut timeline = Timeline::new();
        for n in 0..1000u64 {
            let latency = if late(n) { 900 } else { 100 };
            timeline.record(Nanos(n << 20), Nanos(latency));
        }
        Series { timeline, ..Series::default() }
    }

    #[test]
    fn random_samples_pass_and_bursts_and_trends_fail() {
        let mut random = Random::new(11);
        let places: Vec<bool> = (0..1000).map(|_| random.below(20) == 0).collect();
        let by_chance = series(|n| places[usize::try_from(n).unwrap()]);
        let over_time = |series: &Series| over_time(&[above(series, Nanos(500))]);
        assert!(over_time(&by_chance).unwrap() > 0.1);
        let burst = series(|n| n % 100 < 5);
        assert!(over_time(&burst).unwrap() < 0.01);
        let at_the_end = series(|n| n > 800 && n % 4 == 0);
        assert!(over_time(&at_the_end).unwrap() < 0.01);
        let always = series(|_| true);
        assert_eq!(over_time(&always), None);
    }

    #[test]
    fn moments_are_found_in_their_intervals() {
        let late = series(|n| n % 100 < 5);
        let moments: Vec<Nanos> =
            (0..1000).filter(|n| n % 100 < 5).map(|n| Nanos(n << 20)).collect();
        assert_eq!(holding(&late, &moments), above(&late, Nanos(500)));
        assert!(holding(&late, &[Nanos((7 << 20) - 1)])[6]);
    }

    #[test]
    fn run_with_more_late_samples_than_the_others_fails() {
        assert!(over_runs(&[(20, 1000), (24, 1000), (17, 1000), (39, 2000)]) > 0.1);
        assert!(over_runs(&[(20, 1000), (60, 1000), (17, 1000), (39, 2000)]) < 0.01);
        assert!((over_runs(&[(20, 1000)]) - 1.0).abs() < 1e-9);
    }
}
