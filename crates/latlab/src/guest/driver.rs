//! The test driver in a guest: which jobs need it, and QEMU's device for it.

use super::Time;
use super::orders::Job;
use crate::engine;
use crate::profile::Profile;
use latlab_core::plan::{Interrupt, Plan, ScanPlan};

/// The module's name.
pub(super) const MODULE: &str = "latlab";

/// Whether a guest is to have the test driver: its profile names the module, or something in its
/// plan needs it.
pub(super) fn is_needed(profile: &Profile, job: &Job) -> bool {
    let scans = |plan: &Plan| plan.scans.iter().any(|scan| needs(scan, profile));
    let parts = |plan: &Plan| engine::needs(plan).is_ok_and(|needs| needs.driver);
    let asked = profile.modules.iter().any(|name| name == MODULE);
    asked || job.plan().is_some_and(|plan| parts(plan) || scans(plan))
}

/// Whether the interrupt of a scan is the driver's: where timers only fire at ticks, only a device
/// interrupts at a moment that was chosen.
fn needs(scan: &ScanPlan, profile: &Profile) -> bool {
    let ticks = profile.cmdline.split_whitespace().any(|word| word == "highres=off");
    match scan.interrupt {
        Some(Interrupt::Timer) => false,
        Some(_) => true,
        None => ticks,
    }
}

/// The device that interrupts at a known time; only where time is that of instructions is it known.
pub(super) fn device(time: Time) -> &'static [&'static str] {
    match time {
        Time::Instructions => &["-device", "edu"],
        Time::Wall(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile;
    use latlab_core::plan::Part;
    use latlab_core::time::Nanos;
    use serde_json::json;

    #[test]
    fn a_scan_needs_it_where_its_call_or_its_interrupt_is_the_drivers() {
        let needed = |call: &str, interrupt, profile: &str| {
            let params = match call {
                "driver" => json!({ "length": 1_000, "points": 0, "mode": "plain" }),
                _ => json!({}),
            };
            let params = params.as_object().unwrap().clone();
            let call = Part { name: call.to_owned(), params };
            let (points, resolution, repeat, limit) = (1, Nanos(1), 1, Nanos(1));
            let scan = ScanPlan { call, points, resolution, repeat, interrupt, limit };
            let plan = json!({
                "probes": [], "scans": [scan], "loads": [], "target": "lab:x", "cpus": "0",
                "length": { "count": 1 }, "warm_up": 0, "seed": 0, "settings": [],
            });
            let job = Job::Run(Box::new(serde_json::from_value(plan).unwrap()));
            is_needed(&profile::find(profile, &[]).unwrap(), &job)
        };
        assert!(!needed("fork", None, "rt"));
        assert!(needed("driver", None, "rt") && needed("driver", Some(Interrupt::Timer), "rt"));
        assert!(needed("fork", Some(Interrupt::Driver), "rt"));
        assert!(needed("fork", None, "standard"));
        assert!(!needed("fork", Some(Interrupt::Timer), "standard"));
    }
}
