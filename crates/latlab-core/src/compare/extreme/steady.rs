//! Whether late samples come as they please, or some runs, CPUs or times have more of them: without
//! the order of samples, from what their runs and time lines still say.

use crate::random::Random;
use crate::record::Series;
use crate::time::Nanos;

/// How many times chance is asked.
const DRAWN: usize = 999;

/// Into how many stretches a time line is cut.
const STRETCHES: usize = 10;

/// The probability that late samples would be as unevenly spread over runs and CPUs, were each of
/// them as likely to have one as its share of all samples says: late ones, and all, of each.
#[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
pub(super) fn over_runs(late: &[(u64, u64)]) -> f64 {
    let total: u64 = late.iter().map(|(late, _)| late).sum();
    let all: u64 = late.iter().map(|(_, all)| all).sum();
    let expected: Vec<f64> =
        late.iter().map(|(_, own)| total as f64 * *own as f64 / (all.max(1)) as f64).collect();
    let mut ends: Vec<f64> = expected.clone();
    (1..ends.len()).for_each(|n| ends[n] += ends[n - 1]);
    let seen = uneven(&late.iter().map(|(late, _)| *late).collect::<Vec<_>>(), &expected);
    likelihood(seen, |random| {
        let mut counts = vec![0; late.len()];
        for _ in 0..total {
            let place = random.share() * total as f64;
            counts[ends.partition_point(|end| *end <= place).min(late.len() - 1)] += 1;
        }
        uneven(&counts, &expected)
    })
}

/// Of each interval of a time line that has samples, whether its worst is above the threshold.
pub(super) fn above(series: &Series, threshold: Nanos) -> Vec<bool> {
    sampled(series).map(|(_, worst)| worst > threshold).collect()
}

/// Of each interval of a time line that has samples, whether any of these moments lies in it.
pub(super) fn holding(series: &Series, moments: &[Nanos]) -> Vec<bool> {
    let width = series.timeline.width();
    let holds = |from: Nanos| moments.iter().any(|at| (from..from + width).contains(at));
    sampled(series).map(|(from, _)| holds(from)).collect()
}

fn sampled(series: &Series) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
    series.timeline.points().filter(|(_, worst)| *worst > Nanos(0))
}

/// The same over time: late intervals of time lines, over stretches of each, and how many of them
/// follow one another. None where the time lines are too short or too full to tell.
pub(super) fn over_time(lines: &[Vec<bool>]) -> Option<f64> {
    let late = lines.iter().flatten().filter(|late| **late).count();
    let all: usize = lines.iter().map(Vec::len).sum();
    if lines.iter().any(|line| line.len() < 2 * STRETCHES) || late == 0 || late > all / 2 {
        return None;
    }
    let both = [stretched, in_a_row].map(|figure: fn(&[bool]) -> f64| {
        let sum = |lines: &[Vec<bool>]| lines.iter().map(|line| figure(line)).sum::<f64>();
        let mut shuffled = lines.to_vec();
        likelihood(sum(lines), |random| {
            for line in &mut shuffled {
                shuffle(line, random);
            }
            sum(&shuffled)
        })
    });
    // Of two probabilities the lesser comes twice as easily.
    Some((2.0 * both[0].min(both[1])).min(1.0))
}

/// How unevenly the late intervals of a line lie over its stretches.
#[expect(clippy::cast_precision_loss, reason = "a time line has 1024 places")]
fn stretched(line: &[bool]) -> f64 {
    let late = line.iter().filter(|late| **late).count() as f64;
    let mut counts = vec![0; STRETCHES];
    let mut expected = vec![0.0; STRETCHES];
    for (place, is_late) in line.iter().enumerate() {
        let stretch = place * STRETCHES / line.len();
        counts[stretch] += u64::from(*is_late);
        expected[stretch] += late / line.len() as f64;
    }
    uneven(&counts, &expected)
}

/// How often a late interval follows another.
#[expect(clippy::cast_precision_loss, reason = "a time line has 1024 places")]
fn in_a_row(line: &[bool]) -> f64 {
    line.windows(2).filter(|two| two[0] && two[1]).count() as f64
}

fn shuffle(line: &mut [bool], random: &mut Random) {
    for nth in (1..line.len()).rev() {
        line.swap(nth, random.below(nth + 1));
    }
}

/// Pearson's sum: how far counts are from what was expected.
#[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
fn uneven(counts: &[u64], expected: &[f64]) -> f64 {
    let parts = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    parts.map(|(count, expected)| (*count as f64 - expected).powi(2) / expected).sum()
}

/// How often chance gives as much as was seen.
#[expect(clippy::cast_precision_loss, reason = "a thousand are drawn")]
fn likelihood(seen: f64, mut draw: impl FnMut(&mut Random) -> f64) -> f64 {
    let mut random = Random::new(4);
    let as_much = (0..DRAWN).filter(|_| draw(&mut random) >= seen - 1e-9).count();
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
    fn what_comes_by_chance_is_steady_and_a_burst_or_a_trend_is_not() {
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
    fn moments_lie_in_their_intervals() {
        let late = series(|n| n % 100 < 5);
        let moments: Vec<Nanos> =
            (0..1000).filter(|n| n % 100 < 5).map(|n| Nanos(n << 20)).collect();
        assert_eq!(holding(&late, &moments), above(&late, Nanos(500)));
        assert!(holding(&late, &[Nanos((7 << 20) - 1)])[6]);
    }

    #[test]
    fn a_run_with_more_than_its_share_is_found() {
        assert!(over_runs(&[(20, 1000), (24, 1000), (17, 1000), (39, 2000)]) > 0.1);
        assert!(over_runs(&[(20, 1000), (60, 1000), (17, 1000), (39, 2000)]) < 0.01);
        assert!((over_runs(&[(20, 1000)]) - 1.0).abs() < 1e-9);
    }
}
