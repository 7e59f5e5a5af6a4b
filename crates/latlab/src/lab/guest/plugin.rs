//! Arguments of QEMU's plugin: the samples to record, and whether to count misses.

use latlab_core::time::Nanos;
use std::path::PathBuf;

/// The plugin that records executed instructions, and which samples it records.
#[derive(Debug)]
pub(crate) struct Plugin {
    /// The shared library.
    pub(crate) library: PathBuf,
    /// Whether it counts the misses of modelled caches and TLBs.
    pub(crate) misses: bool,
    /// The samples: index and latency.
    pub(crate) samples: Vec<(u64, Nanos)>,
    /// Entry addresses of the kernel's fault handlers.
    pub(crate) faults: Vec<u64>,
    /// Address of the per-CPU preemption counter, where the kernel has one.
    pub(crate) preempt_count: Option<u64>,
}

impl Plugin {
    /// The value of QEMU's option `-plugin`; the recording goes to the file `out`.
    pub(super) fn argument(&self, out: &str) -> String {
        let samples =
            self.samples.iter().map(|(index, latency)| format!(",sample={index}:{}", latency.0));
        let faults = self.faults.iter().map(|address| format!(",fault={address:x}"));
        let preempt = self.preempt_count.iter().map(|address| format!(",preempt={address:x}"));
        let misses = self.misses.then(|| ",misses=on".to_owned());
        let rest: String = samples.chain(faults).chain(preempt).chain(misses).collect();
        // QEMU reads two commas as one comma of the name.
        let library = self.library.display().to_string().replace(',', ",,");
        format!("file={library},out={out}{rest}")
    }
}
