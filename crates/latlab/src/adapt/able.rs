//! Whether mechanisms can do anything here, and what to do without where they can't.

use super::observing::look;
use crate::failure::{Failure, Result};
use crate::mechanism;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::suppress::SCHED_EXT;
use latlab_core::mechanism::{Adaptation, Mode, Thread};
use latlab_sys::irq::{self, InterruptThreads};
use latlab_sys::knob::Unreadable;
use latlab_sys::root::Root;

/// That these mechanisms can't work, and which of those that were named can do without.
pub(super) fn without(names: &[String], needing: &[&str], why: &dyn std::fmt::Display) -> Failure {
    let rest: Vec<String> =
        names.iter().filter(|name| !needing.contains(&name.as_str())).cloned().collect();
    let hint = match mechanism::adaptation(&rest, &Configuration::default()) {
        Ok(_) if !rest.is_empty() => format!("; or do without: --mechanisms {}", rest.join(",")),
        _ => String::new(),
    };
    let all = needing.iter().filter(|one| names.iter().any(|name| name == *one));
    let all = all.copied().collect::<Vec<_>>().join(",");
    Failure::Unsupported(format!("{all}: {why}{hint}"))
}

/// Refuses mechanisms none of which can do anything here; of what some of them can't, sentences.
pub(super) fn check(adaptation: &Adaptation, names: &[String], root: &Root) -> Result<Vec<String>> {
    let (knobs, mut unreadable) = look(root, &adaptation.knobs_for(Mode::Throughput));
    if knobs.iter().any(|knob| knob.name == SCHED_EXT) {
        // It replaces the others.
        unreadable.clear();
    }
    let sentence =
        |(name, why): &(&'static str, Unreadable)| format!("{name} can't be turned: {why}");
    let mut cant: Vec<String> = unreadable.iter().map(sentence).collect();
    let turns_threads = adaptation.turns_threads();
    if turns_threads && !irq::all_in_threads(root) {
        cant.push(FEW_THREADS.to_owned());
    }
    let is_one = |thread: &Thread| thread.interrupt.is_some();
    let mut threads = InterruptThreads::new(root.clone());
    if !knobs.is_empty() || (turns_threads && threads.list().iter().any(is_one)) {
        let (_, others) = look(root, &adaptation.knobs_for(Mode::Latency));
        cant.extend(others.iter().map(sentence));
        return Ok(cant);
    }
    // Both files are missing for one reason, mostly.
    if let Some((_, why)) = unreadable.first() {
        cant.retain(|sentence| sentence == FEW_THREADS);
        cant.insert(0, why.to_string());
    }
    if turns_threads && cant.is_empty() {
        cant.push("no thread of the kernel is to be seen from here".to_owned());
    }
    Err(Failure::Unsupported(format!("{}: {}", names.join(","), cant.join("; "))))
}

const FEW_THREADS: &str = "this kernel handles interrupts in threads only where drivers ask for \
                           that: boot it with threadirqs, or take one with PREEMPT_RT";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_t_work_is_told_what_can_do_without() {
        let names = |text: &str| mechanism::names(text).unwrap();
        let refused = |all: &str, needing: &[&str]| match without(&names(all), needing, &"no BTF") {
            Failure::Unsupported(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused("", &["transparent", "inherit"]),
            "transparent,inherit: no BTF; or do without: --mechanisms suppress,mode"
        );
        let all = "selective,transparent,inherit";
        let expected = "transparent: no BTF; or do without: --mechanisms selective,inherit";
        assert_eq!(refused(all, &["transparent"]), expected);
        assert_eq!(refused("transparent,mode", &["transparent"]), "transparent: no BTF");
    }
}
