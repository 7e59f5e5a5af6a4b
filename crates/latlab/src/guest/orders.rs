//! What a guest is told to do: one file in its initramfs.

use latlab_core::machine::TimeDomain;
use latlab_core::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the guest finds its orders, and this program.
pub(super) const ORDERS: &str = "/latlab.orders";
pub(super) const PROGRAM: &str = "/latlab";
/// A page of memory.
const PAGE: usize = 4096;
/// The folder of the modules that are to be loaded.
pub(super) const MODULES: &str = "/modules";

/// All that a guest knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    /// What its time is made of.
    pub(super) time_domain: TimeDomain,
    /// The modules in [`MODULES`], in the order to load them.
    pub(super) modules: Vec<String>,
    /// What to write into which files.
    pub(super) files: BTreeMap<String, String>,
    /// The folder that is to lie on a disk.
    pub(super) disk: Option<PathBuf>,
    pub(super) job: Job,
}

impl Orders {
    /// What is in the file: whole pages, as one digit more in a plan would otherwise move what the
    /// guest has in memory, and all its times.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).expect("orders are plain data");
        text.resize(text.len().next_multiple_of(PAGE), b' ');
        text
    }
}

/// What a guest is there for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Job {
    /// Carry out a plan.
    Run(Box<Plan>),
    /// Start a program: the words after `latlab exec`, in this folder, with these variables that
    /// say where programs and libraries are.
    Exec { words: Vec<String>, folder: PathBuf, paths: BTreeMap<String, String> },
    /// Find out what a kernel finds out at each boot.
    Learn,
    /// Say which functions the kernel has, and the modules that this plan needs.
    Symbols(Box<Plan>),
}

impl Job {
    /// Whether parts are left out that lack something. Which they are, they find out in the guest.
    pub(super) fn may_lack(&self) -> bool {
        self.plan().is_some_and(|plan| plan.skip_missing)
    }

    /// The plan whose parts the guest is made for.
    pub(super) fn plan(&self) -> Option<&Plan> {
        match self {
            Job::Run(plan) | Job::Symbols(plan) => Some(plan),
            Job::Exec { .. } | Job::Learn => None,
        }
    }
}
