//! Finds the studies that are built into the program.

#[path = "../../build/table.rs"]
mod table;

use std::path::Path;

fn main() {
    table::table("STUDIES", Path::new("src/study"), "studies.rs");
}
