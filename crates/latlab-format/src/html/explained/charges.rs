//! The causes of one late wake-up in one line.

use crate::explained::culprit_in;
use crate::micro;
use latlab_core::explain::names::culprit;
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;

/// Most causes that are named.
const MOST: usize = 4;

/// Returns the largest causes of a sample, each with the time charged to it in all, and the rest.
pub(in crate::html) fn largest(record: &Record, sample: &Sample) -> String {
    let mut sums: Vec<(String, Nanos)> = Vec::new();
    for charge in &sample.causes {
        let who = (&*charge.cause, &*charge.culprit);
        let who = culprit_in(record, who, culprit(&charge.stack), charge.ns);
        let who = if who.is_empty() { String::new() } else { format!(" ({who})") };
        let name = format!("{}{who}", charge.cause);
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = *sum + charge.ns,
            None => sums.push((name, charge.ns)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let others = sums.split_off(sums.len().min(MOST));
    let mut parts: Vec<String> =
        sums.iter().map(|(name, sum)| format!("{} {name}", micro(*sum))).collect();
    if !others.is_empty() {
        let sum = others.iter().fold(Nanos(0), |sum, (_, one)| sum + *one);
        let plural = if others.len() == 1 { "" } else { "s" };
        parts.push(format!("{} in {} other{plural}", micro(sum), others.len()));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::record::Charge;
    use latlab_testing::sample_explained;

    #[test]
    fn causes_are_summed_and_the_small_ones_together() {
        let record = sample_explained::record();
        let mut sample = record.worst[0].clone();
        let charge = |nth: u64| Charge {
            cause: "softirq".to_owned(),
            from: Nanos(0),
            ns: Nanos(10 - nth / 2),
            culprit: format!("vector {}", nth / 2),
            stack: Vec::new(),
        };
        sample.causes = (0..12).map(charge).collect();
        let words = "20 ns softirq (vector 0), 18 ns softirq (vector 1), 16 ns softirq (vector 2), \
                     14 ns softirq (vector 3), 22 ns in 2 others";
        assert_eq!(largest(&record, &sample), words);
    }
}
