//! Measuring with the probes of a plan, and explaining late wake-ups if the plan requests it.

use crate::explain::{ProbeExplainer, Subject, TaskExplainer};
use crate::probe::Probe;
use crate::rig::Rig;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_core::plan::Plan;
use latlab_core::record::explained::Explanations;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::Built;
use std::sync::Arc;

/// Runs the probes and explains their late wake-ups if the plan requests it, or explains late
/// wake-ups of other tasks. A failure after something was measured is returned along with the
/// results.
pub(super) fn run(
    plan: &Plan,
    machine: &Machine,
    probes: &[Built<dyn Probe>],
    rig: &mut Rig<'_>,
) -> Result<(Option<Failure>, Option<Explanations>)> {
    let Some(explain) = &plan.explain else { return Ok((measure(probes, rig)?, None)) };
    if let Some(watched) = &explain.watch {
        let explanations = rig.observe_others(|signals, watch, keeping| {
            TaskExplainer::explain(plan, (watched, explain), machine, signals, watch, keeping)
        })?;
        return Ok((None, Some(explanations)));
    }
    measure_without(probes, rig)?;
    if rig.is_over() {
        return Ok((None, None));
    }
    let loops: Vec<String> = probes
        .iter()
        .filter(|probe| probe.is_busy_loop())
        .map(|probe| probe.name().to_owned())
        .collect();
    let subject = Subject { above: explain.above, only_loops: loops.len() == probes.len(), loops };
    let (measured, explanations) = ProbeExplainer::explain(subject, machine, |observer| {
        rig.observer = Some(Arc::<ProbeExplainer>::clone(&observer));
        let measured = measure(probes, rig);
        // At once: the loads still run, and their events replace the earlier ones.
        if let Some((cpu, at)) = rig.tripped() {
            observer.keep_last_events(cpu, at);
        }
        rig.observer = None;
        measured
    })?;
    // Measured data are kept even if explaining failed.
    match explanations {
        Ok(explanations) => Ok((measured?, Some(explanations))),
        Err(failure) => Ok((measured?.or(Some(failure)), None)),
    }
}

/// Measures for a while without explaining, so that the cost of explaining is known.
#[expect(clippy::cast_precision_loss, reason = "a latency is far below 2^52 ns")]
fn measure_without(probes: &[Built<dyn Probe>], rig: &mut Rig<'_>) -> Result<()> {
    rig.measure_briefly(|rig| measure(probes, rig))?;
    let measured = std::mem::take(&mut rig.measured);
    rig.figures.clear();
    if rig.interrupted {
        rig.measured = measured;
        return Ok(());
    }
    rig.warnings.clear();
    // A CPU that is still offline is found again.
    rig.lost = CpuList::default();
    for one in &measured {
        let median = one.recording.first().histogram().quantile(0.5);
        let what = format!("median on CPU {} without explaining", one.cpus);
        rig.add_figure(one.probe, &what, median.0 as f64, "ns");
    }
    Ok(())
}

/// Runs the probes one after another. A failure after something was measured is returned along with
/// the results, not instead of them.
fn measure(probes: &[Built<dyn Probe>], rig: &mut Rig<'_>) -> Result<Option<Failure>> {
    for probe in probes {
        match probe.run(rig) {
            Ok(()) if rig.is_over() => break,
            Ok(()) => {}
            Err(failure) if rig.measured.is_empty() => return Err(failure),
            Err(failure) => return Ok(Some(failure)),
        }
    }
    Ok(None)
}
