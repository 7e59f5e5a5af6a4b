//! What on a machine spoils latency, by severity.
