//! Cost of the wakers: the run time of each program in two seconds, or in as many as the argument
//! says, and the wake-ups they report. A load that wakes real-time tasks must be started
//! separately.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use latlab_bpf::RecorderError;
use latlab_bpf::wakers::Wakers;
use latlab_core::time::Nanos;
use latlab_mechanism::Wake;
use latlab_sys::clock;
use std::collections::BTreeMap;

fn main() -> Result<(), RecorderError> {
    let length = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(2);
    let mut wakers = Wakers::load()?;
    let mut reported: BTreeMap<Wake, u64> = BTreeMap::new();
    let end = clock::now() + Nanos::from_secs(length);
    while clock::now() < end {
        clock::sleep_for(Nanos::from_millis(10));
        for wake in wakers.take() {
            *reported.entry(wake).or_default() += 1;
        }
    }
    let cost = wakers.cost();
    for (wake, times) in reported {
        println!("{times} times {wake:?}: {}, {:?}", name(wake.thread), wake.behind.map(name));
    }
    println!("{:?}, counted for {}", wakers.violations(), cost.counted);
    println!("{:28} {:>9} {:>8} {:>9} {:>6}", "program", "runs", "ns each", "verified", "bytes");
    for program in cost.programs {
        let each = program.time.0 / program.runs.max(1);
        let (name, runs) = (program.name, program.runs);
        println!("{name:28} {runs:9} {each:8} {:9} {:6}", program.verified, program.machine_code);
    }
    Ok(())
}

fn name(thread: i32) -> String {
    std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default().trim().to_owned()
}
