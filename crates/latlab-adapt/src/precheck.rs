//! The check, before anything starts, that the mechanisms can do something on this machine.

use super::knobs;
use crate::mechanism;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{Adaptation, Mode, Thread};
use latlab_part::failure::{Failure, Result};
use latlab_sys::irq::{self, InterruptThreads};
use latlab_sys::knob::Unreadable;
use latlab_sys::namespace;
use latlab_sys::root::Root;

/// The failure of the mechanisms `failing` for this reason, with the mechanisms of `names` that
/// work without them.
pub(super) fn unsupported(
    names: &[String],
    failing: &[&str],
    why: &dyn std::fmt::Display,
) -> Failure {
    let rest: Vec<String> =
        names.iter().filter(|name| !failing.contains(&name.as_str())).cloned().collect();
    let hint = match mechanism::adaptation(&rest, &Configuration::default()) {
        Ok(_) if !rest.is_empty() => format!("; others work here: {}", rest.join(",")),
        _ => String::new(),
    };
    let list = failing.iter().filter(|one| names.iter().any(|name| name == *one));
    let list = list.copied().collect::<Vec<_>>().join(",");
    Failure::unsupported(format!("{list}: {why}{hint}"))
}

/// Fails if no mechanism can do anything here, or if one would mistake other tasks for tasks of
/// this system. Otherwise returns a sentence for each limitation.
pub(super) fn check(adaptation: &Adaptation, names: &[String], root: &Root) -> Result<Vec<String>> {
    let by_tasks = adaptation.need_task_counts();
    if !by_tasks.is_empty() {
        namespace::check_proc().map_err(|why| unsupported(names, &by_tasks, &why))?;
    }
    let (knobs, unreadable) = knobs::read(root, &adaptation.knobs_for(Mode::Throughput));
    let sets_threads = adaptation.schedules_threads();
    let mut limitations: Vec<String> = unreadable.iter().map(knob_limitation).collect();
    if sets_threads && !irq::all_in_threads(root) {
        limitations.push(FEW_THREADS.to_owned());
    }
    if !knobs.is_empty() || (sets_threads && has_interrupt_threads(root)) {
        let (_, unreadable) = knobs::read(root, &adaptation.knobs_for(Mode::Latency));
        limitations.extend(unreadable.iter().map(knob_limitation));
        return Ok(limitations);
    }
    // The files are mostly missing for the same reason.
    if let Some((_, why)) = unreadable.first() {
        limitations.retain(|sentence| sentence == FEW_THREADS);
        limitations.insert(0, why.to_string());
    }
    if sets_threads && limitations.is_empty() {
        limitations.push("kernel threads are not visible from this PID namespace".to_owned());
    }
    Err(Failure::unsupported(format!("{}: {}", names.join(","), limitations.join("; "))))
}

fn has_interrupt_threads(root: &Root) -> bool {
    let handles_interrupt = |thread: &Thread| thread.interrupt.is_some();
    InterruptThreads::new(root.clone()).list().iter().any(handles_interrupt)
}

fn knob_limitation((name, why): &(&'static str, Unreadable)) -> String {
    format!("{name} can't be set: {why}")
}

const FEW_THREADS: &str = "this kernel runs IRQ handlers in threads only where drivers request it: \
                           boot it with threadirqs, or use a PREEMPT_RT kernel";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_mechanism_names_mechanisms_that_work_without_it() {
        let names = |text: &str| mechanism::names(text).unwrap();
        let refused =
            |all: &str, failing: &[&str]| unsupported(&names(all), failing, &"no BTF").text;
        assert_eq!(
            refused("", &["transparent", "inherit"]),
            "transparent,inherit: no BTF; others work here: suppress,mode"
        );
        let all = "selective,transparent,inherit";
        let expected = "transparent: no BTF; others work here: selective,inherit";
        assert_eq!(refused(all, &["transparent"]), expected);
        assert_eq!(refused("transparent,mode", &["transparent"]), "transparent: no BTF");
    }
}
