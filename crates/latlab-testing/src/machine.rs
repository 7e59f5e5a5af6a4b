//! The machine, which tests share.

use std::fs::File;

/// Holds the machine; tests of all programs wait for each other.
#[derive(Debug)]
#[must_use]
pub struct MachineLock {
    _file: File,
}

/// The lock that a test holds while it measures or changes the machine, most of its time.
///
/// In `cargo nextest` such a test is in the group `machine`, so that it does not occupy a slot while it waits.
/// Panics where it is in another one.
pub fn lock_machine() -> MachineLock {
    if let Ok(group) = std::env::var("NEXTEST_TEST_GROUP") {
        let place = "a test that locks the machine belongs to the group";
        assert_eq!(group, GROUP, "{place} '{GROUP}' of .config/nextest.toml");
    }
    lock_machine_for_a_moment()
}

/// The same lock, for a small part of a test that is in another group.
pub fn lock_machine_for_a_moment() -> MachineLock {
    let file = File::create(std::env::temp_dir().join("latlab-tests.lock"));
    let file = file.expect("a temporary file can be created");
    file.lock().expect("a temporary file can be locked");
    MachineLock { _file: file }
}

const GROUP: &str = "machine";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn lock_is_that_of_the_open_file() {
        let path = std::env::temp_dir().join(format!("latlab-lock-{}", std::process::id()));
        let first = File::create(&path).unwrap();
        first.lock().unwrap();
        assert!(File::create(&path).unwrap().try_lock().is_err());
        drop(first);
        assert!(File::create(&path).unwrap().try_lock().is_ok());
        fs::remove_file(path).unwrap();
    }
}
