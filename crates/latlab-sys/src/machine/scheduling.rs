//! The scheduler: its limits, its watchdogs, and the real-time tasks.

use super::tasks::Tasks;
use crate::root::Root;
use latlab_core::machine::{Cgroup, FairServer, Machine, Scheduling};

pub(super) fn read(root: &Root, machine: &Machine, tasks: Option<Tasks>) -> Scheduling {
    Scheduling {
        rt_period_us: root.number("proc/sys/kernel/sched_rt_period_us"),
        features: root.words("sys/kernel/debug/sched/features"),
        cgroup: cgroup(root, machine),
        fair_server: fair_server(root, machine),
        slice_extension_ns: root.number("sys/kernel/debug/rseq/slice_ext_nsec"),
        timer_migration: root.flag("proc/sys/kernel/timer_migration"),
        numa_balancing: root.number("proc/sys/kernel/numa_balancing"),
        nmi_watchdog: root.flag("proc/sys/kernel/nmi_watchdog"),
        soft_watchdog: root.flag("proc/sys/kernel/soft_watchdog"),
        watchdog_thresh: root.number("proc/sys/kernel/watchdog_thresh"),
        rt_threads_per_cpu: tasks.as_ref().map(|tasks| tasks.per_cpu),
        rt_threads: tasks.map(|tasks| tasks.realtime).unwrap_or_default(),
    }
}

/// The fair server with the longest runtime of the CPUs that are online; the kernel has files for the
/// others too.
fn fair_server(root: &Root, machine: &Machine) -> Option<FairServer> {
    const SERVERS: &str = "sys/kernel/debug/sched/fair_server";
    let all = root.numbered(SERVERS, "cpu").into_iter();
    let servers = all.filter(|(cpu, _)| machine.cpus.contains(*cpu)).filter_map(|(_, cpu)| {
        Some(FairServer {
            runtime_ns: root.number(format!("{SERVERS}/{cpu}/runtime"))?,
            period_ns: root.number(format!("{SERVERS}/{cpu}/period"))?,
        })
    });
    servers.max_by_key(|server| server.runtime_ns)
}

/// The cgroup of latlab, where the kernel limits the real-time runtime of cgroups.
fn cgroup(root: &Root, machine: &Machine) -> Option<Cgroup> {
    let groups = root.text("proc/self/cgroup")?;
    cgroup_v1(root, &groups).or_else(|| cgroup_v2(root, &groups, machine))
}

/// In cgroup v1. Lines are `number:controllers:path`; the file exists only with
/// `CONFIG_RT_GROUP_SCHED`.
fn cgroup_v1(root: &Root, groups: &str) -> Option<Cgroup> {
    let (controllers, path) = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then_some((controllers, path))
    })?;
    // In a container with its own cgroup as the root of the hierarchy, the path is the host's.
    [controllers, "cpu"]
        .into_iter()
        .flat_map(|mount| [path, "/"].map(|path| (format!("sys/fs/cgroup/{mount}{path}"), path)))
        .find_map(|(folder, _)| root.number(format!("{folder}/cpu.rt_runtime_us")))
        .map(|rt_runtime_us| Cgroup { path: path.to_owned(), rt_runtime_us })
}

/// In cgroup v2, which has no file for it: below the root, a group with the `cpu` controller has no
/// real-time runtime at all (Documentation/admin-guide/cgroup-v2.rst, "CPU"), unless the kernel was
/// built or booted without this limit.
fn cgroup_v2(root: &Root, groups: &str, machine: &Machine) -> Option<Cgroup> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let default_off = machine.has_config("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED");
    let enforced = match machine.boot_parameter("rt_group_sched") {
        Some(chosen) => chosen != "0",
        None => machine.has_config("CONFIG_RT_GROUP_SCHED") && !default_off,
    };
    let controlled = ["sys/fs/cgroup", "sys/fs/cgroup/unified"]
        .into_iter()
        .any(|mount| root.has(format!("{mount}{path}/cpu.max")));
    (enforced && controlled).then(|| Cgroup { path: path.to_owned(), rt_runtime_us: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with one file that holds `content`.
    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn tree(path: &str, content: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
        let root = Root::new(folder.path());
        (folder, root)
    }

    fn group(path: &str, rt_runtime_us: i64) -> Cgroup {
        Cgroup { path: path.to_owned(), rt_runtime_us }
    }

    #[test]
    fn cgroup_v1_runtime_is_read_from_its_file() {
        let groups = "5:cpu,cpuacct:/user.slice\n1:name=systemd:/x\n0::/";
        let (_folder, root) = tree("sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.rt_runtime_us", "0\n");
        assert_eq!(cgroup_v1(&root, groups), Some(group("/user.slice", 0)));
        // A container sees its own group as the root, under the path that it has on the host.
        let (_folder, root) = tree("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n");
        assert_eq!(cgroup_v1(&root, groups), Some(group("/user.slice", 950_000)));
        let (_folder, root) = tree("sys/fs/cgroup/cpu/cpu.shares", "1024\n");
        assert_eq!(cgroup_v1(&root, groups), None);
    }

    #[test]
    fn cgroup_v2_below_the_root_has_no_realtime_runtime() {
        let (_folder, root) = tree("sys/fs/cgroup/app.slice/cpu.max", "max 100000\n");
        let mut machine = Machine::default();
        machine.config.insert("CONFIG_RT_GROUP_SCHED".to_owned(), "y".to_owned());
        assert_eq!(cgroup_v2(&root, "0::/app.slice", &machine), Some(group("/app.slice", 0)));
        assert_eq!(cgroup_v2(&root, "0::/", &machine), None);
        "quiet rt_group_sched=0".clone_into(&mut machine.cmdline);
        assert_eq!(cgroup_v2(&root, "0::/app.slice", &machine), None);
        assert_eq!(cgroup_v2(&root, "0::/app.slice", &Machine::default()), None);
    }
}
