//! Sample scans for tests: the real survey on simulated kernels.

use latlab_core::plan::{Part, ScanPlan};
use latlab_core::random::Random;
use latlab_core::scan::{Interrupt, Measurement, Offset, Scan, Spread, Survey};
use latlab_core::time::Nanos;

/// A simulated kernel.
struct Kernel {
    profile: &'static str,
    duration: u64,
    baseline: u64,
    /// Start and end of the non-preemptible sections.
    sections: &'static [(Offset, Offset)],
    /// Upper bound of the noise of most measurements; of one in ten it is a hundred times as much.
    noise: u64,
}

/// For one call: one section of 482 µs, four sections, none, and sections on a busy machine.
const KERNELS: [Kernel; 4] = [
    Kernel {
        profile: "standard",
        duration: 482_000,
        baseline: 3_200,
        sections: &[(0, 482_000)],
        noise: 1,
    },
    Kernel {
        profile: "low-latency",
        duration: 490_000,
        baseline: 3_300,
        sections: &[(0, 121_000), (121_000, 243_000), (243_000, 365_000), (365_000, 490_000)],
        noise: 1,
    },
    Kernel { profile: "rt", duration: 497_000, baseline: 3_800, sections: &[], noise: 1 },
    Kernel {
        profile: "busy",
        duration: 520_000,
        baseline: 5_100,
        sections: &[(40_000, 190_000), (260_000, 275_000), (300_000, 470_000)],
        noise: 600,
    },
];

/// Returns the scans of `populate:size=4MiB` on all kernels.
pub fn scans() -> Vec<Scan> {
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
            let bound = if below(10) == 0 { 100 * kernel.noise } else { kernel.noise };
            survey.add(offset, kernel.measured(offset, Nanos(below(bound))));
        }
    }
    let mut found = survey.findings();
    if let [only] = found.sections.as_mut_slice() {
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
        sections: found.sections,
        parts: Vec::new(),
    }
}

impl Kernel {
    fn measured(&self, offset: Offset, late: Nanos) -> Measurement {
        let within = self.sections.iter().find(|(start, end)| (*start..*end).contains(&offset));
        let rest = within.map_or(0, |(_, end)| end.abs_diff(offset));
        Measurement {
            offset,
            pdlt: Nanos(self.baseline + rest) + late,
            irt: Some(Nanos(900) + late),
            duration: Nanos(self.duration),
        }
    }
}
