//! Metrics of a measurement for Prometheus: a file for the textfile collector of `node_exporter`.

use super::one;
use crate::say;
use latlab_core::atomic_histogram::AtomicHistogram;
use latlab_core::histogram::Histogram;
use latlab_core::record::Record;
use latlab_core::record::explained::Explained;
use latlab_core::time::Nanos;
use latlab_part::progress::Watch;
use latlab_sys::file::write_atomically;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A view that also writes metrics to a file, which is replaced every five seconds.
pub struct Textfile {
    view: Box<dyn Watch>,
    path: PathBuf,
    series: Vec<Series>,
    progress: Progress,
    /// When the file is written next, after the start of the probe.
    due: Nanos,
    /// Whether it was said that the file can't be written.
    is_reported: bool,
}

/// Whether a probe measures now, and how long it, or else the last one, has measured.
#[derive(Clone, Copy, Default)]
struct Progress {
    is_measuring: bool,
    elapsed: Nanos,
}

/// The samples of one measuring thread so far.
struct Series {
    probe: String,
    cpus: String,
    tally: Arc<AtomicHistogram>,
}

impl Textfile {
    /// Writes the file for the first time. Fails where that does.
    pub fn begin(view: Box<dyn Watch>, path: PathBuf) -> io::Result<Textfile> {
        let (series, progress) = (Vec::new(), Progress::default());
        let textfile = Textfile { view, path, series, progress, due: Nanos(0), is_reported: false };
        textfile.write()?;
        Ok(textfile)
    }

    fn write(&self) -> io::Result<()> {
        write_atomically(&self.path, page(self.progress, &self.series).as_bytes())
    }

    /// Writes the file again.
    fn rewrite(&mut self) -> io::Result<()> {
        const PACE: Nanos = Nanos::from_secs(5);
        self.due = self.progress.elapsed + PACE;
        self.write()
    }

    /// Writes what a probe has measured. Returns why the file lacks it, once.
    fn finish(&mut self) -> Option<String> {
        self.progress.is_measuring = false;
        let failure = self.rewrite().err().filter(|_| !self.is_reported)?;
        self.is_reported = true;
        Some(format!("{}: the metrics can't be written: {failure}", self.path.display()))
    }
}

impl Watch for Textfile {
    fn begin(&mut self, probe: &str, samplers: &[(String, Arc<AtomicHistogram>)]) {
        self.view.begin(probe, samplers);
        // A probe may measure twice, the first time without being explained.
        self.series.retain(|one| one.probe != probe);
        self.series.extend(samplers.iter().map(|(cpus, tally)| Series {
            probe: probe.to_owned(),
            cpus: cpus.clone(),
            tally: Arc::clone(tally),
        }));
        self.progress = Progress { is_measuring: true, elapsed: Nanos(0) };
        // Where it can't be written, it is tried again later.
        let _ = self.rewrite();
    }

    fn update(&mut self, elapsed: Nanos, total: Nanos) {
        self.view.update(elapsed, total);
        self.progress.elapsed = elapsed;
        if elapsed >= self.due {
            let _ = self.rewrite();
        }
    }

    fn end(&mut self) {
        self.view.end();
        self.finish().iter().for_each(|why| say(why));
    }

    fn note(&mut self, text: &str) {
        self.view.note(text);
    }

    fn done(&mut self, done: usize, total: usize) {
        self.view.done(done, total);
    }

    fn causes(&mut self, elapsed: Nanos, so_far: &mut dyn FnMut() -> Option<Explained>) {
        self.view.causes(elapsed, so_far);
    }

    fn keeps(&self) -> bool {
        self.view.keeps()
    }

    fn keep(&mut self, record: &Record) {
        self.view.keep(record);
    }

    fn pace(&self) -> Nanos {
        self.view.pace()
    }
}

