//! Causes of the late wake-ups so far, as lines of the live view.

use crate::explained::{culprit_and_function, lateness};
use crate::{grouped, printable};
use latlab_core::record::explained::{Explained, Share};
use latlab_core::time::Nanos;

/// Most causes that are shown; the summary has more.
const CAUSES: usize = 6;

/// Most lines: number of late wake-ups, heading, causes, other causes, unexplained.
pub(super) const MOST: usize = CAUSES + 4;

/// Returns the lines.
pub(super) fn lines(explained: &Explained) -> Vec<String> {
    let mut lines = vec![lateness(explained, |time| time.to_string())];
    if explained.late == 0 {
        return lines;
    }
    lines.push(format!("{:<18}{:>8}{:>10}{:>10}  culprit", "cause", "late", "total", "worst"));
    lines.extend(explained.causes.iter().take(CAUSES).map(line));
    let rest = explained.causes.iter().skip(CAUSES);
    let rest = rest.fold(Nanos(0), |sum, share| sum + share.total);
    let smaller = (rest > Nanos(0)).then_some(("other causes", rest));
    let left = smaller.into_iter().chain([("unexplained", explained.unexplained)]);
    lines.extend(left.map(|(name, total)| format!("{name:<26}{:>10}", total.to_string())));
    lines
}

fn line(share: &Share) -> String {
    let [total, worst] = [share.total, share.worst].map(|time| time.to_string());
    let culprit = culprit_and_function(&share.cause, &share.culprit, share.function.as_deref());
    let (cause, late) = (printable(&share.cause), grouped(share.count));
    format!("{cause:<18}{late:>8}{total:>10}{worst:>10}  {culprit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_testing::sample_explained;

    #[test]
    fn causes_have_a_line_each_and_the_rest_another() {
        let mut explained = sample_explained::record().explained.unwrap();
        assert_eq!(
            lines(&explained),
            [
                "40 of 10\u{202f}000 wake-ups were later than 50 us, 10 ms in all",
                "cause                 late     total     worst  culprit",
                "interrupts-off          30      6 ms    400 us  stress-ng-vm in copy_page_range",
                "softirq                 30      3 ms    300 us  NET_RX",
                "dispatch                30    500 us     60 us",
                "unexplained                   500 us",
            ]
        );
        let three = explained.causes.clone();
        explained.causes.extend((0..3).flat_map(|_| three.clone()));
        let lines = lines(&explained);
        assert_eq!(lines.len(), MOST);
        assert_eq!(lines[MOST - 2], "other causes                   19 ms");
    }

    #[test]
    fn causes_before_first_late_wake_up_have_no_table() {
        assert_eq!(lines(&Explained::default()), ["no wake-ups observed"]);
    }
}
