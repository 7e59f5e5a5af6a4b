//! Processes that measuring starts: this program again, with the kind of worker and its orders as words.

use crate::{load, probe, scan};
use latlab_part::failure::Result;

/// A worker of a load.
pub const LOAD: &str = "load-worker";
/// A worker of a probe.
pub const PROBE: &str = "probe-worker";
/// The low-priority task of a scan.
pub const SCAN: &str = "scan-worker";

/// Does the work of a process with this `kind` of worker and `orders`, JSON. None where there is no such kind.
pub fn serve(kind: &str, orders: &str) -> Option<Result<()>> {
    let serve = match kind {
        LOAD => load::serve,
        PROBE => probe::serve,
        SCAN => scan::serve,
        _ => return None,
    };
    Some(serve(orders))
}