/// Returns the contents of the file.
fn page(progress: Progress, series: &[Series]) -> String {
    let mut page = String::new();
    let help = "1 while a probe measures.";
    one(&mut page, "latlab_run_measuring", "gauge", help, u8::from(progress.is_measuring));
    let help = "Time that the probe, or else the last one, has measured.";
    let elapsed = progress.elapsed.as_secs_f64();
    one(&mut page, "latlab_run_elapsed_seconds", "gauge", help, elapsed);
    let all: Vec<(String, Histogram)> = series.iter().map(Series::labelled).collect();
    head(&mut page, "latlab_run_latency_seconds", "summary", "Latency of all samples so far.");
    for (labels, histogram) in &all {
        for (quantile, latency) in [0.5, 0.99, 0.999, 0.9999].map(|q| (q, histogram.quantile(q))) {
            let latency = latency.as_secs_f64();
            let _ = writeln!(
                page,
                "latlab_run_latency_seconds{{{labels},quantile=\"{quantile}\"}} {latency}"
            );
        }
        let (sum, count) =
            (Nanos(u64::try_from(histogram.sum()).unwrap_or(u64::MAX)), histogram.count());
        let _ = writeln!(page, "latlab_run_latency_seconds_sum{{{labels}}} {}", sum.as_secs_f64());
        let _ = writeln!(page, "latlab_run_latency_seconds_count{{{labels}}} {count}");
    }
    head(&mut page, "latlab_run_latency_max_seconds", "gauge", "The worst latency so far.");
    for (labels, histogram) in &all {
        let max = histogram.max().as_secs_f64();
        let _ = writeln!(page, "latlab_run_latency_max_seconds{{{labels}}} {max}");
    }
    head(&mut page, "latlab_run_missed_periods_total", "counter", "Periods without a sample.");
    for (one, (labels, _)) in series.iter().zip(&all) {
        let missed = one.tally.missed();
        let _ = writeln!(page, "latlab_run_missed_periods_total{{{labels}}} {missed}");
    }
    page
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

impl Series {
    /// Its labels, in which no character has to be escaped, and its distribution.
    fn labelled(&self) -> (String, Histogram) {
        let labels = format!("probe=\"{}\",cpu=\"{}\"", self.probe, self.cpus);
        (labels, self.tally.histogram())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live;

    #[test]
    fn page_has_the_samples_so_far() {
        let tally = Arc::new(AtomicHistogram::new());
        tally.record(Nanos(1000));
        tally.record(Nanos(3000));
        tally.miss(7);
        let series = [Series { probe: "cyclic".to_owned(), cpus: "0-1".to_owned(), tally }];
        let progress = Progress { is_measuring: true, elapsed: Nanos::from_millis(1500) };
        let page = page(progress, &series);
        let values: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let of = "probe=\"cyclic\",cpu=\"0-1\"";
        let expected = [
            "latlab_run_measuring 1".to_owned(),
            "latlab_run_elapsed_seconds 1.5".to_owned(),
            format!("latlab_run_latency_seconds{{{of},quantile=\"0.5\"}} 0.000001"),
            format!("latlab_run_latency_seconds{{{of},quantile=\"0.99\"}} 0.000003"),
            format!("latlab_run_latency_seconds{{{of},quantile=\"0.999\"}} 0.000003"),
            format!("latlab_run_latency_seconds{{{of},quantile=\"0.9999\"}} 0.000003"),
            format!("latlab_run_latency_seconds_sum{{{of}}} 0.000004"),
            format!("latlab_run_latency_seconds_count{{{of}}} 2"),
            format!("latlab_run_latency_max_seconds{{{of}}} 0.000003"),
            format!("latlab_run_missed_periods_total{{{of}}} 7"),
        ];
        assert_eq!(values, expected);
    }

    /// A file of a run that has measured for 1500 ms.
    fn textfile(path: PathBuf) -> Textfile {
        let mut textfile = Textfile::begin(live::view(None), path).unwrap();
        textfile.begin("cyclic", &[]);
        textfile.update(Nanos::from_millis(1500), Nanos::from_millis(1500));
        textfile
    }

    #[test]
    fn file_has_the_time_measured_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latlab.prom");
        let mut textfile = textfile(path.clone());
        textfile.end();
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains("\nlatlab_run_measuring 0\n"), "{page}");
        assert!(page.contains("\nlatlab_run_elapsed_seconds 1.5\n"), "{page}");
        textfile.begin("nanosleep", &[]);
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains("\nlatlab_run_elapsed_seconds 0\n"), "{page}");
    }

    #[test]
    fn last_write_that_fails_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latlab.prom");
        let mut textfile = textfile(path.clone());
        assert_eq!(textfile.finish(), None);
        drop(folder);
        let why = textfile.finish().expect("its folder is gone");
        assert!(why.starts_with(&format!("{}: the metrics can't be", path.display())), "{why}");
        assert_eq!(textfile.finish(), None);
    }
}
