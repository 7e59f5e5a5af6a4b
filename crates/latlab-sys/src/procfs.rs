//! Tasks as /proc shows them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The entries of a folder whose names are numbers, as `/proc` has one for each process.
pub(crate) fn numbered(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| number(path).is_some());
    Ok(paths)
}

/// The number that is the name of this entry.
pub(crate) fn number(path: &Path) -> Option<i32> {
    path.file_name()?.to_str()?.parse().ok()
}

/// The name of a task (`comm`).
pub(crate) fn name(task: i32) -> io::Result<String> {
    let name = fs::read_to_string(format!("/proc/{task}/comm"))?;
    Ok(name.trim_end_matches('\n').to_owned())
}

/// A field of `/proc/TASK/stat` after the name, counted from 1 as in `proc_pid_stat(5)`.
pub(crate) fn stat_field<N: FromStr>(task: i32, field: usize) -> io::Result<N> {
    let text = fs::read_to_string(format!("/proc/{task}/stat"))?;
    // The name stands in parentheses and may contain some itself. The third field follows.
    let rest = text.rsplit_once(") ").map(|(_, rest)| rest);
    let value = rest.and_then(|rest| rest.split(' ').nth(field.checked_sub(3)?)?.parse().ok());
    value.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Whether the error of reading a file of a task means that the task has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}
