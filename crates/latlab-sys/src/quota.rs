//! CPU quotas of control groups, of version 1 or 2 (Documentation/scheduler/sched-bwc.rst,
//! Documentation/admin-guide/cgroup-v2.rst).

use crate::root::Root;
use latlab_core::explain::quota::Quota;
use latlab_core::time::Nanos;

/// Returns the CPU quota of the control group of a task, or of one above it: of several that which was
/// used up most often. None if there is none, or if the task has ended.
pub fn of_task(root: &Root, pid: u32) -> Option<Quota> {
    let groups = root.text_of_task(format!("proc/{pid}/cgroup")).ok()??;
    let folder = folders(&groups).into_iter().find(|folder| root.has(folder))?;
    let quotas = ancestors(&folder).filter_map(|folder| Some((folder, quota(root, folder)?)));
    let (_, quota) = quotas.max_by_key(|(folder, _)| throttled(root, folder))?;
    Some(quota)
}

/// Folders below `/` that may be the group with the `cpu` controller, by the lines
/// `ID:CONTROLLERS:PATH` of a task. In a container the path is the host's.
fn folders(groups: &str) -> Vec<String> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for line in groups.lines() {
        let Some((controllers, path)) =
            line.split_once(':').and_then(|(_, rest)| rest.split_once(':'))
        else {
            continue;
        };
        let path = path.trim_end_matches('/');
        let at = |mount: &str| format!("{TOP}{mount}{path}");
        if controllers.is_empty() {
            second.extend(["", "/unified"].map(at));
        } else if controllers.split(',').any(|name| name == "cpu") {
            first.extend(["/cpu", "/cpu,cpuacct"].map(at));
        }
    }
    // The first version has the controller where it is mounted.
    [first, second].concat()
}

/// Where hierarchies are mounted.
const TOP: &str = "sys/fs/cgroup";

/// The folder and those above it.
fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| {
        folder.rsplit_once('/').map(|(above, _)| above).filter(|above| above.starts_with(TOP))
    })
}

fn quota(root: &Root, folder: &str) -> Option<Quota> {
    let read = |file: &str| root.number::<u64>(format!("{folder}/{file}"));
    let (runtime, period) = match root.words(format!("{folder}/cpu.max"))[..] {
        [ref runtime, ref period] => (runtime.parse().ok()?, period.parse().ok()?),
        _ => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let [runtime, period] = [runtime, period].map(Nanos::from_micros);
    Some(Quota { group: format!("/{folder}"), runtime, period })
}

/// In how many periods the quota of a group was used up.
fn throttled(root: &Root, folder: &str) -> u64 {
    let text = root.text(format!("{folder}/cpu.stat")).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    count.and_then(|count| count.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with these files and their contents.
    #[expect(clippy::disallowed_methods, reason = "a temporary folder is not the machine")]
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        for (file, content) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("it has a parent"))
                .expect("it is created");
            std::fs::write(path, content).expect("it is written");
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    fn found(files: &[(&str, &str)]) -> Option<String> {
        let (_folder, root) = tree(files);
        of_task(&root, 7).map(|quota| quota.to_string())
    }

    #[test]
    fn quota_of_version_2_is_that_of_the_group_or_of_one_above_it() {
        let name = "CPU quota of the control group /sys/fs/cgroup/a: 20 ms per 100 ms";
        let own = [("proc/7/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/cpu.max", "20000 100000\n")];
        assert_eq!(found(&own).as_deref(), Some(name));
        let above = [
            ("proc/7/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "20000 100000\n"),
        ];
        assert_eq!(found(&above).as_deref(), Some(name));
        let both = [
            ("proc/7/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "nr_periods 9\nnr_throttled 2\n"),
            ("sys/fs/cgroup/a/cpu.max", "20000 100000\n"),
            ("sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 8\n"),
        ];
        assert_eq!(found(&both).as_deref(), Some(name));
    }

    #[test]
    fn quota_of_version_1_is_read_where_its_controller_is_mounted() {
        let files = [
            ("proc/7/cgroup", "4:cpu,cpuacct:/a\n0::/b\n"),
            ("sys/fs/cgroup/b/cpu.max", "1000 2000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
        ];
        let name = "CPU quota of the control group /sys/fs/cgroup/cpu/a: 20 ms per 100 ms";
        assert_eq!(found(&files).as_deref(), Some(name));
    }

    #[test]
    fn group_without_quota_or_of_a_task_that_ended_has_none() {
        assert_eq!(found(&[]), None);
        let unlimited = [
            ("proc/7/cgroup", "1:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(found(&unlimited), None);
    }
}
