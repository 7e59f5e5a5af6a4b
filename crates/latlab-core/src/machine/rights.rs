//! Permissions and resource limits of latlab itself.

use serde::{Deserialize, Serialize};

/// The command, for root, that gives latlab all capabilities that it uses: `CAP_SYS_NICE` for
/// scheduling policies, `CAP_IPC_LOCK` for locked memory, `CAP_BPF` and `CAP_PERFMON` for tracing.
pub const SETCAP: &str =
    "setcap cap_sys_nice,cap_ipc_lock,cap_bpf,cap_perfmon+ep $(command -v latlab)";

/// Capabilities and resource limits of the measuring process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rights {
    /// The effective capabilities that matter: `CAP_SYS_NICE`, `CAP_IPC_LOCK`, …. Absent if they
    /// can't be read, empty if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// The highest real-time priority without `CAP_SYS_NICE` (`RLIMIT_RTPRIO`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtprio: Option<ResourceLimit>,
    /// Memory in bytes that may be locked without `CAP_IPC_LOCK` (`RLIMIT_MEMLOCK`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memlock: Option<ResourceLimit>,
    /// Microseconds that a real-time thread may run without sleeping before its process is killed
    /// (`RLIMIT_RTTIME`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttime: Option<ResourceLimit>,
}

impl Rights {
    /// Whether the process has a capability; none if that is unknown.
    pub fn can(&self, capability: &str) -> Option<bool> {
        Some(self.capabilities.as_ref()?.iter().any(|had| had == capability))
    }
}

/// The soft value of a resource limit (`getrlimit(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceLimit {
    /// At most this.
    At(u64),
    /// No limit.
    Unlimited,
}
