//! Loops that wait on the run queue of one CPU behind a task that keeps it, until another task moves them to
//! a free CPU. A guest with two CPUs runs them in turns, so that times have wide bounds.

use super::stage::{Cast, MS, Stage, VICTIM, expect, explained, is_by, judge_charges_to, time_of};
use super::{Draw, run_all};
use crate::program::{folder, two_cpus_with};
use latlab_core::record::{Record, Sample};

/// Kernels by release.
const KERNELS: [&str; 4] = ["6.1", "6.12", "6.12-rt", "7.3"];

/// Number of moves.
const MOVES: u64 = 4;

/// The longest turn of a CPU of the guest.
const TURN: u64 = 10 * MS;

struct Scene {
    kernel: &'static str,
    policy: &'static str,
    /// The policy of the task that keeps the CPU.
    hog: u64,
    every: u64,
    /// How long the loop waits behind the task.
    wait: u64,
}

impl Scene {
    fn draw(draw: &mut Draw) -> Scene {
        Scene {
            kernel: draw.one(&KERNELS),
            policy: draw.one(&["nice=0", "nice=10", "fifo=20"]),
            hog: draw.between(30, 70),
            every: draw.between(1_000_000, 8_000_000),
            wait: draw.between(40, 200) * MS,
        }
    }

    /// The loop comes back when the task sleeps again.
    fn cast(&self, guest: String) -> Cast {
        let Scene { policy, hog, every, wait, .. } = self;
        let busy = wait + wait / 2;
        let (round, back) = (2 * busy + 50 * MS, busy - wait + 10 * MS);
        let tasks = vec![
            format!("{VICTIM},cpu=1,{policy},every={every},busy=50000"),
            format!("hog,cpu=1,fifo={hog},every={round},busy={busy}"),
            format!("mover,fifo=90,does=move,of={VICTIM},first={wait},every={round},lasts={back}"),
        ];
        let (before, words) = (String::new(), format!("--above {}ns", wait / 2));
        Cast { guest, before, tasks, length: MOVES * round, first: false, words }
    }

    fn judge(&self, record: &Record) -> Result<(), String> {
        let late = explained(record)?.late;
        expect("number of late wake-ups", late, MOVES - 1..=MOVES + 1)?;
        judge_charges_to(record, TURN / 2, |charge| {
            is_by(charge, "higher-priority", "hog")
                || charge.cause == "migration" && charge.ns.0 <= TURN
        })?;
        record.worst.iter().try_for_each(|sample| self.judge_times(sample))
    }

    fn judge_times(&self, sample: &Sample) -> Result<(), String> {
        let (least, most) = (self.wait - self.every - TURN, self.wait + 2 * TURN);
        expect("time behind the hog", time_of(sample, "higher-priority"), least..=most)
            .map_err(|why| format!("{why} in {sample:?}"))
    }
}

#[test]
fn waits_of_moved_loops_are_charged_to_the_task_of_their_old_cpu() {
    let stage = Stage::new();
    run_all(|draw| {
        let scene = Scene::draw(draw);
        let folder = folder();
        let guest = two_cpus_with(scene.kernel, folder.path());
        stage.judge(&scene.cast(guest), |record| scene.judge(record))
    });
}
