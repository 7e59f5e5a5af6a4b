//! A plan with its parts built, once, when the plan is made or received.

use crate::call::{CALLS, Call};
use crate::load::{LOADS, Load};
use crate::probe::{self, PROBES, Probe};
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part, Plan, ScanPlan};
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::Built;
use latlab_part::part::needs::Needs;

/// A plan with its parts built. Clones share the parts.
#[derive(Clone, Debug)]
pub struct Prepared {
    plan: Plan,
    pub(super) probes: Vec<Built<dyn Probe>>,
    pub(super) loads: Vec<Built<dyn Load>>,
    pub(super) scans: Vec<(ScanPlan, Built<dyn Call>)>,
}

impl Prepared {
    /// Builds the parts of a plan. Fails where a part is unknown, its parameters are wrong, or it
    /// can't measure for the requested length.
    pub fn of(plan: &Plan) -> Result<Prepared> {
        let probe = |part: &Part| {
            let probe = Built::new("probe", PROBES, part)?;
            probe::check_length(&probe, plan.length).map(|()| probe)
        };
        let load = |part: &Part| Built::new("load", LOADS, part);
        let scan = |scan: &ScanPlan| {
            Built::new("call", CALLS, &scan.call).map(|call| (scan.clone(), call))
        };
        Ok(Prepared {
            probes: plan.probes.iter().map(probe).collect::<Result<_>>()?,
            loads: plan.loads.iter().map(load).collect::<Result<_>>()?,
            scans: plan.scans.iter().map(scan).collect::<Result<_>>()?,
            plan: plan.clone(),
        })
    }

    /// The plan, as it is sent and recorded.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The same plan for another target.
    #[must_use]
    pub fn on_target(&self, target: &str) -> Prepared {
        let mut prepared = self.clone();
        target.clone_into(&mut prepared.plan.target);
        prepared
    }

    /// The same plan on these CPUs.
    pub(super) fn on_cpus(&self, cpus: CpuList) -> Prepared {
        let mut prepared = self.clone();
        prepared.plan.cpus = cpus;
        prepared
    }

    /// The same plan without explaining.
    #[must_use]
    pub fn unexplained(&self) -> Prepared {
        let mut prepared = self.clone();
        prepared.plan.explain = None;
        prepared
    }

    /// The probe for which models of caches and TLBs count, by name.
    pub fn modelled(&self) -> Option<&str> {
        self.probes.iter().find(|probe| probe.needs().models).map(Built::name)
    }

    /// Needs of its parts beyond a kernel.
    pub fn needs(&self) -> Needs {
        let probes = self.probes.iter().map(|probe| probe.needs());
        let loads = self.loads.iter().map(|load| load.needs());
        let calls = self.scans.iter().map(|(_, call)| call.needs());
        probes.chain(loads).chain(calls).fold(Needs::default(), Needs::and)
    }

    /// Approximate duration of its measurements.
    pub fn duration(&self) -> Nanos {
        let probes = self.probes.iter().map(|probe| self.duration_of(probe));
        // The time limit of a scan is far more than most need.
        let scans = self.scans.iter().map(|(scan, _)| Nanos(scan.limit.0 / 4));
        let watching = self.watches().then(|| self.once(INTERVAL));
        probes.chain(scans).chain(watching).fold(Nanos(0), |sum, each| sum + each)
    }

    /// Whether it watches tasks that latlab did not start, for as long as a probe would measure.
    pub(super) fn watches(&self) -> bool {
        self.plan.explain.as_ref().is_some_and(|explain| explain.watch.is_some())
    }

    fn duration_of(&self, probe: &Built<dyn Probe>) -> Nanos {
        let interval = probe.part.params.get("interval").and_then(serde_json::Value::as_u64);
        let once = self.once(interval.map_or(INTERVAL, Nanos));
        Nanos(once.0.saturating_mul(probe.length_factor()))
    }

    /// Duration of one measurement with a sample in each interval, and of its warm-up.
    fn once(&self, interval: Nanos) -> Nanos {
        let length = match self.plan.length {
            Length::For(time) => time,
            Length::Count(count) => Nanos(interval.0.saturating_mul(count)),
        };
        length + self.plan.warm_up
    }
}

/// The time between two samples where a plan does not state it.
const INTERVAL: Nanos = Nanos::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::plan::{ExplainPlan, Watched};

    fn duration(length: Length, watch: Option<Watched>) -> Nanos {
        let plan = Plan::bare("lab:rt", CpuList::default(), length);
        let explain = Some(ExplainPlan { watch, ..ExplainPlan::default() });
        let plan = Plan { explain, warm_up: Nanos::from_secs(1), ..plan };
        Prepared::of(&plan).unwrap().duration()
    }

    #[test]
    fn duration_of_a_plan_that_watches_tasks_is_its_length() {
        let watched = |length| duration(length, Some(Watched::Realtime));
        assert_eq!(watched(Length::For(Nanos::from_secs(60))), Nanos::from_secs(61));
        assert_eq!(watched(Length::Count(5_000)), Nanos::from_secs(6));
        assert_eq!(duration(Length::For(Nanos::from_secs(60)), None), Nanos(0));
    }
}
