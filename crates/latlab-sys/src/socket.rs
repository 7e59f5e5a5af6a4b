//! TCP connections as benchmarks use them: whole messages, and nothing left behind.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

/// Fills `buffer`, in one system call where nothing interrupts it. False where the other side has
/// hung up before the first byte.
#[inline]
pub fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<bool> {
    take(from, buffer, 0)
}

/// Takes as many bytes as `buffer` has off the connection without copying them: `buffer` is left
/// as it was (`MSG_TRUNC`, tcp(7)). False where the other side has hung up.
#[inline]
pub fn discard(from: &TcpStream, buffer: &mut [u8]) -> io::Result<bool> {
    take(from, buffer, libc::MSG_TRUNC)
}

fn take(from: &TcpStream, buffer: &mut [u8], flags: libc::c_int) -> io::Result<bool> {
    let (fd, flags) = (from.as_raw_fd(), libc::MSG_WAITALL | flags);
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        // SAFETY: `rest` is valid to write to, as long as announced.
        let answer = unsafe { libc::recv(fd, rest.as_mut_ptr().cast(), rest.len(), flags) };
        match usize::try_from(answer) {
            Ok(0) if done == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => done += received,
            Err(_) => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e if e.kind() == io::ErrorKind::ConnectionReset && done == 0 => return Ok(false),
                e => return Err(e),
            },
        }
    }
    Ok(true)
}

/// Has the kernel forget the connection when it is closed: else it would keep a minute's memory
/// of it (`SO_LINGER`, socket(7)).
pub fn forget_when_closed(connection: &TcpStream) -> io::Result<()> {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    let bytes = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap_or(0);
    let fd = connection.as_raw_fd();
    // SAFETY: `now` is a valid linger, as long as announced.
    crate::checked(unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const now).cast(), bytes)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn whole_messages_come_and_others_go_unread() {
        let (mut near, far) = connection();
        near.write_all(b"headbodynext").unwrap();
        let mut buffer = [0; 4];
        assert!(receive(&far, &mut buffer).unwrap());
        assert_eq!(&buffer, b"head");
        assert!(discard(&far, &mut buffer).unwrap());
        assert_eq!(&buffer, b"head");
        assert!(receive(&far, &mut buffer).unwrap());
        assert_eq!(&buffer, b"next");
    }

    #[test]
    fn who_hangs_up_is_gone_however_that_is() {
        let (near, far) = connection();
        drop(near);
        assert!(!receive(&far, &mut [0; 4]).unwrap());
        let (near, far) = connection();
        forget_when_closed(&near).unwrap();
        drop(near);
        assert!(!receive(&far, &mut [0; 4]).unwrap());
        let (mut near, far) = connection();
        near.write_all(b"xy").unwrap();
        drop(near);
        assert!(receive(&far, &mut [0; 4]).is_err());
    }
}
