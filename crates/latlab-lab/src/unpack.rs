//! Decompression with budgets: a small file can claim to be any size.

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, ErrorKind, Read};

/// The formats in which kernels and modules are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Xz,
    Zstd,
}

/// Most memory for the dictionary of a stream, KiB; the build of Linux uses half of it at most.
const DICTIONARY_KIB: u32 = 256 << 10;

/// Unpacks a stream, and verifies its checksum. An error where it is damaged, or unpacked larger than
/// `most` bytes.
pub(crate) fn unpack(packing: Packing, packed: &[u8], most: u64) -> io::Result<Vec<u8>> {
    match packing {
        Packing::Gzip => read(&mut MultiGzDecoder::new(packed), most),
        Packing::Xz => read(&mut XzReader::new_mem_limit(packed, true, DICTIONARY_KIB), most),
        // ruzstd has a limit on dictionaries of its own, and leaves the checksum to its user.
        Packing::Zstd => {
            let mut reader = StreamingDecoder::new(packed).map_err(io::Error::other)?;
            let bytes = read(&mut reader, most)?;
            match reader.decoder.get_checksum_from_data() {
                Some(sum) if reader.decoder.get_calculated_checksum() != Some(sum) => {
                    Err(io::Error::new(ErrorKind::InvalidData, "its checksum is wrong"))
                }
                _ => Ok(bytes),
            }
        }
    }
}

fn read(from: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("unpacked it has more than {most} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    /// `head -c 1000 /dev/zero | xz --check=crc32`.
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x03, 0xe7, 0x00, 0x0b, 0x5d,
        0x00, 0x00, 0x6f, 0xfd, 0xff, 0xff, 0xa3, 0xb7, 0x5a, 0x0d, 0x5e, 0x00, 0x00, 0x00, 0x80,
        0x17, 0x0b, 0x06, 0x00, 0x01, 0x23, 0xe8, 0x07, 0x00, 0x00, 0x00, 0xe2, 0x17, 0x1e, 0xc7,
        0x3e, 0x30, 0x0d, 0x8b, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    #[test]
    fn unpack_refuses_more_than_its_budget() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&[0; 1_000]).unwrap();
        let gzip = encoder.finish().unwrap();
        let zstd = ruzstd::encoding::compress_to_vec(
            &[0_u8; 1_000][..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for (packing, packed) in
            [(Packing::Gzip, gzip.as_slice()), (Packing::Zstd, &zstd), (Packing::Xz, XZ)]
        {
            assert_eq!(unpack(packing, packed, 1_000).unwrap(), [0; 1_000], "{packing:?}");
            let refused = unpack(packing, packed, 999).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::FileTooLarge, "{packing:?}");
        }
    }

    #[test]
    fn unpack_refuses_a_dictionary_that_takes_all_memory() {
        let (mut xz, dictionary_of_4_gib) = (XZ.to_vec(), 40);
        let (header, sum) = (12..20, 20..24);
        xz[16] = dictionary_of_4_gib;
        let mut crc = flate2::Crc::new();
        crc.update(&xz[header]);
        xz[sum].copy_from_slice(&crc.sum().to_le_bytes());
        let refused = unpack(Packing::Xz, &xz, 1_000).unwrap_err().to_string();
        assert!(refused.contains("memory"), "{refused}");
    }
}
