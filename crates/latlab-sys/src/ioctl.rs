//! The numbers of ioctl(2) calls.

pub(crate) const PLAIN: libc::Ioctl = 0;
pub(crate) const WRITE: libc::Ioctl = 1;
pub(crate) const READ: libc::Ioctl = 2;

/// The number of a call, as `_IOC()` in `asm-generic/ioctl.h`.
pub(crate) const fn call(
    direction: libc::Ioctl,
    kind: u8,
    number: libc::Ioctl,
    size: usize,
) -> libc::Ioctl {
    direction << 30 | (size as libc::Ioctl) << 16 | (kind as libc::Ioctl) << 8 | number
}
