//! Suppressing preemptions by ordinary tasks (section 3.1 of the paper).

use super::{Knob, Mechanism, Wish};

/// An ordinary task does not preempt an ordinary task before that one's slice ends; real-time
/// tasks preempt at once, as before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suppress;

/// Which scheduler the ordinary tasks have, besides the kernel's own.
pub const SCHED_EXT: &str = "sched_ext";
/// The one under which none of them preempts another.
pub const SLICES: &str = "latlab_slices";
/// The model of preemption.
const PREEMPT: &str = "preempt";
/// Whether who is woken stands where it stood when it fell asleep, by the share it had had of the
/// CPU.
const LAG: &str = "place_lag";
/// How long an ordinary task runs until the tick gives way to another, in nanoseconds.
const SLICE: &str = "base_slice";
/// What it is to be at least: the kernel itself has 2.8 ms from eight CPUs on, and 0.7 ms on one.
const LONG: u64 = 3_000_000;
/// Whether who is woken may preempt who runs.
const WAKEUP: &str = "wakeup_preemption";

impl Mechanism for Suppress {
    fn name(&self) -> &'static str {
        "suppress"
    }

    fn knobs(&self) -> &'static [&'static str] {
        &[SCHED_EXT, PREEMPT, SLICE, LAG, WAKEUP]
    }

    fn wish(&self, knob: &Knob, all: &[Knob]) -> Result<Wish, &'static str> {
        let wish = |value: &str, because| Ok(Wish { value: value.to_owned(), because });
        let replaced = all.iter().any(|other| other.name == SCHED_EXT);
        match (knob.name.as_str(), knob.value.as_str()) {
            (SCHED_EXT, "none") => {
                wish(SLICES, "an ordinary task then runs until its slice ends, whoever is woken")
            }
            (SCHED_EXT, SLICES) => Err("it is at work already"),
            (SCHED_EXT, _) => Err("somebody has chosen that scheduler of ordinary tasks"),
            _ if replaced => Err("the scheduler of sched_ext decides about ordinary tasks"),
            (PREEMPT, "full") if knob.possible.iter().any(|value| value == "lazy") => wish(
                "lazy",
                "an ordinary task then gives way to another at the tick, not within the kernel",
            ),
            (PREEMPT, "full") => Err("this kernel has no lazy preemption"),
            (PREEMPT, "lazy") => Err("it already spares ordinary tasks"),
            (PREEMPT, _) => Err("it spares ordinary tasks more than lazy would"),
            (WAKEUP, "1") => {
                wish("0", "an ordinary task that is woken then waits for the slice of who runs")
            }
            (LAG, "1") => {
                wish("0", "ordinary tasks then take turns in the order in which they are woken")
            }
            (LAG, "0") => {
                Err("ordinary tasks take turns in the order in which they are woken already")
            }
            (WAKEUP, "0") => Err("no ordinary task preempts when it is woken, as is wanted"),
            (SLICE, value) => match value.parse::<u64>() {
                Ok(found) if found < LONG => wish(
                    &LONG.to_string(),
                    "an ordinary task then runs for longer before another has its turn",
                ),
                Ok(_) => Err("slices are as long already"),
                Err(_) => Err("it is no number of nanoseconds"),
            },
            _ => Err("it has no value that suppress knows"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(name: &'static str, value: &str, possible: &[&str]) -> Knob {
        let possible = possible.iter().map(|&value| value.to_owned()).collect();
        Knob { name: name.to_owned(), path: String::new(), value: value.to_owned(), possible }
    }

    fn wished(name: &'static str, value: &str, possible: &[&str]) -> Option<String> {
        let knob = knob(name, value, possible);
        Suppress.wish(&knob, std::slice::from_ref(&knob)).ok().map(|wish| wish.value)
    }

    #[test]
    fn a_scheduler_of_our_own_goes_before_all_else_unless_somebody_has_one() {
        assert_eq!(wished("sched_ext", "none", &[]).as_deref(), Some("latlab_slices"));
        assert_eq!(wished("sched_ext", "scx_rusty", &[]), None);
        for scheduler in ["none", "latlab_slices", "scx_rusty"] {
            let all = [knob("sched_ext", scheduler, &[]), knob("preempt", "full", &["lazy"])];
            assert!(Suppress.wish(&all[1], &all).is_err(), "{scheduler}");
        }
    }

    #[test]
    fn full_becomes_lazy_where_the_kernel_has_that() {
        assert_eq!(wished("preempt", "full", &["full", "lazy"]).as_deref(), Some("lazy"));
        assert_eq!(wished("preempt", "full", &["none", "voluntary", "full"]), None);
    }

    #[test]
    fn what_preempts_less_already_stays() {
        for value in ["none", "voluntary", "lazy"] {
            assert_eq!(wished("preempt", value, &["none", "voluntary", "full", "lazy"]), None);
        }
        assert_eq!(wished("wakeup_preemption", "0", &["0", "1"]), None);
    }

    #[test]
    fn who_is_woken_waits() {
        for feature in ["wakeup_preemption", "place_lag"] {
            assert_eq!(wished(feature, "1", &["0", "1"]).as_deref(), Some("0"));
            assert_eq!(wished(feature, "0", &["0", "1"]), None);
        }
    }

    #[test]
    fn slices_become_longer_and_never_shorter() {
        let long = LONG.to_string();
        for (found, wish) in [("700000", Some(&*long)), ("2800000", Some(&long))] {
            assert_eq!(wished("base_slice", found, &[]).as_deref(), wish);
        }
        for stays in [&*long, "100000000", "nonsense", "-1", ""] {
            assert_eq!(wished("base_slice", stays, &[]), None, "{stays}");
        }
    }

    #[test]
    fn what_it_does_not_know_stays() {
        assert_eq!(wished("wakeup_preemption", "nonsense", &[]), None);
        assert_eq!(wished("swappiness", "60", &[]), None);
    }
}
