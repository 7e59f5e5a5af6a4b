//! Sentences about explanations that text and pages share.

use super::{grouped, printable};
use latlab_core::cause::Cause;
use latlab_core::explain::verify;
use latlab_core::record::Record;
use latlab_core::record::explained::{Explained, Share};
use latlab_core::time::Nanos;
use latlab_core::verdict;

/// Returns the number of late wake-ups and their total latency as a sentence. `wake_ups` is 0 where
/// those in time are not counted, and `above` is 0 until a threshold is known.
pub fn lateness(explained: &Explained, shown: impl Fn(Nanos) -> String) -> String {
    let wake_ups = grouped(explained.wake_ups);
    let above = shown(explained.above);
    let were = if explained.late == 1 { "wake-up was" } else { "wake-ups were" };
    let (total, late) = (shown(explained.total), grouped(explained.late));
    match (explained.late, explained.wake_ups) {
        _ if verdict::is_of_gaps(explained) => {
            format!("{late} of {wake_ups} gaps were longer than {above}, {total} in all")
        }
        (0, 0) if explained.above == Nanos(0) => "no wake-ups observed".to_owned(),
        (0, 0) => format!("no wake-up was later than {above}"),
        (0, _) => format!("none of {wake_ups} wake-ups was later than {above}"),
        (_, 0) => format!("{late} {were} later than {above}, {total} in all"),
        _ => format!("{late} of {wake_ups} wake-ups were later than {above}, {total} in all"),
    }
}

/// Returns a part of a whole as a percentage.
#[expect(clippy::cast_precision_loss, reason = "a share has three digits")]
pub fn share(part: Nanos, whole: Nanos) -> String {
    format!("{:.1} %", 100.0 * part.0 as f64 / whole.0.max(1) as f64)
}

/// Returns the culprit of a cause and its function, as far as they are known. That of a lock called
/// for it.
pub fn culprit_and_function(cause: &str, culprit: &str, function: Option<&str>) -> String {
    match function {
        None => printable(culprit),
        Some(function) if culprit.is_empty() => printable(function),
        Some(function) if *cause == Cause::Lock => {
            printable(&format!("{culprit}, called from {function}"))
        }
        Some(function) => printable(&format!("{culprit} in {function}")),
    }
}

/// Returns the culprit of a segment of this length, qualified by the record: its function may be
/// only the place where the CPU was found, and the segment may be the host's.
pub fn culprit_in(
    record: &Record,
    (cause, culprit): (&str, &str),
    function: Option<&str>,
    length: Nanos,
) -> String {
    let only_found = *cause == Cause::NonPreemptible && record.machine.runs_to_scheduling_point();
    let named = match function.filter(|_| only_found) {
        Some(function) => printable(&format!("{culprit}, found in {function}")),
        None => culprit_and_function(cause, culprit, function),
    };
    let hosted = verdict::probably_host(record, cause, culprit, length);
    let hosted = hosted.map(|_| "probably the host".to_owned());
    let parts = [(!named.is_empty()).then_some(named), hosted];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the qualifications of a record's causes, a sentence each: which are probably the host's
/// and why, what the functions of non-preemptible sections mean, and whether the plugin has seen
/// the same.
pub fn notes(record: &Record, shown: impl Fn(Nanos) -> String) -> Vec<String> {
    let causes = record.explained.iter().flat_map(|explained| &explained.causes);
    let suspicion = |share: &Share| {
        let why = verdict::probably_host(record, &share.cause, &share.culprit, share.worst)?;
        let who = if share.culprit.is_empty() { &share.cause } else { &share.culprit };
        let (who, worst) = (printable(who), shown(share.worst));
        Some(format!("{who}: {worst} is probably the host's ({})", why.reason(&shown)))
    };
    let all = causes.filter_map(suspicion).chain(verdict::note_on_functions(record));
    all.chain(verified(record, &shown(verify::TOLERANCE))).collect()
}

/// Whether the recorder and the plugin agree on late wake-ups that both have explained.
fn verified(record: &Record, tolerance: &str) -> Option<String> {
    let (both, disagreements) = verify::verify(record);
    let agreed = format!("{both} late wake-ups: the recorder and the plugin agree to {tolerance}");
    let disagreed =
        || format!("the recorder and the plugin disagree in {} places", disagreements.len());
    (both > 0).then(|| if disagreements.is_empty() { agreed } else { disagreed() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::explain::terms::Term;
    use latlab_measure::cause::CAUSES;
    use latlab_testing::sample_explained;

    #[test]
    fn each_cause_is_in_a_term_or_outside_the_kernel() {
        let outside = [
            "host",
            "idle-exit",
            "lock",
            "overrun",
            "page-fault",
            "stalled",
            "stopped",
            "unreported",
        ];
        for cause in CAUSES {
            let name = cause.about.name;
            assert_ne!(Term::of(name).is_some(), outside.contains(&name), "{name}");
        }
    }

    #[test]
    fn verdict_has_an_answer_to_each_cause() {
        let mut record = sample_explained::record();
        let explained = record.explained.as_mut().expect("it is explained");
        explained.causes.truncate(1);
        explained.unexplained = Nanos(0);
        for cause in CAUSES {
            let explained = record.explained.as_mut().expect("it is explained");
            cause.about.name.clone_into(&mut explained.causes[0].cause);
            let lines = verdict::leading_causes(&record);
            let [line] = lines.as_slice() else { panic!("{}: {lines:?}", cause.about.name) };
            let unknown = format!("% {}: ", cause.about.name);
            assert!(!line.contains(&unknown) && !line.contains("--verbose"), "{line}");
        }
    }
}
