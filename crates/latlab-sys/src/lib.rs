//! Every system call of latlab, and every change it makes to a machine.

pub mod file;
