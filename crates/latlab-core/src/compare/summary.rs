//! The verdict on a latency as a whole, and the sentence that states it.

use super::latency::Latency;
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
        let rest = if same.is_empty() { String::new() } else { format!("; {alike} at {same}") };
        match self.verdict() {
            Verdict::Inconclusive => format!("inconclusive: {}", self.unknown),
            Verdict::Same => format!("{alike} at {same}"),
            Verdict::Mixed => format!("mixed: {faster} improved; {slower} regressed{rest}"),
            verdict => format!("{}: {faster}{slower}{rest}", verdict.word()),
        }
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

/// Formats a ratio as a relative change (`+5.0 %`), or as a factor (`×3`) from 2 on.
pub fn by(ratio: f64) -> String {
    if ratio >= 2.0 {
        return format!("×{ratio:.3}");
    }
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 0.995 { 2 } else { usize::from(percent.abs() < 9.95) };
    let text = format!("{percent:+.digits$}");
    format!("{} %", text.replace('-', "−"))
}
