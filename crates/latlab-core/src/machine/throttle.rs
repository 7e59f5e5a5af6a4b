//! Throttles: what takes a CPU from real-time tasks, so that the others can run.

use super::Machine;

/// A mechanism of the kernel that takes a CPU from real-time tasks, whatever their priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// Once the real-time tasks of a CPU have run for `kernel.sched_rt_runtime_us`, they wait until
    /// the period ends. Up to Linux 6.11 always, since then with `CONFIG_RT_GROUP_SCHED` only
    /// (Documentation/scheduler/sched-rt-group.rst).
    RtRuntime,
    /// A `SCHED_DEADLINE` server runs the `SCHED_OTHER` tasks of a CPU that starve, before all
    /// real-time tasks. Since Linux 6.12 (`/sys/kernel/debug/sched/fair_server`;
    /// Documentation/scheduler/sched-deadline.rst).
    FairServer,
}

impl Throttle {
    /// Returns the knob that switches it off, and the value for that.
    pub fn switched_off_by(self) -> (&'static str, &'static str) {
        match self {
            Throttle::RtRuntime => ("rt_runtime_us", "-1"),
            Throttle::FairServer => ("fair_server", "0"),
        }
    }

    /// Returns its name, as a clause.
    pub fn name(self) -> &'static str {
        match self {
            Throttle::RtRuntime => "throttling of real-time tasks",
            Throttle::FairServer => "the fair server (SCHED_DEADLINE server of SCHED_OTHER tasks)",
        }
    }

    /// Returns how long real-time tasks may run in each period, and the period, in microseconds.
    /// For a fair server that can't be read: the kernel's initial values.
    pub fn runtime_and_period_us(self, machine: &Machine) -> (u64, u64) {
        match self {
            Throttle::RtRuntime => {
                let runtime = machine.rt_runtime_us.and_then(|us| u64::try_from(us).ok());
                let period = machine.rt_period_us();
                (runtime.unwrap_or(period), period)
            }
            Throttle::FairServer => {
                let known = machine.scheduling.fair_server.as_ref();
                known.map_or((950_000, 1_000_000), |server| {
                    let left = server.period_ns.saturating_sub(server.runtime_ns);
                    (left / 1_000, server.period_ns / 1_000)
                })
            }
        }
    }
}

impl Machine {
    /// Returns the throttles that are on, the one that acts first before the other. If it is not
    /// known whether the kernel limits groups of real-time tasks, the limit on all of them may be
    /// on, and comes last.
    pub fn throttles(&self) -> Vec<Throttle> {
        let groups = self.limits_rt_groups();
        let has_server = self.has_fair_server();
        let known = self.scheduling.fair_server.as_ref();
        let is_serving = has_server && known.is_none_or(|server| server.runtime_ns > 0);
        let is_limited = self.has_rt_limit() && (!has_server || groups != Some(false));
        // Tasks that run while others are throttled do not starve, so that their server waits.
        let order = if groups == Some(true) {
            [(is_limited, Throttle::RtRuntime), (is_serving, Throttle::FairServer)]
        } else {
            [(is_serving, Throttle::FairServer), (is_limited, Throttle::RtRuntime)]
        };
        order.into_iter().filter_map(|(is_on, throttle)| is_on.then_some(throttle)).collect()
    }

    /// Whether the kernel has a fair server: since Linux 6.12.
    pub fn has_fair_server(&self) -> bool {
        let is_new = self.kernel_version().is_some_and(|version| version >= (6, 12));
        is_new || self.scheduling.fair_server.is_some()
    }

    /// Returns the period of [`Throttle::RtRuntime`] in microseconds; a second by default.
    pub fn rt_period_us(&self) -> u64 {
        self.scheduling.rt_period_us.unwrap_or(1_000_000)
    }

    /// Whether `sched_rt_runtime_us` leaves a part of each period to other tasks.
    fn has_rt_limit(&self) -> bool {
        let runtime = self.rt_runtime_us.and_then(|us| u64::try_from(us).ok());
        runtime.is_some_and(|runtime| runtime < self.rt_period_us())
    }

