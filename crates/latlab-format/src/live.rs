//! Live view of a run: a line for each CPU and a progress bar, updated in place; with explanations,
//! the causes of late wake-ups below.

mod causes;
mod cells;

pub use cells::cells;

use crate::printable;
use indicatif::{FormattedDuration, MultiProgress, ProgressBar, ProgressStyle};
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::record::Record;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;
use latlab_part::progress::Watch;
use latlab_sys::terminal;
use std::sync::Arc;
use std::time::Duration;

/// Keeps a record of the results so far.
pub type Keep = Box<dyn FnMut(&Record)>;

/// Returns a live view if stderr is a terminal, otherwise one that shows nothing. It hands records
/// of the results so far to `keep`.
pub fn view(keep: Option<Keep>) -> Box<dyn Watch> {
    match terminal::size() {
        Some((columns, rows)) => {
            let (columns, rows) = (columns.into(), rows.into());
            Box::new(LiveView { columns, rows, screen: None, note: None, keep })
        }
        None => Box::new(NoView { keep }),
    }
}

/// View that shows nothing.
struct NoView {
    keep: Option<Keep>,
}

impl Watch for NoView {
    fn begin(&mut self, _: &str, _: &[(String, Arc<AtomicHistogram>)]) {}
    fn update(&mut self, _: Nanos, _: Nanos) {}
    fn end(&mut self) {}
    fn note(&mut self, _: &str) {}
    fn keeps(&self) -> bool {
        self.keep.is_some()
    }
    fn keep(&mut self, record: &Record) {
        self.keep.iter_mut().for_each(|keep| keep(record));
    }
    fn pace(&self) -> Nanos {
        Nanos::from_millis(250)
    }
}

/// View on a terminal.
struct LiveView {
    /// Width of the terminal.
    columns: usize,
    /// Height of the terminal.
    rows: usize,
    screen: Option<Screen>,
    note: Option<ProgressBar>,
    keep: Option<Keep>,
}

/// Lines on the screen while a probe measures.
struct Screen {
    /// Width of the terminal.
    columns: usize,
    all: MultiProgress,
    head: ProgressBar,
    cpus: Vec<CpuLine>,
    bar: ProgressBar,
    /// The lines with the causes, and when to update them next.
    causes: Vec<ProgressBar>,
    due: Nanos,
}

impl Watch for LiveView {
    fn begin(&mut self, probe: &str, cpus: &[(String, Arc<AtomicHistogram>)]) {
        self.note("");
        let all = MultiProgress::new();
        let head = all.add(ProgressBar::new(1).with_style(line_style()));
        let title = if cpus.is_empty() { probe.to_owned() } else { heading(probe, self.columns) };
        head.set_message(printable(&title));
        head.tick();
        // Lines that do not fit on the screen would scroll instead of staying in place.
        let fit = self.rows.saturating_sub(4).max(1);
        let cpus = cpus
            .iter()
            .take(fit)
            .map(|(names, tally)| {
                let bar = all.add(ProgressBar::new(1).with_style(line_style()));
                let (names, tally) = (names.clone(), Arc::clone(tally));
                CpuLine { names, tally, max: Nanos(0), max_at: Nanos(0), bar }
            })
            .collect();
        let style = ProgressStyle::with_template("{bar:30.cyan/dim} {msg}")
            .expect("the template is constant");
        let bar = all.add(ProgressBar::new(1).with_style(style));
        let (causes, due) = (Vec::new(), Nanos(0));
        let columns = self.columns;
        self.screen = Some(Screen { columns, all, head, cpus, bar, causes, due });
        self.update(Nanos(0), Nanos(1));
    }

    fn update(&mut self, elapsed: Nanos, total: Nanos) {
        let Some(screen) = &mut self.screen else { return };
        let columns = screen.columns;
        screen.cpus.iter_mut().for_each(|cpu| cpu.update(elapsed, columns));
        screen.bar.set_length(total.0.max(1));
        let left = Duration::from_nanos((total - elapsed).0);
        screen.bar.set_position(elapsed.0.min(total.0));
        screen.bar.set_message(format!("{} left", indicatif::HumanDuration(left)));
    }

    fn end(&mut self) {
        if let Some(screen) = self.screen.take() {
            // The summary repeats all of it.
            let _ = screen.all.clear();
        }
    }

