//! The function of the user that a stack leads through.

use super::report::Frame;

/// The innermost function of the program itself, with file and line or at least a name if there is
/// one; otherwise of a library.
///
/// A statically linked program contains the C library, which has symbols, but no lines: a function
/// with a line is taken for the program's. Without any, one with a name that is not reserved for the
/// C library (C11 7.1.3) is.
pub(super) fn place(stack: &[Frame]) -> Option<String> {
    let own = || stack.iter().filter(|frame| !frame.library);
    let found = own().find(|frame| frame.line.is_some());
    let found = found.or_else(|| own().find(|frame| is_named(frame) && !is_reserved(frame)));
    let found = found.or_else(|| own().find(|frame| is_named(frame))).or_else(|| own().next());
    found.or_else(|| stack.iter().find(|frame| is_named(frame))).or(stack.first()).map(Frame::text)
}

/// The function of a library that the innermost function of the program has called.
pub(super) fn library_function(stack: &[Frame]) -> Option<&str> {
    let own = stack.iter().position(|frame| !frame.library)?;
    stack[..own].last()?.function.as_deref()
}

fn is_named(frame: &Frame) -> bool {
    frame.function.is_some()
}

fn is_reserved(frame: &Frame) -> bool {
    frame.function.as_ref().is_some_and(|name| name.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function, the line of it, and whether it is in a library.
    type Given = (Option<&'static str>, Option<u32>, bool);

    /// The place of a stack.
    fn place_of(stack: &[Given]) -> Option<String> {
        let frame = |(function, line, library): &Given| Frame {
            function: function.map(str::to_owned),
            file: line.map(|_| "loop.c".to_owned()),
            line: *line,
            module: if *library { "libc.so.6" } else { "loop" }.to_owned(),
            offset: 16,
            library: *library,
        };
        place(&stack.iter().map(frame).collect::<Vec<_>>())
    }

    #[test]
    fn caller_of_a_library_is_found() {
        let dynamic = [(Some("clock_nanosleep"), None, true), (Some("rest"), Some(7), false)];
        assert_eq!(place_of(&dynamic).as_deref(), Some("rest (loop.c:7)"));
        // Debug information of the library itself makes it no function of the user.
        let described = [(Some("clock_nanosleep"), Some(3), true), (Some("rest"), None, false)];
        assert_eq!(place_of(&described).as_deref(), Some("rest (loop)"));
    }

    #[test]
    fn caller_of_the_c_library_is_found_in_a_statically_linked_program() {
        let linked = [
            (Some("__clock_nanosleep_2"), None, false),
            (Some("clock_nanosleep"), None, false),
            (Some("rest"), Some(7), false),
            (Some("main"), Some(9), false),
        ];
        assert_eq!(place_of(&linked).as_deref(), Some("rest (loop.c:7)"));
    }

    #[test]
    fn statically_linked_program_without_lines_has_a_name_that_is_not_reserved() {
        let linked = [(Some("__libc_write"), None, false), (Some("log_state"), None, false)];
        assert_eq!(place_of(&linked).as_deref(), Some("log_state (loop)"));
        assert_eq!(place_of(&linked[..1]).as_deref(), Some("__libc_write (loop)"));
    }

    #[test]
    fn stripped_program_has_its_address_and_a_lone_library_its_function() {
        let stripped = [(Some("write"), None, true), (None, None, false)];
        assert_eq!(place_of(&stripped).as_deref(), Some("loop+0x10"));
        assert_eq!(place_of(&stripped[..1]).as_deref(), Some("write (libc.so.6)"));
        assert_eq!(place_of(&[]), None);
    }
}
