//! The plugin that watches the laboratory's guests, built for this machine when it is first needed.

use super::product::Product;
use super::store::Store;
use super::work::{check_tools, tool};
use super::{Progress, cache};
use crate::failure::Result;
use std::path::PathBuf;

/// Its sources, as they lie in `plugin/`.
const SOURCES: &[(&str, &str)] = &[
    ("Makefile", include_str!("../../../../../plugin/Makefile")),
    ("block.c", include_str!("../../../../../plugin/block.c")),
    ("block.h", include_str!("../../../../../plugin/block.h")),
    ("latlab.c", include_str!("../../../../../plugin/latlab.c")),
    ("qemu.h", include_str!("../../../../../plugin/qemu.h")),
];

/// What has to be on the machine.
const TOOLS: &[(&str, &str)] =
    &[("gcc", "gcc"), ("make", "make"), ("/usr/include/stdio.h", "libc6-dev")];

/// The plugin, in the cache.
pub(super) fn ready(store: &Store, progress: &mut dyn Progress) -> Result<PathBuf> {
    let product = Product {
        what: "the laboratory's microscope",
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
    use crate::lab::kernel::product::assert_complete;

    #[test]
    fn every_source_is_built_in() {
        assert_complete(SOURCES, "plugin");
    }
}
