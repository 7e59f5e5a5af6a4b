//! Explanations of late wake-ups: of known causes, of tasks already running, and their reports.

mod always;
mod file;
mod kernels;
mod microscope;
mod running;
mod shown;
mod throttles;
mod truth;
mod waited;
mod watched;

use latlab_core::record::Record;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

/// Returns the explanation of a record. Asserts that charges and remainder of each of the worst
/// samples add up to its latency.
fn explained(record: &Record) -> &Explained {
    let explained = record.explained.as_ref().expect("the record is explained");
    for sample in &record.worst {
        let charged: u64 = sample.causes.iter().map(|charge| charge.ns.0).sum();
        let rest = sample.unexplained.expect("each of the worst is explained");
        assert_eq!(Nanos(charged) + rest, sample.latency, "{sample:?}");
    }
    let shares: u64 = explained.causes.iter().map(|share| share.total.0).sum();
    assert_eq!(Nanos(shares) + explained.unexplained, explained.total, "{explained:?}");
    assert_eq!(record.worst.is_empty(), explained.late == 0, "{explained:?}");
    explained
}

/// Returns the time charged to these causes, whatever the culprit.
fn charged(explained: &Explained, causes: &[&str]) -> Nanos {
    let shares = explained.causes.iter().filter(|share| causes.contains(&share.cause.as_str()));
    Nanos(shares.map(|share| share.total.0).sum())
}
