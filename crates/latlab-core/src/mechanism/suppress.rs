//! Suppressing preemption among `SCHED_OTHER` tasks (section 3.1 of the paper).

use super::{Description, Knob, Mechanism, Wish};

/// Keeps `SCHED_OTHER` tasks from preempting each other before a time slice ends. Real-time tasks
/// still preempt immediately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suppress;

/// The knob that loads a `sched_ext` scheduler for `SCHED_OTHER` tasks.
pub const SCHED_EXT: &str = "sched_ext";
/// The scheduler of latlab, under which no `SCHED_OTHER` task preempts another.
pub const SLICES: &str = "latlab_slices";
/// The preemption model.
const PREEMPT: &str = "preempt";
/// Time slice of a `SCHED_OTHER` task, in nanoseconds.
const SLICE: &str = "base_slice";
/// The least value for it. The kernel's default is 0.7 ms on one CPU and 2.8 ms on eight or more.
const LONG_SLICE: u64 = 3_000_000;
/// Whether a task that wakes up may preempt the running one.
const WAKEUP: &str = "wakeup_preemption";

impl Mechanism for Suppress {
    fn description(&self) -> Description {
        let knobs = &[SCHED_EXT, PREEMPT, SLICE, WAKEUP];
        Description { knobs, ..Description::new("suppress") }
    }

    fn wish(&self, knob: &Knob, all: &[Knob]) -> Result<Wish, &'static str> {
        let wish = |value: &str, because| Ok(Wish { value: value.to_owned(), because });
        let replaced = all.iter().any(|other| other.name == SCHED_EXT);
        match (knob.name.as_str(), knob.value.as_str()) {
            (SCHED_EXT, "none") => wish(
                SLICES,
                "a SCHED_OTHER task then runs until its slice ends, whichever task wakes up",
            ),
            (SCHED_EXT, SLICES) => Err("it is loaded already"),
            (SCHED_EXT, _) => Err("another program has loaded that scheduler"),
            _ if replaced => Err("the loaded sched_ext scheduler schedules SCHED_OTHER tasks"),
            (PREEMPT, "full") if knob.possible.iter().any(|value| value == "lazy") => wish(
                "lazy",
                "SCHED_OTHER tasks then preempt each other at the tick, not within the kernel",
            ),
            (PREEMPT, "full") => Err("this kernel has no lazy preemption"),
            (PREEMPT, "lazy") => Err("SCHED_OTHER tasks are already preempted at the tick only"),
            (PREEMPT, _) => Err("SCHED_OTHER tasks are preempted less than with lazy"),
            (WAKEUP, "1") => {
                wish("0", "a woken SCHED_OTHER task then waits until the running slice ends")
            }
            (WAKEUP, "0") => Err("woken SCHED_OTHER tasks already do not preempt others"),
            (SLICE, value) => match value.parse::<u64>() {
                Ok(found) if found < LONG_SLICE => wish(
                    &LONG_SLICE.to_string(),
                    "a SCHED_OTHER task then runs for longer before another one runs",
                ),
                Ok(_) => Err("slices are already long enough"),
                Err(_) => Err("its value is not a number of nanoseconds"),
            },
            _ => Err("suppress does not know its value"),
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
    fn sched_ext_replaces_other_knobs_unless_another_scheduler_is_loaded() {
        assert_eq!(wished("sched_ext", "none", &[]).as_deref(), Some("latlab_slices"));
        assert_eq!(wished("sched_ext", "scx_rusty", &[]), None);
        for scheduler in ["none", "latlab_slices", "scx_rusty"] {
            let all = [knob("sched_ext", scheduler, &[]), knob("preempt", "full", &["lazy"])];
            assert!(Suppress.wish(&all[1], &all).is_err(), "{scheduler}");
        }
    }

    #[test]
    fn preempt_full_becomes_lazy_where_kernel_has_it() {
        assert_eq!(wished("preempt", "full", &["full", "lazy"]).as_deref(), Some("lazy"));
        assert_eq!(wished("preempt", "full", &["none", "voluntary", "full"]), None);
    }

    #[test]
    fn knob_that_preempts_less_already_stays() {
        for value in ["none", "voluntary", "lazy"] {
            assert_eq!(wished("preempt", value, &["none", "voluntary", "full", "lazy"]), None);
        }
        assert_eq!(wished("wakeup_preemption", "0", &["0", "1"]), None);
    }

    #[test]
    fn wakeup_preemption_is_disabled() {
        assert_eq!(wished("wakeup_preemption", "1", &["0", "1"]).as_deref(), Some("0"));
        assert_eq!(wished("wakeup_preemption", "0", &["0", "1"]), None);
    }

    /// Without their lag, tasks that sleep often starve beside tasks that compute.
    #[test]
    fn lag_stays() {
        assert_eq!(wished("place_lag", "1", &["0", "1"]), None);
    }

    #[test]
    fn base_slice_becomes_longer_and_never_shorter() {
        let long = LONG_SLICE.to_string();
        for (found, wish) in [("700000", Some(&*long)), ("2800000", Some(&long))] {
            assert_eq!(wished("base_slice", found, &[]).as_deref(), wish);
        }
        for stays in [&*long, "100000000", "nonsense", "-1", ""] {
            assert_eq!(wished("base_slice", stays, &[]), None, "{stays}");
        }
    }

    #[test]
    fn unknown_knob_or_value_stays() {
        assert_eq!(wished("wakeup_preemption", "nonsense", &[]), None);
        assert_eq!(wished("swappiness", "60", &[]), None);
    }
}