    /// Whether the kernel limits groups of real-time tasks; none if that is not known.
    fn limits_rt_groups(&self) -> Option<bool> {
        // A group with a limit of its own has it by this option only.
        let built = match self.config("CONFIG_RT_GROUP_SCHED") {
            _ if self.scheduling.cgroup.is_some() => return Some(true),
            Some(value) => value == "y",
            None => return None,
        };
        let can_be_off = built && self.has_config("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED");
        match self.boot_parameter("rt_group_sched").filter(|_| built) {
            // Whether the root group keeps its limit if groups are switched off is not documented.
            Some("0") => None,
            Some(_) => Some(true),
            None if can_be_off => None,
            None => Some(built),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Cgroup, FairServer};
    use Throttle::{FairServer as Server, RtRuntime};

    /// A kernel of this version, with the limit and the fair server that it begins with.
    fn machine(kernel: &str, config: &[&str]) -> Machine {
        let mut machine = Machine {
            kernel: kernel.to_owned(),
            rt_runtime_us: Some(950_000),
            ..Machine::default()
        };
        machine.config.extend(config.iter().map(|option| ((*option).to_owned(), "y".to_owned())));
        machine
    }

    fn server(runtime_ns: u64) -> FairServer {
        FairServer { runtime_ns, period_ns: 1_000_000_000 }
    }

    const GROUPS: &str = "CONFIG_RT_GROUP_SCHED";
    const OTHER: &str = "CONFIG_PREEMPT_RT";

    #[test]
    fn kernel_before_6_12_limits_the_runtime_of_real_time_tasks() {
        for config in [&[][..], &[OTHER], &[GROUPS]] {
            assert_eq!(machine("6.11.2", config).throttles(), [RtRuntime]);
        }
    }

    #[test]
    fn kernel_since_6_12_has_the_fair_server_alone() {
        for kernel in ["6.12.0", "7.3.1-rt"] {
            assert_eq!(machine(kernel, &[OTHER]).throttles(), [Server]);
        }
        let mut older = machine("6.6.0", &[OTHER]);
        older.scheduling.fair_server = Some(server(50_000_000));
        assert_eq!(older.throttles(), [Server], "its folder is there");
    }

    #[test]
    fn kernel_that_limits_groups_has_both_throttles() {
        assert_eq!(machine("6.12.0", &[GROUPS]).throttles(), [RtRuntime, Server]);
        let mut of_group = machine("6.12.0", &[]);
        of_group.scheduling.cgroup = Some(Cgroup::default());
        assert_eq!(of_group.throttles(), [RtRuntime, Server]);
    }

    #[test]
    fn limit_comes_last_where_it_is_not_known_to_be_on() {
        assert_eq!(machine("6.12.0", &[]).throttles(), [Server, RtRuntime]);
        let mut off = machine("6.16.0", &[GROUPS, "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED"]);
        assert_eq!(off.throttles(), [Server, RtRuntime]);
        "quiet rt_group_sched=1".clone_into(&mut off.cmdline);
        assert_eq!(off.throttles(), [RtRuntime, Server]);
        let mut off = machine("6.16.0", &[GROUPS]);
        "rt_group_sched=0".clone_into(&mut off.cmdline);
        assert_eq!(off.throttles(), [Server, RtRuntime]);
    }

    #[test]
    fn throttle_that_is_off_is_left_out() {
        let mut of_server = machine("6.12.0", &[OTHER]);
        of_server.scheduling.fair_server = Some(server(0));
        assert_eq!(of_server.throttles(), []);
        let mut of_both = machine("6.12.0", &[GROUPS]);
        of_both.scheduling.fair_server = Some(server(0));
        assert_eq!(of_both.throttles(), [RtRuntime]);
        of_both.rt_runtime_us = Some(-1);
        assert_eq!(of_both.throttles(), []);
        for runtime in [None, Some(-1), Some(1_000_000)] {
            let unlimited = Machine { rt_runtime_us: runtime, ..machine("6.1.0", &[]) };
            assert_eq!(unlimited.throttles(), [], "{runtime:?}");
        }
        assert_eq!(Machine::default().throttles(), []);
    }

    #[test]
    fn throttle_leaves_real_time_tasks_the_rest_of_its_period() {
        let mut machine = machine("6.12.0", &[]);
        machine.scheduling.rt_period_us = Some(2_000_000);
        assert_eq!(RtRuntime.runtime_and_period_us(&machine), (950_000, 2_000_000));
        assert_eq!(Server.runtime_and_period_us(&machine), (950_000, 1_000_000));
        machine.scheduling.fair_server =
            Some(FairServer { runtime_ns: 20_000_000, period_ns: 100_000_000 });
        assert_eq!(Server.runtime_and_period_us(&machine), (80_000, 100_000));
    }
}
