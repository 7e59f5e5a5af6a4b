//! The guest's disk: a file system that mke2fs makes on the host, so that no guest needs the program.
//!
//! The guest gets the pages that are not empty, and writes them to its disk in memory.

use latlab_core::size::Bytes;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::{file, process};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The configuration of mke2fs: the file system does not depend on that of the host.
const CONFIGURATION: &[u8] = b"[defaults]
base_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
default_mntopts = acl,user_xattr
blocksize = 4096
inode_size = 256
inode_ratio = 16384
[fs_types]
ext4 = {
features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize
}
";

/// Identifier of the file system, and seed of its hashes.
const IDENTIFIER: &str = "6c61746c-6162-4000-8000-000000000000";

/// The pages of an ext4 file system of this size, each after its offset.
pub(super) fn pages(size: Bytes) -> Result<Vec<u8>> {
    let program = program()?;
    make(&program, size).at(&program)
}

fn make(program: &Path, size: Bytes) -> io::Result<Vec<u8>> {
    let (mut configured, disk) = (file::in_memory()?, file::in_memory()?);
    configured.write_all(CONFIGURATION)?;
    disk.set_len(size.0)?;
    let mut mke2fs = process::command(program);
    let path = |fd| format!("/proc/self/fd/{fd}");
    let configuration = path(process::inherit(&mut mke2fs, &configured));
    mke2fs.env("MKE2FS_CONFIG", configuration);
    // The file system is dated 2020, as the guest is.
    mke2fs.env("E2FSPROGS_FAKE_TIME", "1577836800").env("SOURCE_DATE_EPOCH", "1577836800");
    let options = format!("hash_seed={IDENTIFIER},lazy_itable_init=0,nodiscard");
    mke2fs.args(["-q", "-F", "-t", "ext4", "-U", IDENTIFIER, "-E", &options]);
    let disk_path = path(process::inherit(&mut mke2fs, &disk));
    let made = process::output(mke2fs.arg(disk_path))?;
    if !made.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).trim().to_owned()));
    }
    let mut pages = Vec::new();
    file::for_each_page(&disk, |at, page| {
        pages.extend(at.to_le_bytes());
        pages.extend_from_slice(page);
        Ok(())
    })?;
    Ok(pages)
}

fn program() -> Result<PathBuf> {
    let places = ["/sbin/mke2fs", "/usr/sbin/mke2fs"].map(Path::new);
    places.into_iter().find(|path| path.exists()).map(Path::to_owned).ok_or_else(|| {
        let why = "a guest's disk needs mke2fs, which is not installed: apt-get install e2fsprogs";
        Failure::unsupported(why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_guest::disk::{OFFSET, PAGE};
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn disk_is_the_same_each_time_and_a_valid_file_system() {
        let pages = pages(Bytes(64 << 20)).unwrap();
        assert_eq!(pages, super::pages(Bytes(64 << 20)).unwrap());
        assert_eq!(pages.len() % (OFFSET + PAGE), 0);
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(64 << 20).unwrap();
        for page in pages.chunks_exact(OFFSET + PAGE) {
            let offset = u64::from_le_bytes(page[..OFFSET].try_into().unwrap());
            image.as_file().write_all_at(&page[OFFSET..], offset).unwrap();
        }
        let mut check = process::command("/sbin/e2fsck");
        let checked = process::output(check.args(["-f", "-n"]).arg(image.path())).unwrap();
        assert!(checked.status.success(), "{checked:?}");
    }
}
