//! The test driver, built for a kernel when first needed.

use super::product::Product;
use super::store::Store;
use super::work::{check_tools, make};
use super::{Kernel, Progress, headers, unknown};
use latlab_part::failure::Result;
use std::path::PathBuf;

/// The sources of the driver, from `kmod/`.
const SOURCES: &[(&str, &str)] = &[
    ("Makefile", include_str!("../../../../kmod/Makefile")),
    ("cycles.h", include_str!("../../../../kmod/cycles.h")),
    ("device.c", include_str!("../../../../kmod/device.c")),
    ("driver.h", include_str!("../../../../kmod/driver.h")),
    ("edu.c", include_str!("../../../../kmod/edu.c")),
    ("inject.c", include_str!("../../../../kmod/inject.c")),
    ("interrupt.c", include_str!("../../../../kmod/interrupt.c")),
    ("latlab.h", include_str!("../../../../kmod/latlab.h")),
    ("loop.c", include_str!("../../../../kmod/loop.c")),
    ("schedule.c", include_str!("../../../../kmod/schedule.c")),
];

/// The driver for `kernel`, kept in the kernel's folder.
pub(super) fn ready(
    store: &Store,
    kernel: &Kernel,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let product = Product {
        what: &format!("the test driver for {}", kernel.name),
        key: &format!("driver-{}", kernel.name),
        sources: SOURCES,
        file: "latlab.ko",
        kept: (&kernel.folder, "latlab"),
    };
    product.ready(store, progress, |folder, draft, progress| {
        let arch = kernel.arch;
        let [prefix, package] = if arch.is_host() { ["", "gcc"] } else { arch.cross_compiler };
        let compiler = format!("{prefix}gcc");
        check_tools("the test driver", &[(&compiler, package), ("make", "make")])?;
        let kernels = store.kernels()?;
        let facts = kernels.iter().find(|(other, _)| other.name == kernel.name);
        let (_, facts) = facts.ok_or_else(|| unknown(store, &kernel.name))?;
        let tree = headers::of(kernel, facts, draft, progress)?;
        let module = format!("M={}", folder.display());
        // Debug information is most of the module, and contains the name of the build folder.
        let (compiler, prefix) = (format!("CC={compiler}"), format!("CROSS_COMPILE={prefix}"));
        let no_debug_info = ["CONFIG_DEBUG_INFO=", "CONFIG_DEBUG_INFO_BTF_MODULES="];
        let words = [&[compiler.as_str(), &prefix, &module], &no_debug_info[..], &["modules"]];
        Ok(make(&tree, arch, &words.concat()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::product::assert_complete;

    #[test]
    fn driver_sources_are_complete() {
        assert_complete(SOURCES, "kmod");
    }
}
