//! Steal time and firmware interrupts: counters of lost time.

use super::NAME;
use crate::rig::Rig;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_sys::machine::counters;
use latlab_sys::root::Root;

/// Steal time in ticks and number of SMIs of each CPU, if they can be read.
pub(super) struct StealAndSmi(Vec<(u32, Option<u64>, Option<u64>)>);

impl StealAndSmi {
    /// Reads the counters of these CPUs.
    pub(super) fn read(root: &Root, machine: &Machine, cpus: &CpuList) -> StealAndSmi {
        let of = |cpu| {
            let smi = counters::smi(root, machine, cpu);
            (cpu, counters::steal_ticks_of(root, cpu), smi)
        };
        StealAndSmi(cpus.iter().map(of).collect())
    }

    /// Adds the increase since `before` as figures.
    #[expect(clippy::cast_precision_loss, reason = "what is lost is below what can be measured")]
    pub(super) fn report(&self, rig: &mut Rig<'_>, before: &StealAndSmi) {
        const TICK_MS: f64 = 10.0;
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        for ((cpu, steal, smi), (_, steal_before, smi_before)) in self.0.iter().zip(&before.0) {
            if let Some(ticks) = grown(*steal, *steal_before) {
                rig.add_figure(NAME, &format!("steal time on CPU {cpu}"), ticks * TICK_MS, "ms");
            }
            if let Some(times) = grown(*smi, *smi_before) {
                rig.add_figure(NAME, &format!("SMI on CPU {cpu}"), times, "interrupts");
            }
        }
    }
}
