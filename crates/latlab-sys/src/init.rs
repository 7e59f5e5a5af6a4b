//! The tasks of the first process of a system: mounting, loading modules, powering off.

use rustix::mount::MountFlags;
use rustix::system::RebootCommand;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Mounts a file system of this type at `place`, which is created if it does not exist. `device`
/// may be any word for types that need none (`mount(2)`).
pub fn mount(kind: &str, device: &str, place: &Path) -> io::Result<()> {
    std::fs::create_dir_all(place)?;
    Ok(rustix::mount::mount(device, place, kind, MountFlags::empty(), None)?)
}

/// Loads a kernel module with these parameters (`finit_module(2)`).
pub fn load_module(file: &File, parameters: &str) -> io::Result<()> {
    Ok(rustix::system::finit_module(file, &CString::new(parameters)?, 0)?)
}

/// Brings the loopback interface up, so that programs can connect to 127.0.0.1.
pub fn loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: ifreq is made of integers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: the request is valid and names an interface; the socket is open.
    crate::checked(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    })?;
    Ok(())
}

/// Sets environment variables of this process, for the programs that it starts.
pub fn set_variables(variables: &BTreeMap<String, String>) {
    for (name, value) in variables {
        // SAFETY: the first process of a system has no other thread yet that could read them.
        unsafe { std::env::set_var(name, value) };
    }
}

/// Powers the machine off. Returns only where that is not permitted.
pub fn power_off() -> io::Error {
    match rustix::system::reboot(RebootCommand::PowerOff) {
        Ok(()) => io::Error::other("the machine did not power off"),
        Err(error) => error.into(),
    }
}
