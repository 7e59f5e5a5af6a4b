//! Random scenes in guests whose truth is known by construction, to judge `explain` and `scan` by
//! cases that nobody has thought of. `make truth` runs hundreds of them, `make test` a few.

mod cpus;
mod governor;
mod loops;
mod remedies;
mod wake_ups;

use latlab_core::random::Random;

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

/// Runs all scenes. `judge` draws a scene, runs it, and says what is wrong with the answer.
fn run_all(judge: impl Fn(&mut Draw) -> Result<(), String>) {
    let wanted = std::env::var("LATLAB_SCENES").ok();
    let wanted = wanted.map_or(FEW, |text| text.parse().expect("LATLAB_SCENES is a number"));
    let wrong = |number| judge(&mut Draw(Random::new(number))).err().map(|why| (number, why));
    let wrong: Vec<(u64, String)> = (1..=wanted).filter_map(wrong).collect();
    let list: String =
        wrong.iter().map(|(number, why)| format!("\nscene {number}: {why}")).collect();
    assert!(wrong.is_empty(), "{} of {wanted} scenes:{list}", wrong.len());
}
