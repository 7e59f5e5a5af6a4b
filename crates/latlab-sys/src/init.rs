//! What only the first process of a machine does: mounting, loading modules, powering off.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Mounts a file system of type `kind` at `place`, which is made if it is not there. `device` is
/// any word where the type needs none (`mount(2)`).
pub fn mount(kind: &str, device: &str, place: &Path) -> io::Result<()> {
    std::fs::create_dir_all(place)?;
    let (kind, device) = (CString::new(kind)?, CString::new(device)?);
    let place = CString::new(place.as_os_str().as_bytes())?;
    // SAFETY: the three are strings with their final zero; there are no options.
    crate::checked(unsafe {
        libc::mount(device.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, std::ptr::null())
    })?;
    Ok(())
}

/// Loads a kernel module with these parameters (`finit_module(2)`).
pub fn load_module(file: &File, parameters: &str) -> io::Result<()> {
    let parameters = CString::new(parameters)?;
    // SAFETY: the parameters are a string with its final zero; the descriptor is open.
    let answer =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the loopback interface up, so that programs can talk to 127.0.0.1.
pub fn loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: ifreq is made of integers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: the request is valid and named; the socket is open.
    crate::checked(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    })?;
    Ok(())
}

/// Switches the machine off. Returns only where that is not permitted.
pub fn power_off() -> io::Error {
    // SAFETY: reboot takes no pointers.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    io::Error::last_os_error()
}
