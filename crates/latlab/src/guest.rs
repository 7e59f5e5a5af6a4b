//! Guests: machines made of a kernel and a root that is packed on the fly.

mod archive;
mod library;
mod module;
