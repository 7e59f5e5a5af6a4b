//! Header of a report: a headline for each latency and scan, and the records.

use super::headline::{self, Headline};
use super::scans;
use crate::picture::NamedRecord;
use latlab_core::machine::TimeDomain;
use latlab_core::time::Nanos;
use maud::{Markup, html};
use std::time::{Duration, UNIX_EPOCH};

/// The header of a report.
pub(super) fn header(sources: &[NamedRecord]) -> Markup {
    let headlines = headline::comparison_headlines(sources)
        .into_iter()
        .chain(headline::probe_headlines(sources))
        .chain(headline::cause_headlines(sources))
        .chain(headline::proof_headlines(sources))
        .chain(headline::path_headlines(sources))
        .chain(scans::headlines(sources));
    html! {
        header {
            h1 { "Latency report" }
            @for Headline { subject, text, notes } in headlines {
                p class="verdict" {
                    span { (subject) } " " (with_code(&text))
                    @for note in notes { " " small { (with_code(&note)) } }
                }
            }
            @for source in sources {
                p class="origin" {
                    (origin(source))
                }
            }
            (time_domain(sources))
        }
    }
}

/// Name, kernel, start and tool of a record; of another tool's result some are not known.
fn origin(NamedRecord { name, record, .. }: &NamedRecord) -> String {
    let start = (record.started > Nanos(0)).then(|| date(record.started));
    let kernel = Some(record.machine.kernel.clone()).filter(|kernel| !kernel.is_empty());
    let parts = [Some(name.clone()), kernel, start, Some(record.tool.clone())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A text whose parts in backquotes are code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (n, part) in text.split('`').enumerate() {
            @if n % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A note on the records' kind of time, unless it is that of a real machine.
pub(super) fn time_domain(sources: &[NamedRecord]) -> Markup {
    let note = match sources.first().map(|source| source.record.machine.time_domain) {
        Some(TimeDomain::Instructions) => {
            "Times are instruction counts of a simulated machine: exactly repeatable, but not the \
             times of any real machine."
        }
        Some(TimeDomain::Virtualized) => {
            "Measured in a virtual machine that latlab started: the host contributes to every \
             latency."
        }
        Some(TimeDomain::Silicon) | None => return Markup::default(),
    };
    html! { p class="note" { (note) } }
}

/// Returns day and minute of a wall-clock time since 1970, in UTC.
fn date(since_1970: Nanos) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(since_1970.0);
    let text = humantime::format_rfc3339_seconds(time).to_string();
    format!("{} {} UTC", &text[..10], &text[11..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_matches_calendar() {
        let of = |seconds| date(Nanos::from_secs(seconds));
        assert_eq!(of(0), "1970-01-01 00:00 UTC");
        assert_eq!(of(1_709_210_100), "2024-02-29 12:35 UTC");
        assert_eq!(of(1_795_172_640), "2026-11-20 11:04 UTC");
    }
}
