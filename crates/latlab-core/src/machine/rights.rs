//! What latlab itself is permitted.

use serde::{Deserialize, Serialize};

/// Capabilities and limits of the process that measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rights {
    /// The effective capabilities, of those that matter: `CAP_SYS_NICE`, `CAP_IPC_LOCK`, ….
    /// Absent where they can't be read, empty where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// The highest real-time priority without `CAP_SYS_NICE` (`RLIMIT_RTPRIO`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtprio: Option<Limit>,
    /// Bytes that may be locked in memory without `CAP_IPC_LOCK` (`RLIMIT_MEMLOCK`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memlock: Option<Limit>,
    /// Microseconds that a real-time thread may run without sleeping (`RLIMIT_RTTIME`); the kernel
    /// then kills its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttime: Option<Limit>,
}

impl Rights {
    /// Whether the process is known to have a capability; none where that is not known.
    pub fn can(&self, capability: &str) -> Option<bool> {
        Some(self.capabilities.as_ref()?.iter().any(|had| had == capability))
    }
}

/// The soft value of a resource limit (`getrlimit(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// At most this.
    At(u64),
    /// No limit.
    Unlimited,
}
