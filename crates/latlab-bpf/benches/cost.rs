//! Cost of the recorder: the run time of each program while two real-time threads sleep a
//! millisecond at a time. The cost of counting runs is included. With two arguments, a duration in
//! seconds and a threshold in nanoseconds, it only watches all real-time threads for that time. With
//! `sparse`, only the switches are recorded that a flight recorder needs.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use latlab_bpf::{Detail, Recorder, RecorderError, Watch};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::sched::{self, Policy};

fn main() -> Result<(), RecorderError> {
    let numbers: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let length = Nanos::from_secs(numbers.first().copied().unwrap_or(2));
    let threshold = Nanos(numbers.get(1).copied().unwrap_or(1_000_000_000));
    let sparse = std::env::args().any(|word| word == "sparse");
    let detail = if sparse { Detail::Sparse } else { Detail::Full };
    let recorder = Recorder::start_with(&Watch::RealTime, threshold, detail)?;
    let end = clock::now() + length;
    if numbers.is_empty() {
        for _ in 0..2 {
            std::thread::spawn(move || sleep_often(end));
        }
    }
    let mut windows = 0;
    while clock::now() < end {
        let read = recorder.read(Nanos::from_millis(100), &mut |_| windows += 1);
        read.expect("the ring buffer can be read");
    }
    println!("{windows} windows, {:?}, missing {:?}", recorder.losses(), recorder.missing());
    println!("counted for {}", recorder.counted());
    println!("{:28} {:>9} {:>8} {:>9} {:>6}", "program", "runs", "ns each", "verified", "bytes");
    for program in recorder.cost() {
        let each = program.time.0 / program.runs.max(1);
        let (name, runs) = (program.name, program.runs);
        println!("{name:28} {runs:9} {each:8} {:9} {:6}", program.verified, program.machine_code);
    }
    Ok(())
}

fn sleep_often(end: Nanos) {
    let period = Nanos::from_millis(1);
    sched::set_policy(Policy::Fifo(1)).expect("the benchmark runs as root");
    let mut next = clock::now();
    while next < end {
        next = next + period;
        clock::sleep_until(next);
    }
}
