//! Finds the profiles that are built into the program.

#[path = "../../build/table.rs"]
mod table;

use std::path::Path;

fn main() {
    table::table("SHIPPED", Path::new("src/profile"), "profiles.rs");
}
