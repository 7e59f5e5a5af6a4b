//! The marks of a program file, from its section `.note.stapsdt` in the format of `SystemTap`.

/// A mark of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkOfFile {
    /// Address of its NOP, as in the file's tables.
    pub address: u64,
    /// Address of the section `.stapsdt.base` when the note was written.
    pub base: u64,
    /// Whether it ends a part; otherwise it begins one.
    pub is_end: bool,
    /// Whether its arguments are where `latlab-mark.h` puts them.
    pub is_readable: bool,
}

/// Places of the name and the number of a part: the registers of the first two arguments of a function.
const ARGUMENTS: [&[u8]; 2] = [b"8@%rdi -8@%rsi", b"8@x0 -8@x1"];
/// Type of a note of `SystemTap`, and owner of it.
const TYPE: u32 = 3;
const OWNER: &[u8] = b"stapsdt";

/// Reads the notes of a section of a file for this byte order. Notes of other owners or providers
/// than latlab are skipped; a damaged note ends the section.
pub fn marks_of_file(section: &[u8]) -> Vec<MarkOfFile> {
    let (mut rest, mut marks) = (section, Vec::new());
    while let Some((kind, owner, content)) = next_note(&mut rest) {
        if kind == TYPE && text(&mut &*owner) == Some(OWNER) {
            marks.extend(mark(content));
        }
    }
    marks
}

/// Takes the next note: its type, its owner and its content, which are padded to four bytes.
fn next_note<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8], &'a [u8])> {
    let mut number = || take(rest, 4)?.try_into().ok().map(u32::from_ne_bytes);
    let (owner, content, kind) = (number()?, number()?, number()?);
    let mut padded = |size: u32| {
        let all = take(rest, (size as usize).checked_next_multiple_of(4)?)?;
        all.get(..size as usize)
    };
    Some((kind, padded(owner)?, padded(content)?))
}

/// A mark, if the note is of one: its addresses, then provider, name and arguments.
fn mark(content: &[u8]) -> Option<MarkOfFile> {
    let rest = &mut &*content;
    let mut number = || take(rest, 8)?.try_into().ok().map(u64::from_ne_bytes);
    let (address, base, _semaphore) = (number()?, number()?, number()?);
    let provider = text(rest)?;
    let is_end = match text(rest)? {
        b"begin" => false,
        b"end" => true,
        _ => return None,
    };
    let is_readable = ARGUMENTS.contains(&text(rest)?);
    (provider == b"latlab").then_some(MarkOfFile { address, base, is_end, is_readable })
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(size)?;
    *rest = after;
    Some(taken)
}

/// Takes a text that ends with a zero.
fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    take(rest, end + 1).map(|all| &all[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(owner: &[u8], address: u64, texts: &[u8]) -> Vec<u8> {
        let numbers = [address, 9, 0].into_iter().flat_map(u64::to_ne_bytes);
        let content: Vec<u8> = numbers.chain(texts.iter().copied()).collect();
        let sizes = [owner.len(), content.len(), 3];
        let mut note: Vec<u8> =
            sizes.into_iter().flat_map(|size| u32::try_from(size).unwrap().to_ne_bytes()).collect();
        for part in [owner, &content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    const BEGIN: &[u8] = b"latlab\0begin\x008@%rdi -8@%rsi\0";

    #[test]
    fn marks_are_read_between_notes_of_others() {
        let section = [
            note(b"stapsdt\0", 1, BEGIN),
            note(b"GNU\0", 2, BEGIN),
            note(b"stapsdt\0", 3, b"other\0begin\x008@%rdi -8@%rsi\0"),
            note(b"stapsdt\0", 4, b"latlab\0other\x008@%rdi -8@%rsi\0"),
            note(b"stapsdt\0", 5, b"latlab\0end\x008@x0 -8@x1\0"),
            note(b"stapsdt\0", 6, b"latlab\0end\x008@%rax -8@%rbx\0"),
        ];
        let mark =
            |address, is_end, is_readable| MarkOfFile { address, base: 9, is_end, is_readable };
        let expected = [mark(1, false, true), mark(5, true, true), mark(6, true, false)];
        assert_eq!(marks_of_file(&section.concat()), expected);
    }

    #[test]
    fn damaged_note_ends_the_section() {
        let good = note(b"stapsdt\0", 1, BEGIN);
        for end in 0..good.len() {
            let section = [&good[..], &good[..end]].concat();
            assert_eq!(marks_of_file(&section).len(), 1, "{end}");
        }
        let huge = [[0xff; 12].to_vec(), good].concat();
        assert_eq!(marks_of_file(&huge), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(marks_of_file(&bytes).len() <= bytes.len() / 12);
        }
    }
}
