//! latlab
fn main() {}
