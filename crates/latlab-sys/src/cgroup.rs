//! Membership of this process in a control group (`cgroups(7)`), of version 1 or 2.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The membership of this process, all its threads included. Dropping this moves it back.
#[derive(Debug)]
pub struct Member {
    /// The group it was in.
    before: PathBuf,
}

/// Whether there is a control group with this folder.
pub fn exists(folder: &Path) -> bool {
    folder.join(PROCESSES).is_file()
}

/// Moves this process to the control group with this folder. Children that exist stay where they
/// are.
pub fn join(folder: &Path) -> io::Result<Member> {
    let folder = folder.canonicalize()?;
    let before = groups()?;
    move_to(&folder)?;
    let after = groups()?;
    let change = before.lines().zip(after.lines()).find(|(before, after)| before != after);
    let before = change.map_or(folder.clone(), |(before, after)| sibling(&folder, after, before));
    Ok(Member { before })
}

impl Drop for Member {
    fn drop(&mut self) {
        // The group may have been removed meanwhile.
        let _ = move_to(&self.before);
    }
}

/// The file of a group that lists its processes.
const PROCESSES: &str = "cgroup.procs";

fn move_to(folder: &Path) -> io::Result<()> {
    let mut file = fs::File::options().write(true).open(folder.join(PROCESSES))?;
    // 0 is the process that writes.
    file.write_all(b"0")
}

/// The groups of this process, a line for each hierarchy: `ID:CONTROLLERS:PATH`.
fn groups() -> io::Result<String> {
    fs::read_to_string("/proc/self/cgroup")
}

/// The folder of the group in the line `other`. `folder` is the folder of the group in the line
/// `own`, in the same hierarchy.
fn sibling(folder: &Path, own: &str, other: &str) -> PathBuf {
    let depth = Path::new(path(own)).components().count().saturating_sub(1);
    let root = folder.ancestors().nth(depth).unwrap_or(folder);
    root.join(path(other).trim_start_matches('/'))
}

/// The path of a line, below the root of its hierarchy.
fn path(line: &str) -> &str {
    line.splitn(3, ':').nth(2).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_before_is_found_from_the_one_joined() {
        let found = |folder: &str, own, other| sibling(Path::new(folder), own, other);
        let unified = found("/sys/fs/cgroup/a/b", "0::/a/b", "0::/user.slice/session-2.scope");
        assert_eq!(unified, Path::new("/sys/fs/cgroup/user.slice/session-2.scope"));
        let first = found("/sys/fs/cgroup/cpu/rt", "4:cpu,cpuacct:/rt", "4:cpu,cpuacct:/");
        assert_eq!(first, Path::new("/sys/fs/cgroup/cpu"));
        assert_eq!(found("/sys/fs/cgroup", "0::/", "0::/x"), Path::new("/sys/fs/cgroup/x"));
    }
}
