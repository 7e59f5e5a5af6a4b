//! Removal of BPF programs: nothing is left after a recording.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::wakers::Wakers;
use latlab_bpf::{Recorder, Watch};
use latlab_core::time::Nanos;

/// Number of open files of this process that are BPF programs, maps or links. The kernel removes
/// them when the last file is closed, so that they end with the process, however it ends.
fn open_bpf_files() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("/proc is mounted").flatten();
    let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with("anon_inode:bpf")).count()
}

#[test]
fn programs_are_held_by_open_files_and_gone_with_them() {
    if !latlab_testing::bpf() {
        return;
    }
    let recorder =
        Recorder::start(&Watch::RealTime, Nanos::from_secs(1)).expect("the recorder starts");
    let attached = recorder.cost().len() - recorder.missing().len();
    assert!(
        open_bpf_files() > 2 * attached,
        "{} files for {attached} programs and as many links",
        open_bpf_files()
    );
    drop(recorder);
    assert_eq!(open_bpf_files(), 0);
    let wakers = Wakers::load().expect("the programs load");
    assert!(open_bpf_files() > 2 * wakers.cost().programs.len());
    drop(wakers);
    assert_eq!(open_bpf_files(), 0);
}
