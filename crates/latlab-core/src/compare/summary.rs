//! The verdict on a latency as a whole, and the sentence that states it.

use super::judging::BEYOND;
use super::latency::{Latency, Row};
use super::verdict::Verdict;

impl Latency {
    /// Returns the verdict on all its quantiles together.
    pub fn verdict(&self) -> Verdict {
        let all: Vec<Verdict> =
            self.rows.iter().filter_map(|row| row.judged.as_ref()).map(|j| j.verdict).collect();
        let has = |verdict| all.contains(&verdict);
        match (has(Verdict::Faster), has(Verdict::Slower)) {
            _ if all.is_empty() => Verdict::Inconclusive,
            (false, false) => Verdict::Same,
            (true, false) => Verdict::Faster,
            (false, true) => Verdict::Slower,
            (true, true) => Verdict::Mixed,
        }
    }

    /// Returns the verdict with its figures, or the reason why there is none, to follow "B is".
    pub fn sentence(&self) -> String {
        let same = self.rows_judged(Verdict::Same).join(", ");
        let [faster, slower] =
            [Verdict::Faster, Verdict::Slower].map(|verdict| self.rows_judged(verdict).join(", "));
        let exact = self.rows.iter().filter_map(|row| row.judged.as_ref()).all(|j| j.p.is_none());
        let alike = if exact { "the same" } else { "no difference found" };
        let unjudged = self.unjudged();
        let rest = if same.is_empty() { String::new() } else { format!("; {alike} at {same}") };
        let rest = rest + &unjudged;
        match self.verdict() {
            Verdict::Inconclusive => match self.effect() {
                effect if effect.is_empty() => format!("inconclusive: {}", self.unknown),
                effect => format!("{effect}; inconclusive: {}", self.unknown),
            },
            Verdict::Same => format!("{alike} at {same}{unjudged}"),
            Verdict::Mixed => format!("mixed: better at {faster}; worse at {slower}{rest}"),
            verdict => format!("{}: {faster}{slower}{rest}", verdict.word()),
        }
    }

    /// Returns how much the median and the highest quantile with enough samples differ, whether or
    /// not by chance.
    pub fn effect(&self) -> String {
        let enough = |row: &&Row| {
            row.judged.is_some() || row.beyond.is_some_and(|samples| samples >= BEYOND)
        };
        let rows = self.judged_rows().into_iter().map(|(row, _)| &self.rows[row]);
        let rows: Vec<&Row> = rows.filter(enough).collect();
        let ends = rows.first().into_iter().chain(rows.last().filter(|_| rows.len() > 1));
        let change = |row: &&Row| {
            let length = longer(row.ratio?);
            Some(format!("{} {length} ({} → {})", row.name, row.a, row.b))
        };
        ends.filter_map(change).collect::<Vec<_>>().join(", ")
    }

    /// Names the quantiles that differ but have too few samples for a verdict, with their ratios; empty where
    /// there are none.
    fn unjudged(&self) -> String {
        let rows = self.judged_rows().into_iter().map(|(row, _)| &self.rows[row]);
        let rows = rows.filter(|row| row.judged.is_none() && row.a != row.b);
        let with_ratio = |row: &Row| Some(format!("{} {}", row.name, by(row.ratio?)));
        let names: Vec<String> = rows.filter_map(with_ratio).collect();
        if names.is_empty() {
            return String::new();
        }
        format!("; not judged, too few samples in each run: {}", names.join(", "))
    }

    /// Returns the names of the rows with this verdict; if they differ, with the difference.
    fn rows_judged(&self, verdict: Verdict) -> Vec<String> {
        let mut names = Vec::new();
        for row in &self.rows {
            let Some(judged) = row.judged.as_ref().filter(|judged| judged.verdict == verdict)
            else {
                continue;
            };
            if verdict == Verdict::Same {
                names.push(row.name.clone());
                continue;
            }
            let interval = judged.ratio.map(|i| format!(" ({} to {})", by(i.low), by(i.high)));
            let difference = row.ratio.map_or_else(
                || format!("{} to {}", row.a, row.b),
                |ratio| format!("{}{}", by(ratio), interval.unwrap_or_default()),
            );
            names.push(format!("{} {difference}", row.name));
        }
        names
    }
}

/// Says how much longer a time is than another, by their ratio.
fn longer(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match ratio {
        _ if ratio >= 2.0 => format!("{ratio:.1} times as long"),
        _ if percent >= 0.5 => format!("{percent:.0} % longer"),
        _ if percent <= -0.5 => format!("{:.0} % shorter", -percent),
        _ => "equally long".to_owned(),
    }
}

/// Formats a ratio as a relative change (`+5.0 %`), as a factor (`×3`) from 2 on, and as a divisor
/// (`÷ 400`) down from a hundredth.
pub fn by(ratio: f64) -> String {
    if ratio > 0.0 && ratio <= 0.01 {
        return format!("÷ {:.0}", 1.0 / ratio);
    }
    if ratio >= 2.0 {
        return format!("×{ratio:.3}");
    }
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 0.995 { 2 } else { usize::from(percent.abs() < 9.95) };
    let text = format!("{percent:+.digits$}");
    format!("{} %", text.replace('-', "−"))
}
