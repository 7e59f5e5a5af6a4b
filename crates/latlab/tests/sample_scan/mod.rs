//! Scans such as a record has, for tests: of kernels made of numbers, by the real survey.

use latlab_core::plan::{Part, ScanPlan};
use latlab_core::random::Random;
use latlab_core::scan::{Interrupt, Measurement, Offset, Scan, Spread, Survey};
use latlab_core::time::Nanos;

/// A kernel made of numbers.
struct Kernel {
    profile: &'static str,
    duration: u64,
    baseline: u64,
    /// What can't be preempted.
    stretches: &'static [(Offset, Offset)],
    /// Most measurements are late by up to this, and one in ten by up to a hundred times as much.
    noise: u64,
}

/// Of one call: a triangle of 482 µs, four triangles, none, and what a busy machine shows.
const KERNELS: [Kernel; 4] = [
    Kernel {
        profile: "standard",
        duration: 482_000,
        baseline: 3_200,
        stretches: &[(0, 482_000)],
        noise: 1,
    },
    Kernel {
        profile: "low-latency",
        duration: 490_000,
        baseline: 3_300,
        stretches: &[(0, 121_000), (121_000, 243_000), (243_000, 365_000), (365_000, 490_000)],
        noise: 1,
    },
    Kernel { profile: "rt", duration: 497_000, baseline: 3_800, stretches: &[], noise: 1 },
    Kernel {
        profile: "busy",
        duration: 520_000,
        baseline: 5_100,
        stretches: &[(40_000, 190_000), (260_000, 275_000), (300_000, 470_000)],
        noise: 600,
    },
];

/// The scans of `populate:size=4MiB` on all of them.
pub(crate) fn scans() -> Vec<Scan> {
    KERNELS.iter().map(scan).collect()
}

fn scan(kernel: &Kernel) -> Scan {
    let params = [("size".to_owned(), (4 << 20).into())].into_iter().collect();
    let plan = ScanPlan {
        call: Part { name: "populate".to_owned(), params },
        points: 100,
        resolution: Nanos(100),
        repeat: 20,
        interrupt: None,
        limit: Nanos::from_secs(60),
    };
    let duration = Nanos(kernel.duration);
    let mut survey = Survey::new(&plan, duration);
    let mut random = Random::new(7);
    let mut below = |limit| random.next().unwrap_or_default() % limit;
    loop {
        let offsets = survey.next();
        if offsets.is_empty() {
            break;
        }
        for offset in offsets {
            let most = if below(10) == 0 { 100 * kernel.noise } else { kernel.noise };
            survey.add(offset, kernel.measured(offset, Nanos(below(most))));
        }
    }
    let mut found = survey.findings();
    if let [only] = found.regions.as_mut_slice() {
        only.function = Some("clear_huge_page".to_owned());
    }
    Scan {
        call: plan.call,
        profile: Some(kernel.profile.to_owned()),
        cpu: 1,
        interrupt: Interrupt::Driver,
        duration: Spread { min: duration, median: duration, max: duration },
        baseline: found.baseline,
        noise: found.noise,
        points: found.points,
        regions: found.regions,
        parts: Vec::new(),
    }
}

impl Kernel {
    fn measured(&self, offset: Offset, late: Nanos) -> Measurement {
        let within = self.stretches.iter().find(|(start, end)| (*start..*end).contains(&offset));
        let rest = within.map_or(0, |(_, end)| end.abs_diff(offset));
        Measurement {
            offset,
            pdlt: Nanos(self.baseline + rest) + late,
            irt: Some(Nanos(900) + late),
            duration: Nanos(self.duration),
        }
    }
}
