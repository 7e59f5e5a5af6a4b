//! Random scenes in guests whose truth is known by construction, to judge `explain` and `scan` by
//! cases that nobody has thought of. `make truth` runs hundreds of them, `make test` a few.

mod cpus;
mod governor;
mod loops;
mod ordinary;
mod quotas;
mod remedies;
mod running;
mod stage;
mod stops;
mod wake_ups;

use latlab_core::random::Random;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::available_parallelism;

/// Number of scenes where `LATLAB_SCENES` does not set it.
const FEW: u64 = 3;

/// Random choices, reproducible by the number of the scene.
struct Draw(Random);

impl Draw {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len())]
    }

    /// A number from `least` to `most`; each order of magnitude is as likely as the others.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        let ratio = f64::from(u32::try_from(most / least.max(1)).expect("a small ratio"));
        let factor = ratio.powf(self.0.share());
        let thousandths: u64 = format!("{:.0}", factor * 1_000.0).parse().expect("a number");
        (least.max(1) * thousandths / 1_000).clamp(least, most)
    }

    fn is(&mut self, one_in: usize) -> bool {
        self.0.below(one_in) == 0
    }
}

/// Runs all scenes, one on each CPU at a time where there are many. `judge` draws a scene, runs it,
/// and says what is wrong with the answer.
#[expect(clippy::print_stderr, reason = "hundreds of scenes take hours: each is reported at once")]
fn run_all(judge: impl Fn(&mut Draw) -> Result<(), String> + Sync) {
    let wanted = std::env::var("LATLAB_SCENES").ok();
    let workers = wanted.as_ref().map_or(1, |_| available_parallelism().map_or(1, NonZero::get));
    let wanted = wanted.map_or(FEW, |text| text.parse().expect("LATLAB_SCENES is a number"));
    let (begun, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let run = || {
        let numbers = std::iter::repeat_with(|| begun.fetch_add(1, Relaxed) + 1);
        for number in numbers.take_while(|number| *number <= wanted) {
            let judged = judge(&mut Draw(Random::new(number)));
            let words =
                judged.as_ref().err().map_or("right".to_owned(), |why| format!("wrong: {why}"));
            eprintln!("scene {number} of {wanted}: {words}");
            let wrong_one = judged.err().map(|why| format!("scene {number}: {why}"));
            wrong.lock().expect("no scene panics").extend(wrong_one);
        }
    };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(run))));
    let wrong = wrong.into_inner().expect("no scene panics");
    assert!(wrong.is_empty(), "{} of {wanted} scenes are wrong: {wrong:#?}", wrong.len());
}
