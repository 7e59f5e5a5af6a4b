//! Links what the static libelf needs beyond itself: libzstd from elfutils 0.189 on, and the search trees that its
//! archive lacks in elfutils 0.192, which is in Debian 13 (<https://sourceware.org/bugzilla/show_bug.cgi?id=32293>).

use std::path::Path;
use std::{env, fs};

fn main() {
    let target = env::var("TARGET").unwrap_or_default().replace('-', "_");
    let variable = format!("LIBBPF_SYS_LIBRARY_PATH_{target}");
    println!("cargo:rerun-if-env-changed={variable}");
    println!("cargo:rerun-if-changed=build.rs");
    let folders = env::var(variable).unwrap_or_default();
    let in_folder =
        |folder: &str| Some(Path::new(folder).join("libelf.a")).filter(|it| it.is_file());
    // Where there is none, libbpf-sys says so.
    let Some(libelf) = folders.split(':').find_map(in_folder) else { return };
    println!("cargo:rerun-if-changed={}", libelf.display());
    let archive = fs::read(&libelf).unwrap_or_default();
    // Its objects come after libelf or before, which not every linker resolves: all of them are linked, and those
    // that nobody calls are left out.
    if has(&archive, b"ZSTD_decompress\0") {
        let folder = libelf.parent().map(Path::to_path_buf).unwrap_or_default();
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:+whole-archive=zstd");
    }
    if has(&archive, b"eu_search_tree_init\0") && !has(index(&archive), b"eu_search_tree_init\0") {
        println!("cargo:rerun-if-changed=src/search_tree.c");
        cc::Build::new()
            .file("src/search_tree.c")
            .link_lib_modifier("+whole-archive")
            .compile("latlab_search_tree");
    }
}

fn has(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

/// The index of the archive: its first member, which has the names of all functions that the archive defines.
fn index(archive: &[u8]) -> &[u8] {
    const HEADER: usize = 8;
    const MEMBER: usize = 60;
    let size = archive.get(HEADER + 48..HEADER + 58).and_then(|text| str::from_utf8(text).ok());
    let size = size.and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(0);
    let begin = (HEADER + MEMBER).min(archive.len());
    &archive[begin..(begin + size).min(archive.len())]
}
