//! CPUs that are kept free of work.

use crate::cpulist::CpuList;
use serde::{Deserialize, Serialize};

/// CPUs that are exempt from some of the kernel's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Isolation {
    /// CPUs outside the scheduler's load balancing (`isolcpus=`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<CpuList>,
    /// CPUs whose tick stops while one task runs (`nohz_full=`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nohz_full: Option<CpuList>,
    /// CPUs whose RCU callbacks are run by threads (`rcu_nocbs=`, and all of `nohz_full=`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcu_nocbs: Option<CpuList>,
    /// CPUs that new interrupts may go to (`/proc/irq/default_smp_affinity`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq_affinity: Option<CpuList>,
    /// Whether `irqbalance` runs, which moves interrupts between CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irqbalance: Option<bool>,
}
