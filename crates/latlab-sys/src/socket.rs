//! TCP connections of benchmarks: whole messages, and no state left in the kernel.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// Fills `buffer`, in one system call where no signal interrupts it. False where the other side
/// closed the connection before the first byte.
#[inline]
pub fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<bool> {
    take(from, buffer, 0)
}

/// Discards as many received bytes as `buffer` has, without copying them: `buffer` is not changed
/// (`MSG_TRUNC`, tcp(7)). False where the other side closed the connection before the first byte.
#[inline]
pub fn discard(from: &TcpStream, buffer: &mut [u8]) -> io::Result<bool> {
    take(from, buffer, libc::MSG_TRUNC)
}

fn take(from: &TcpStream, buffer: &mut [u8], flags: libc::c_int) -> io::Result<bool> {
    let (fd, flags) = (from.as_raw_fd(), libc::MSG_WAITALL | flags);
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        // Measured, so through the C library.
        // SAFETY: `rest` is valid to write to and has this length.
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

/// Has the kernel drop the connection when it is closed, without a minute in `TIME_WAIT`
/// (`SO_LINGER`, socket(7)).
pub fn forget_when_closed(connection: &TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(connection, Some(Duration::ZERO))?)
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
    fn socket_receives_and_discards_whole_messages() {
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
    fn socket_reports_a_closed_connection() {
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
