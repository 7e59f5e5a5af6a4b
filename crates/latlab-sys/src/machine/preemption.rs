//! The preemption model of the kernel.

use crate::root::Root;
use latlab_core::machine::Machine;

pub(super) fn read(root: &Root, machine: &mut Machine) {
    let shown = root.words("sys/kernel/debug/sched/preempt");
    let chosen = shown.iter().find_map(|mode| mode.strip_prefix('(')?.strip_suffix(')'));
    let chosen = chosen.map(str::to_owned);
    machine.preempt_modes =
        shown.iter().map(|mode| mode.trim_matches(['(', ')']).to_owned()).collect();
    if is_realtime(root) {
        machine.preempt = Some("rt".to_owned());
        machine.preempt_ordinary = chosen;
        return;
    }
    machine.preempt = chosen.or_else(|| model(machine));
    if machine.preempt_modes.is_empty() && machine.has_config("CONFIG_PREEMPT_DYNAMIC") {
        machine.preempt_modes = modes(machine);
    }
}

/// Whether the kernel is `PREEMPT_RT`. The out-of-tree patches have a file for this. Mainline has
/// none; there it is part of the version (`uname -v`), spelt with a space before 5.12.
pub(crate) fn is_realtime(root: &Root) -> bool {
    let version = root.word("proc/sys/kernel/version").unwrap_or_default();
    root.flag("sys/kernel/realtime") == Some(true)
        || version.contains("PREEMPT_RT")
        || version.contains("PREEMPT RT")
}

/// The model of a kernel that does not show it: the command line's if the kernel is dynamic, else
/// the configuration's.
fn model(machine: &Machine) -> Option<String> {
    let version = machine.version.as_deref().unwrap_or_default();
    let dynamic = version.contains("PREEMPT_DYNAMIC");
    let asked = machine.boot_parameter("preempt").filter(|_| dynamic);
    let configured = || {
        [
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT", "full"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_NONE", "none"),
        ]
        .into_iter()
        .find_map(|(option, model)| machine.has_config(option).then_some(model))
    };
    // Without a configuration, the word PREEMPT alone means the full model only before Linux 6.13,
    // which brought the lazy model.
    let before_lazy = machine.kernel_version().is_some_and(|version| version < (6, 13));
    let built = || (before_lazy && !dynamic && version.contains("PREEMPT")).then_some("full");
    asked.or_else(configured).or_else(built).map(str::to_owned)
}

/// The models of a dynamic kernel that does not list them. Since Linux 7.0, only architectures
/// without lazy preemption have `none` and `voluntary`.
fn modes(machine: &Machine) -> Vec<String> {
    let lazy = machine.has_config("CONFIG_ARCH_HAS_PREEMPT_LAZY");
    let weak = !lazy || machine.kernel_version().is_some_and(|version| version < (7, 0));
    [("none", weak), ("voluntary", weak), ("full", true), ("lazy", lazy)]
        .into_iter()
        .filter(|(_, available)| *available)
        .map(|(mode, _)| mode.to_owned())
        .collect()
}
