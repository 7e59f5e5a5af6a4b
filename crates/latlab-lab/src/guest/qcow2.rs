//! An empty disk image in QEMU's format qcow2 (`docs/interop/qcow2.txt`), on which QEMU stores the
//! state of a stopped guest's devices. The guest does not have the disk.

/// Clusters have 64 KiB.
const CLUSTER_BITS: u32 = 16;
const CLUSTER: usize = 1 << CLUSTER_BITS;

/// The image: a header, a table of reference counts with one block, and a table of clusters, one
/// cluster each.
pub(super) fn empty() -> Vec<u8> {
    const VERSION: u32 = 3;
    const CLUSTERS: usize = 4;
    /// 2 to this power bits are a reference count.
    const COUNT_ORDER: u32 = 4;
    const HEADER: u32 = 104;
    let cluster = |nth: usize| ((nth * CLUSTER) as u64).to_be_bytes();
    let mut image = Vec::new();
    image.extend(b"QFI\xfb");
    image.extend(VERSION.to_be_bytes());
    // No backing file: its offset, 8 bytes, and its length, 4.
    image.extend([0; 12]);
    image.extend(CLUSTER_BITS.to_be_bytes());
    // The size of the disk, and that it is not encrypted.
    image.extend((1_u64 << 30).to_be_bytes());
    image.extend([0; 4]);
    // The table of clusters: two entries of 512 MiB each, in cluster 3.
    image.extend(2_u32.to_be_bytes());
    image.extend(cluster(3));
    // The table of reference counts: one cluster, at 1.
    image.extend(cluster(1));
    image.extend(1_u32.to_be_bytes());
    // No snapshots (4 bytes and an offset of 8), and three sets of feature flags, 8 bytes each.
    image.extend([0; 36]);
    image.extend(COUNT_ORDER.to_be_bytes());
    image.extend(HEADER.to_be_bytes());
    image.resize(CLUSTERS * CLUSTER, 0);
    image[CLUSTER..][..8].copy_from_slice(&cluster(2));
    for count in image[2 * CLUSTER..].chunks_mut(2).take(CLUSTERS) {
        count.copy_from_slice(&1_u16.to_be_bytes());
    }
    image
}