    fn note(&mut self, text: &str) {
        // With CPU lines, the first line is the heading of their columns.
        if let Some(screen) = self.screen.as_ref().filter(|screen| screen.cpus.is_empty()) {
            screen.head.set_message(printable(text));
            return;
        }
        if text.is_empty() {
            if let Some(note) = self.note.take() {
                note.finish_and_clear();
            }
            return;
        }
        let note = self.note.get_or_insert_with(|| ProgressBar::new(1).with_style(line_style()));
        note.set_message(printable(text));
    }

    fn causes(&mut self, elapsed: Nanos, so_far: &mut dyn FnMut() -> Option<Explained>) {
        const PACE: Nanos = Nanos::from_millis(500);
        let Some(screen) = self.screen.as_mut().filter(|screen| elapsed >= screen.due) else {
            return;
        };
        screen.due = elapsed + PACE;
        if let Some(explained) = so_far() {
            screen.show(&causes::lines(&explained), self.rows);
        }
    }

    fn keeps(&self) -> bool {
        self.keep.is_some()
    }

    fn keep(&mut self, record: &Record) {
        self.keep.iter_mut().for_each(|keep| keep(record));
    }

    fn pace(&self) -> Nanos {
        Nanos::from_millis(100)
    }
}

impl Screen {
    /// Shows lines below all others. On a small screen they replace the CPUs, except for the first.
    fn show(&mut self, lines: &[String], rows: usize) {
        // Three lines are the heading, the progress bar and the cursor.
        let room = rows.saturating_sub(3);
        let fit = causes::MOST.min(room.saturating_sub(1));
        let left = (room - fit.min(room)).max(1);
        for cpu in self.cpus.split_off(left.min(self.cpus.len())) {
            self.all.remove(&cpu.bar);
        }
        while self.causes.len() < lines.len().min(fit) {
            self.causes.push(self.all.add(ProgressBar::new(1).with_style(line_style())));
        }
        let lines = lines.iter().map(String::as_str).chain(std::iter::repeat(""));
        for (bar, line) in self.causes.iter().zip(lines) {
            bar.set_message(line.to_owned());
        }
    }
}

/// A line that is cut where the terminal ends.
fn line_style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").expect("the template is constant")
}

/// Characters of the name of a probe or CPU, and of each value after it.
const NAME: usize = 9;
const VALUE: usize = 10;

/// Values of a CPU, in the order they are shown, with their importance on a narrow terminal.
const VALUES: [(&str, usize); 8] = [
    ("now", 5),
    ("min", 6),
    ("mean", 7),
    ("p99", 4),
    ("p99.9", 3),
    ("max", 0),
    ("max at", 1),
    ("missed", 2),
];

/// The values that fit.
fn fitting(columns: usize) -> impl Iterator<Item = usize> {
    let room = columns.saturating_sub(NAME) / VALUE;
    (0..VALUES.len()).filter(move |nth| VALUES[*nth].1 < room)
}

fn heading(probe: &str, columns: usize) -> String {
    let names: String = fitting(columns).map(|nth| format!("{:>VALUE$}", VALUES[nth].0)).collect();
    format!("{probe:<NAME$}{names}")
}

/// The line of a CPU.
struct CpuLine {
    names: String,
    tally: Arc<AtomicHistogram>,
    /// The maximum so far, and when the view saw it first, after the start.
    max: Nanos,
    max_at: Nanos,
    bar: ProgressBar,
}

impl CpuLine {
    fn update(&mut self, elapsed: Nanos, columns: usize) {
        let seen = self.tally.histogram();
        if seen.max() > self.max {
            (self.max, self.max_at) = (seen.max(), elapsed);
        }
        let quantiles = seen.quantiles();
        let times = [self.tally.now(), seen.min(), seen.mean(), quantiles.p99, quantiles.p99_9];
        let times = times.into_iter().chain([self.max]).map(|time| time.to_string());
        let at = FormattedDuration(Duration::from_nanos(self.max_at.0)).to_string();
        let values: Vec<String> = times.chain([at, self.tally.missed().to_string()]).collect();
        let shown: String =
            fitting(columns).map(|nth| format!("{:>VALUE$}", values[nth])).collect();
        self.bar.set_message(format!("{:<NAME$}{shown}", format!("CPU {}", self.names)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminal_shows_the_most_important_values() {
        let heading = |columns| heading("cyclic", columns);
        assert_eq!(heading(79).split("  ").filter(|name| !name.is_empty()).count(), 8);
        let narrow = heading(60);
        let names: Vec<&str> =
            narrow.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect();
        assert_eq!(names, ["cyclic", "p99", "p99.9", "max", "max at", "missed"]);
        assert!(narrow.chars().count() <= 60, "{narrow}");
    }
}
