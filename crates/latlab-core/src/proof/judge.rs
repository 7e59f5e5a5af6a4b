//! Whether a remedy helped, by the statistics of `compare`.

use crate::compare::turns::{self, Look};
use crate::compare::{self, CompareError, Latency, Row, Verdict};
use crate::record::Record;
use crate::record::proofs::{Effect, Judged, JudgedFigure};

/// The name of the worst sample as a figure.
const WORST: &str = "worst";

/// A smaller change of the ratio is not worth a setting, even where it is real.
const NOTICEABLE: f64 = 0.05;

/// Judges one of `remedies` that were measured in the same turns. `without` and `with` have the
/// runs so far; each will have at most `most`.
///
/// At most 1 of 40 sets of remedies without any effect has one for which an effect is claimed: the
/// error rate is divided among the remedies.
pub fn judge(
    without: &[Record],
    with: &[Record],
    most: usize,
    remedies: usize,
) -> Result<Judged, CompareError> {
    let Look { level, paired } =
        turns::look(with.len(), most).unwrap_or_else(|| turns::last_look(most));
    #[expect(clippy::cast_precision_loss, reason = "there are a few")]
    let level = level / remedies.max(1) as f64;
    let comparison = compare::compare_lateness_at(without, with, Look { level, paired })?;
    let latencies = comparison.latencies.iter().zip(comparison.latency_names());
    let figures = latencies.flat_map(|(latency, name)| figures_of(latency, &name));
    let figures: Vec<JudgedFigure> = figures.collect();
    Ok(Judged { effect: effect(&figures), figures })
}

/// The judged figures of the latency with this name, the worst first.
fn figures_of(latency: &Latency, name: &str) -> Vec<JudgedFigure> {
    let figures = latency.rows.iter().filter_map(|row| figure(name, row));
    let mut figures: Vec<JudgedFigure> = figures.collect();
    figures.sort_by_key(|figure| figure.name != WORST);
    figures
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with three digits")]
fn figure(probe: &str, row: &Row) -> Option<JudgedFigure> {
    let judged = row.judged.as_ref()?;
    // 0 ns counts as 1 ns, as in comparisons.
    let plain = row.b.0.max(1) as f64 / row.a.0.max(1) as f64;
    let ratio = row.ratio.filter(|ratio| *ratio > 0.0).unwrap_or(plain);
    let effect = match judged.verdict {
        Verdict::Faster if ratio <= 1.0 - NOTICEABLE => Effect::Helped,
        Verdict::Slower if ratio >= 1.0 + NOTICEABLE => Effect::Harmed,
        _ => Effect::NoneShown,
    };
    let name = if row.name == "max" { WORST.to_owned() } else { row.name.clone() };
    Some(JudgedFigure {
        probe: probe.to_owned(),
        name,
        without: row.a,
        with: row.b,
        ratio,
        interval: judged.ratio,
        p: judged.p,
        effect,
    })
}

/// The effect on all figures together.
fn effect(figures: &[JudgedFigure]) -> Effect {
    let has = |effect| figures.iter().any(|figure| figure.effect == effect);
    match (has(Effect::Helped), has(Effect::Harmed)) {
        _ if figures.is_empty() => Effect::Unknown,
        (true, false) => Effect::Helped,
        (false, false) => Effect::NoneShown,
        (false, true) => Effect::Harmed,
        (true, true) => Effect::Mixed,
    }
}
