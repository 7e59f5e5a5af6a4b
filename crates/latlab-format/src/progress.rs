//! Progress of long work: a bar on a terminal, otherwise a line for each step.

use super::say;
use indicatif::{ProgressBar, ProgressStyle};
use latlab_core::time::Nanos;
use latlab_part::progress::Progress;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::terminal;

/// Shows the progress, and reports when the user wants to end.
pub struct Bar<'a> {
    signals: &'a Signals,
    bar: Option<ProgressBar>,
}

impl Bar<'_> {
    /// A bar that a signal to end ends.
    pub fn new(signals: &Signals) -> Bar<'_> {
        Bar { signals, bar: None }
    }

    /// Removes the bar at the end of the work.
    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar<'_> {
    fn note(&mut self, text: &str) {
        self.end();
        say(text);
    }

    fn at(&mut self, done: u64, total: u64) {
        if terminal::size().is_none() {
            return;
        }
        let style = || {
            ProgressStyle::with_template("{bar:30.cyan/dim} {percent:>3} %  {elapsed} so far")
                .expect("the template is constant")
        };
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new(total).with_style(style()));
        bar.set_length(total.max(1));
        bar.set_position(done);
    }

    fn pause(&mut self) -> bool {
        self.signals.wait(Nanos::from_millis(100)) == Event::End
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
