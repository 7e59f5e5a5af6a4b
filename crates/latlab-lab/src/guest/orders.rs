//! The orders of a guest: how latlab prepares it, and the job that follows.

use latlab_core::machine::TimeDomain;
use latlab_core::plan::Plan;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Path of the orders in the guest.
pub(super) const ORDERS: &str = "/latlab.orders";
/// Path of the job in the guest.
pub(super) const JOB: &str = "/latlab.job";
/// Path of this program in the guest.
pub(crate) const PROGRAM: &str = "/latlab";
/// The folder of the modules that the guest loads.
pub(super) const MODULES: &str = "/modules";
/// The size of a page of memory, bytes.
const PAGE: usize = 4096;

/// Environment variables: name and value.
pub type Variables = BTreeMap<String, String>;

/// The environment variables of every program in a guest. They do not depend on those of this process.
pub(super) fn usual_variables() -> Variables {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let of_all = [("HOME", "/"), ("PATH", path)];
    of_all.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// How a guest is prepared, whatever its job is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    /// Time domain of its clock.
    pub(super) time_domain: TimeDomain,
    /// The modules in [`MODULES`] with their parameters, in the order to load them.
    pub(super) modules: Vec<String>,
    /// Whether it has the test driver.
    pub(super) driver: bool,
    /// Values to write, by file.
    pub(super) files: BTreeMap<String, String>,
    /// The folder that lies on a disk.
    pub(super) disk: Option<PathBuf>,
}

/// The contents of a file of orders. It fills whole pages: otherwise one more digit in a plan would
/// move the contents of the guest's memory, and change its figures.
pub(super) fn text(orders: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(orders).expect("orders are plain data");
    text.resize(text.len().next_multiple_of(PAGE), b' ');
    text
}

/// The job of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Carry out a plan.
    Run(Box<Plan>),
    /// Start a program: the words after `latlab`, the working directory, and the environment.
    Exec { words: Vec<String>, folder: PathBuf, variables: Variables },
    /// Report the kernel's timer calibration.
    Calibrate,
    /// Send the symbols of the kernel and of the modules that this plan needs.
    Symbols(Box<Plan>),
}

impl Job {
    /// Runs latlab with these words, as a program in the root folder.
    pub fn command(words: Vec<String>) -> Job {
        Job::Exec { words, folder: "/".into(), variables: usual_variables() }
    }

    /// Duration of the job in the guest's time, without the measurements of its plan.
    pub(super) fn shortest(&self) -> Nanos {
        match self {
            Job::Exec { .. } => Nanos::from_secs(10),
            Job::Run(_) | Job::Calibrate | Job::Symbols(_) => Nanos::from_secs(2),
        }
    }

    /// Whether the guest leaves out parts whose needs are not met.
    pub fn may_lack(&self) -> bool {
        self.plan().is_some_and(|plan| plan.skip_missing)
    }

    /// The plan whose parts the guest is equipped for.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Job::Run(plan) | Job::Symbols(plan) => Some(plan),
            Job::Exec { .. } | Job::Calibrate => None,
        }
    }
}
