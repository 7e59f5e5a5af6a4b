//! Threads that end with their work.

use std::io;

/// Carries out `work` on a thread of its own, whose attributes end with it. An error also where the
/// thread can't be started.
pub fn on_its_own<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let unable =
            |e: io::Error| io::Error::new(e.kind(), format!("a thread can't be started: {e}"));
        let thread = std::thread::Builder::new().spawn_scoped(scope, work).map_err(unable)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::current;

    #[test]
    fn thread_of_its_own_returns_the_result() {
        let id = on_its_own(|| Ok(current().id())).unwrap();
        assert_ne!(id, current().id());
        let error = on_its_own(|| Err::<(), _>(io::ErrorKind::NotFound.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
