//! Explanations of late wake-ups: of causes that are known, of tasks that were there before, and
//! what is made of them.

mod microscope;
mod shown;
mod truth;
mod watched;

use latlab_core::record::Record;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;

/// What a record explains. Of each of its worst wake-ups, charges and rest are the latency.
fn explained(record: &Record) -> &Explained {
    let explained = record.explained.as_ref().expect("it is explained");
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

/// How much is charged to this cause, whoever is to blame.
fn charged(explained: &Explained, causes: &[&str]) -> Nanos {
    let shares = explained.causes.iter().filter(|share| causes.contains(&share.cause.as_str()));
    Nanos(shares.map(|share| share.total.0).sum())
}
