//! Nothing of a recording is left when it has ended.
#![expect(clippy::tests_outside_test_module, reason = "a file in this folder is one test module")]

use latlab_bpf::wakers::Wakers;
use latlab_bpf::{Recorder, Watch};
use latlab_core::time::Nanos;

/// The open files of this process that are programs, maps or links of BPF. They exist as long as
/// somebody has them open, so that they end with the process, however that ends.
fn held() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("it is there").flatten();
    let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    names.filter(|name| name.to_string_lossy().contains("bpf")).count()
}

#[test]
fn programs_are_held_by_open_files_and_gone_with_them() {
    if Recorder::check().is_err() {
        return;
    }
    let recorder = Recorder::start(&Watch::RealTime, Nanos::from_secs(1)).expect("it starts");
    let attached = recorder.cost().len() - recorder.missing().len();
    assert!(held() > 2 * attached, "{} files for {attached} programs and as many links", held());
    drop(recorder);
    assert_eq!(held(), 0);
    if Wakers::check().is_err() {
        return;
    }
    let wakers = Wakers::load().expect("it starts");
    assert!(held() > 2 * wakers.cost().programs.len());
    drop(wakers);
    assert_eq!(held(), 0);
}
