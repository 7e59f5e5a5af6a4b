//! A mailbox: memory at a fixed address through which a debugger gives data to this process, and
//! functions at which the debugger stops it.
//!
//! A debugger finds them without symbols, whatever program, kernel or address layout is used.

use crate::mapping::Mapping;
use latlab_core::size::Bytes;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Addresses of two functions that only return. The process calls them in turns, so that a debugger
/// that continues from one of them can already stop at the other.
pub const STOPS: [u64; 2] = [BASE, BASE + SECOND as u64];

/// Address of the data. It begins with two little-endian numbers of eight bytes: how many bytes
/// follow here, and how many of the message come after them.
pub const DATA: u64 = BASE + CODE as u64;

/// Bytes that fit after the two numbers.
pub const CHUNK: usize = SIZE - HEADER;

/// Size of the two numbers, in bytes.
pub const HEADER: usize = 16;

/// No kernel maps anything else here in a new process, and every 64-bit kernel has this address in
/// user space.
const BASE: u64 = 64 << 30;
/// Size of the memory with the functions: a whole number of pages on every kernel.
const CODE: usize = 64 << 10;
/// Offset of the second function.
const SECOND: usize = 16;
/// Size of the data: a whole number of pages on every kernel.
const SIZE: usize = 256 << 10;

/// An instruction that returns to the caller.
#[cfg(target_arch = "x86_64")]
const RETURN: &[u8] = &[0xc3];
#[cfg(target_arch = "aarch64")]
const RETURN: &[u8] = &[0xc0, 0x03, 0x5f, 0xd6];

/// The mailbox of this process. Dropping it unmaps it.
#[derive(Debug)]
pub struct Mailbox {
    /// Kept mapped for `stops`.
    _code: Mapping,
    stops: [extern "C" fn(); 2],
    data: Mapping,
}

impl Mailbox {
    /// Maps the mailbox; all its pages are allocated. Fails where its addresses are taken.
    pub fn map() -> io::Result<Mailbox> {
        let mut code = Mapping::at(BASE, Bytes(CODE as u64))?;
        let mut data = Mapping::at(DATA, Bytes(SIZE as u64))?;
        for at in [0, SECOND] {
            code.write(at, RETURN);
        }
        code.make_executable()?;
        data.touch();
        let stops = [0, SECOND].map(|at| {
            let place = code.start::<u8>().wrapping_add(at);
            // SAFETY: an instruction that returns was written there, and it stays mapped.
            unsafe { std::mem::transmute::<*mut u8, extern "C" fn()>(place) }
        });
        Ok(Mailbox { _code: code, stops, data })
    }

    /// Receives a message. The process stops once for each part of it that fits.
    pub fn receive(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        for stop in self.stops.into_iter().cycle() {
            stop();
            let [length, left] = [0, 8].map(|at| self.data.number(at).load(Relaxed));
            let length = usize::try_from(length).map_or(CHUNK, |length| length.min(CHUNK));
            message.extend_from_slice(self.data.bytes(HEADER, length));
            if left == 0 {
                break;
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailbox_receives_message_and_frees_its_address() {
        for _ in 0..2 {
            let mut mailbox = Mailbox::map().unwrap();
            // Without a debugger the functions only return.
            mailbox.data.number(0).store(5, Relaxed);
            mailbox.data.write(HEADER, b"hello, world");
            assert_eq!(mailbox.receive(), b"hello");
            assert_eq!(Mailbox::map().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
    }
}
