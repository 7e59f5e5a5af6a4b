//! The kernel configuration: the options that are recorded.

use crate::root::Root;
use flate2::read::GzDecoder;
use latlab_core::machine::CONFIG;
use std::collections::BTreeMap;
use std::io::Read as _;

/// The options of [`CONFIG`] that are set; empty where no configuration can be read.
pub(super) fn read(root: &Root) -> BTreeMap<String, String> {
    text(root).map(|text| selected(&text)).unwrap_or_default()
}

fn text(root: &Root) -> Option<String> {
    let release = root.text("proc/sys/kernel/osrelease")?;
    let packed = root.bytes("proc/config.gz").and_then(|bytes| {
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).ok()?;
        Some(text)
    });
    packed
        .or_else(|| root.text(format!("boot/config-{release}")))
        .or_else(|| root.text(format!("lib/modules/{release}/config")))
        .or_else(|| root.text(format!("usr/lib/modules/{release}/config")))
}

/// Parses lines `CONFIG_X=value`; the others are comments.
fn selected(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(option, _)| CONFIG.binary_search(option).is_ok())
        .map(|(option, value)| (option.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}
