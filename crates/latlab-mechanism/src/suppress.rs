//! Suppressing preemption among `SCHED_OTHER` tasks (section 3.1 of the paper).

use super::{Description, Knob, Mechanism, Wish};

/// Keeps `SCHED_OTHER` tasks from preempting each other before a time slice ends. Real-time tasks
/// still preempt immediately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suppress;

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
        let knobs = &[PREEMPT, SLICE, WAKEUP];
        Description { knobs, ..Description::new("suppress") }
    }

    fn wish(&self, knob: &Knob) -> Result<Wish, &'static str> {
        let wish = |value: &str, because| Ok(Wish { value: value.to_owned(), because });
        match (knob.name.as_str(), knob.value.as_str()) {
            (PREEMPT, "full") if knob.possible.iter().any(|value| value == "lazy") => wish(
                "lazy",
                "SCHED_OTHER tasks then preempt each other at the tick, not within the kernel",
            ),
            (PREEMPT, "full") => Err("this kernel has no lazy preemption"),
            (PREEMPT, "lazy") => {
                Err("SCHED_OTHER tasks already do not preempt each other within the kernel")
            }
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
        Suppress.wish(&knob(name, value, possible)).ok().map(|wish| wish.value)
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
