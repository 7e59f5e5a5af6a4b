//! Background activities of the memory management.

use serde::{Deserialize, Serialize};

/// Paging, merging and huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Transparent huge pages: `always`, `madvise` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_hugepage: Option<String>,
    /// Whether same-page merging (KSM) is on (`/sys/kernel/mm/ksm/run`; 1: yes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ksm: Option<u32>,
    /// Size of all swap areas in KiB (`/proc/swaps`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_kib: Option<u64>,
    /// Swap in use, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_kib: Option<u64>,
    /// Preference for swapping anonymous memory, 0 to 200 (`vm.swappiness`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swappiness: Option<u32>,
    /// Seconds between updates of the memory statistics on each CPU (`vm.stat_interval`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stat_interval: Option<u32>,
}
