//! The orders of a guest: how latlab prepares it, and the job that follows.

use latlab_core::machine::TimeDomain;
use latlab_core::plan::Plan;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Path of the orders in the guest.
pub const ORDERS: &str = "/latlab.orders";
/// Path of the job in the guest.
pub const JOB: &str = "/latlab.job";
/// Path of the init process in the guest.
pub const INIT: &str = "/latlab-guest";
/// Path of latlab in a guest whose job starts it.
pub const PROGRAM: &str = "/latlab";
/// The name of the test driver's module.
pub const DRIVER: &str = "latlab";
/// The folder of the modules that the guest loads.
pub const MODULES: &str = "/modules";
/// The size of a page of memory, bytes.
const PAGE: usize = 4096;

/// Environment variables: name and value.
pub type Variables = BTreeMap<String, String>;

/// The environment variables of every program in a guest. They do not depend on those of this process.
pub fn usual_variables() -> Variables {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let of_all = [("HOME", "/"), ("PATH", path)];
    of_all.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// How a guest is prepared, whatever its job is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    /// Its serial port to latlab on the host, a name in /dev; the other one is the console.
    pub port: String,
    /// Time domain of its clock.
    pub time_domain: TimeDomain,
    /// The modules in [`MODULES`] with their parameters, in the order to load them.
    pub modules: Vec<String>,
    /// Whether it has the test driver.
    pub driver: bool,
    /// Whether it forgets the device of the driver before it stops, as the machine can't plug it in.
    pub forgets_device: bool,
    /// The function with which its kernel begins to calibrate the timer, and the variable with the result.
    pub calibration: Option<[String; 2]>,
    /// Values to write, by file.
    pub files: BTreeMap<String, String>,
    /// The folder that lies on a disk.
    pub disk: Option<PathBuf>,
}

/// The contents of a file of orders. It fills whole pages: otherwise one more digit in a plan would
/// move the contents of the guest's memory, and change its figures.
pub fn text(orders: &impl Serialize) -> Vec<u8> {
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
    /// Start a program through latlab.
    Exec {
        /// The words after `latlab`.
        words: Vec<String>,
        /// The working directory.
        folder: PathBuf,
        /// The environment.
        variables: Variables,
    },
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
    pub fn shortest(&self) -> Nanos {
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
