//! Reading the file of a process within a budget of memory: it may belong to another user, and its tables
//! may claim any size.

use object::read::{ReadCache, ReadRef};
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

/// A file of which only some bytes are read. Once they exceed the budget, further reads fail.
pub(super) struct Budgeted {
    cache: ReadCache<File>,
    /// Bytes that may still be read. Bytes that are read twice count twice.
    left: Cell<u64>,
}

/// Chosen, not measured. Of a file with larger tables the functions have no names.
const BUDGET: u64 = 2 << 30;

impl Budgeted {
    pub(super) fn new(file: File) -> Budgeted {
        Budgeted { cache: ReadCache::new(file), left: Cell::new(BUDGET) }
    }

    fn spend(&self, bytes: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(())?);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for &'a Budgeted {
    fn len(self) -> Result<u64, ()> {
        (&self.cache).len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.spend(size)?;
        (&self.cache).read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let range = range.start..range.end.min(range.start.saturating_add(self.left.get()));
        let bytes = (&self.cache).read_bytes_at_until(range, delimiter)?;
        self.spend(bytes.len() as u64)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_budget_are_not_read() {
        let file = Budgeted::new(File::open("/proc/self/exe").unwrap());
        let read = |bytes| (&file).read_bytes_at(0, bytes).is_ok();
        assert!(!read(BUDGET + 1));
        assert!(read(1000));
        file.left.set(4);
        assert!((&file).read_bytes_at_until(0..1000, b'F').is_ok_and(|text| text == b"\x7fEL"));
        assert!(!read(2) && read(1));
        assert!((&file).read_bytes_at_until(0..1000, b'F').is_err());
    }
}
