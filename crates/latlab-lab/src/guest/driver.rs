//! The test driver in a guest: which jobs need it.

use crate::profile::Profile;
use latlab_core::plan::{Interrupt, Plan, ScanPlan};
use latlab_guest::orders::{DRIVER, Job};
use latlab_part::part::needs::Needs;

/// Whether a guest gets the test driver: its profile names the module, or a part or a scan of its
/// plan needs it.
pub(crate) fn is_driver_needed(profile: &Profile, job: &Job, needs: &Needs) -> bool {
    let scans = |plan: &Plan| plan.scans.iter().any(|scan| interrupts(scan, profile));
    let asked = profile.modules.iter().any(|name| name == DRIVER);
    asked || needs.driver || job.plan().is_some_and(scans)
}

/// Whether the driver makes the interrupt of a scan: where timers fire at ticks only, nothing but a
/// device interrupts at a chosen moment.
fn interrupts(scan: &ScanPlan, profile: &Profile) -> bool {
    let ticks = profile.cmdline.split_whitespace().any(|word| word == "highres=off");
    match scan.interrupt {
        Some(Interrupt::Timer) => false,
        Some(_) => true,
        None => ticks,
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
    fn driver_is_needed_when_call_or_interrupt_of_a_scan_is_its_own() {
        let needed = |call: &str, interrupt, profile: &str| {
            let needs = if call == "driver" { Needs::driver() } else { Needs::default() };
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
            is_driver_needed(&profile::find(profile, &[]).unwrap(), &job, &needs)
        };
        assert!(!needed("fork", None, "rt"));
        assert!(needed("driver", None, "rt") && needed("driver", Some(Interrupt::Timer), "rt"));
        assert!(needed("fork", Some(Interrupt::Driver), "rt"));
        assert!(needed("fork", None, "standard"));
        assert!(!needed("fork", Some(Interrupt::Timer), "standard"));
    }
}
