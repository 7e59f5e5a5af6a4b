//! Arguments of QEMU's plugin: the samples to record, whether to count misses, and the functions by
//! which it finds sections.

use latlab_core::time::Nanos;
use std::path::PathBuf;

/// The plugin that records executed instructions, and which samples it records.
#[derive(Clone, Debug)]
pub(crate) struct Plugin {
    /// The shared library.
    pub library: PathBuf,
    /// Whether it counts the misses of modelled caches and TLBs.
    pub misses: bool,
    /// The samples: index and latency.
    pub samples: Vec<(u64, Nanos)>,
    /// Entry addresses of the kernel's fault handlers.
    pub faults: Vec<u64>,
    /// Address of the per-CPU preemption counter, where the kernel has one.
    pub preempt_count: Option<u64>,
    /// The functions by which it finds the longest sections, where it does.
    pub sections: Option<Sections>,
}

/// Functions that begin and end sections.
#[derive(Clone, Debug)]
pub(crate) struct Sections {
    /// Addresses, each with the letter of its role.
    pub roles: Vec<(u64, char)>,
    /// Begin and end of the stubs of device interrupts.
    pub stubs: Option<(u64, u64)>,
}

impl Plugin {
    /// Whether it records something that only a guest that runs can show.
    pub(crate) fn records(&self) -> bool {
        !self.samples.is_empty() || self.sections.is_some()
    }

    /// The value of QEMU's option `-plugin`; the recording goes to the file `out`.
    pub(super) fn argument(&self, out: &str) -> String {
        let samples =
            self.samples.iter().map(|(index, latency)| format!(",sample={index}:{}", latency.0));
        let faults = self.faults.iter().map(|address| format!(",fault={address:x}"));
        let preempt = self.preempt_count.iter().map(|address| format!(",preempt={address:x}"));
        let misses = self.misses.then(|| ",misses=on".to_owned());
        let sections = self.sections.iter().map(Sections::arguments);
        let rest: String =
            samples.chain(faults).chain(preempt).chain(misses).chain(sections).collect();
        // QEMU reads two commas as one comma of the name.
        let library = self.library.display().to_string().replace(',', ",,");
        format!("file={library},out={out}{rest}")
    }
}

impl Sections {
    fn arguments(&self) -> String {
        let roles = self.roles.iter().map(|(address, role)| format!(",role={address:x}:{role}"));
        let stubs = self.stubs.iter().map(|(begin, end)| format!(",stubs={begin:x}:{end:x}"));
        roles.chain(stubs).chain([",sections=on".to_owned()]).collect()
    }
}
