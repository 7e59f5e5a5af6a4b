//! The QEMU plugin that records instructions, built for this machine when first needed.

use super::product::Product;
use super::store::Store;
use super::work::{check_tools, tool};
use super::{Progress, cache};
use latlab_part::failure::Result;
use std::path::PathBuf;

/// The sources of the plugin, from `plugin/`.
const SOURCES: &[(&str, &str)] = &[
    ("Makefile", include_str!("../../../../plugin/Makefile")),
    ("block.c", include_str!("../../../../plugin/block.c")),
    ("block.h", include_str!("../../../../plugin/block.h")),
    ("latlab.c", include_str!("../../../../plugin/latlab.c")),
    ("misses.c", include_str!("../../../../plugin/misses.c")),
    ("misses.h", include_str!("../../../../plugin/misses.h")),
    ("model.c", include_str!("../../../../plugin/model.c")),
    ("model.h", include_str!("../../../../plugin/model.h")),
    ("qemu.h", include_str!("../../../../plugin/qemu.h")),
    ("sections.c", include_str!("../../../../plugin/sections.c")),
    ("sections.h", include_str!("../../../../plugin/sections.h")),
];

/// Required programs and headers, and their packages.
const TOOLS: &[(&str, &str)] =
    &[("gcc", "gcc"), ("make", "make"), ("/usr/include/stdio.h", "libc6-dev")];

/// The plugin, kept in the cache.
pub(super) fn ready(store: &Store, progress: &mut dyn Progress) -> Result<PathBuf> {
    let product = Product {
        what: "the QEMU plugin",
        key: "plugin",
        sources: SOURCES,
        file: "latlab.so",
        kept: (&cache()?, "plugin"),
    };
    product.ready(store, progress, |folder, _, _| {
        check_tools(product.what, TOOLS)?;
        let mut make = tool("make");
        make.args(["CC=gcc", "OUT=latlab.so", "CFLAGS=-O2"]).current_dir(folder);
        Ok(make)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::product::assert_complete;

    #[test]
    fn plugin_sources_are_complete() {
        assert_complete(SOURCES, "plugin");
    }

    #[test]
    fn models_agree_with_naive_ones() {
        let temporary = tempfile::tempdir().unwrap();
        let mut make = tool("make");
        make.args(["-C", concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugin"), "test"]);
        make.arg(format!("TEST={}", temporary.path().join("test").display()));
        let output = latlab_sys::process::output(&mut make).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
