//! ICMP echo requests (RFC 792).

use latlab_core::time::Nanos;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

/// As in `linux/icmp.h`.
const ECHO: u8 = 8;
const ECHO_REPLY: u32 = 0;
const ICMP_FILTER: libc::c_int = 1;
const HEADER: usize = 8;

/// Sends echo requests to one host. Needs `CAP_NET_RAW`.
#[derive(Debug)]
pub struct Pinger {
    socket: UdpSocket,
    packet: Vec<u8>,
    answer: Vec<u8>,
}

impl Pinger {
    /// Sends requests with this number of data bytes, and waits this long for each reply.
    pub fn new(host: Ipv4Addr, data: usize, patience: Nanos) -> io::Result<Pinger> {
        let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
        let fd = socket_with(family, SocketType::RAW, flags, Some(ipproto::ICMP))?;
        receive_only_replies(&fd)?;
        // The functions of std work for any socket that sends packets.
        let socket = UdpSocket::from(fd);
        socket.connect((host, 0))?;
        socket.set_read_timeout(Some(Duration::from_nanos(patience.0)))?;
        // A reply comes with an IP header of at most 60 bytes.
        Ok(Pinger { socket, packet: request(data), answer: vec![0; 60 + HEADER + data] })
    }

    /// Sends one request. Returns whether a reply came in time, before any signal.
    pub fn ask(&mut self) -> io::Result<bool> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        self.socket.send(&self.packet)?;
        match self.socket.recv(&mut self.answer) {
            Ok(_) => Ok(true),
            Err(e) if matches!(e.kind(), Interrupted | WouldBlock) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Filters packets: a raw socket also receives the requests that are sent to this host.
fn receive_only_replies(socket: &OwnedFd) -> io::Result<()> {
    let ignored: u32 = !(1 << ECHO_REPLY);
    let size = libc::socklen_t::try_from(size_of::<u32>()).unwrap_or(4);
    // SAFETY: the option takes four bytes, which `ignored` has.
    crate::checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_RAW,
            ICMP_FILTER,
            (&raw const ignored).cast(),
            size,
        )
    })
    .map(drop)
}

/// An echo request with this number of data bytes.
fn request(data: usize) -> Vec<u8> {
    let mut packet = vec![0; HEADER + data];
    packet[0] = ECHO;
    let sum = checksum(&packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_packet_with_its_checksum_sums_to_zero() {
        // The example of RFC 1071, section 3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        for data in [0, 1, 56, 65_507 - HEADER] {
            let packet = request(data);
            assert_eq!((packet.len(), checksum(&packet)), (HEADER + data, 0));
        }
    }
}
