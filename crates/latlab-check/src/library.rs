//! Code of libraries that a program contains: the standard libraries of C++ and Rust, Boost, and the
//! headers of the system, whose functions the compiler puts into the program.

/// Folders of the system's headers and of its compilers.
const SYSTEM: [&str; 3] = ["/usr/include", "/usr/local/include", "/usr/lib"];
/// The folder under which the compiler names the sources of Rust's standard library.
const RUST: &str = "/rustc";
/// Folders of the sources of a standard library, wherever they are.
const SOURCES: [&str; 3] = ["libstdc++-v3", "libcxx", "rustlib"];
/// Namespaces of C++'s standard libraries and of Boost, and of Rust's standard library.
const NAMESPACES: [&str; 5] = ["std::", "__gnu_cxx::", "__gnu_debug::", "__cxxabiv1::", "boost::"];
/// The same in the names that files export, and the operators `new` and `delete`.
const MANGLED: [&str; 11] = [
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZN9__gnu_cxx",
    "_ZNK9__gnu_cxx",
    "_ZN5boost",
    "_ZNK5boost",
    "_Znw",
    "_Zna",
    "_Zdl",
    "_Zda",
];
/// Operators that C++'s standard library defines outside of its namespace.
const OPERATORS: [&str; 2] = ["operator new", "operator delete"];

/// Whether a function is one of such a library. `folder` is the folder of its source, if that is
/// known. The folder then decides, except for Boost: its folder may have any name. Without a
/// folder, the function's name decides.
pub fn is_of_library(function: &str, folder: Option<&str>) -> bool {
    let own = qualified(function);
    let is_in = |names: &[&str]| names.iter().any(|name| own.starts_with(name));
    match folder {
        Some(folder) => is_in(&["boost::"]) || is_folder_of_library(folder),
        None => is_in(&NAMESPACES) || is_in(&MANGLED) || is_in(&OPERATORS),
    }
}

fn is_folder_of_library(folder: &str) -> bool {
    let parts = components(folder);
    let is_below = |above: &&str| {
        let above: Vec<&str> = components(above);
        folder.starts_with('/') && parts.starts_with(&above)
    };
    SYSTEM.iter().chain(&[RUST]).any(is_below)
        || parts.iter().any(|part| SOURCES.contains(part))
        || parts.windows(2).any(|pair| is_of_headers(pair[0], pair[1]))
}

/// Whether the folder `inner` in `outer` has the headers of a library: `c++/12`, `c++/v1`,
/// `include/boost`.
fn is_of_headers(outer: &str, inner: &str) -> bool {
    let is_version = inner == "v1" || inner.starts_with(|first: char| first.is_ascii_digit());
    outer == "c++" && is_version || outer == "include" && inner == "boost"
}

/// The parts of a path, without those that `..` leaves again.
fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts
}

/// A function's name as C++ and Rust write it, from its outermost namespace on: the type that a template
/// returns stands before it, the parameters after it.
fn qualified(function: &str) -> &str {
    let (mut start, mut depth) = (0_usize, 0_usize);
    for (at, letter) in function.char_indices() {
        match letter {
            // What follows is the operator, which may consist of brackets.
            'o' if depth == 0 && is_operator(function, at) => break,
            '(' if depth == 0 && !is_in_name(function, at) => break,
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &function[start..]
}

/// Whether the name of an operator begins there.
fn is_operator(function: &str, at: usize) -> bool {
    let is_part_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let rest = function[at..].strip_prefix("operator");
    rest.is_some_and(|rest| !rest.starts_with(is_part_of_a_name))
        && !function[..at].ends_with(is_part_of_a_name)
}

/// Whether the parenthesis there belongs to the name or to the type before it, not to the parameters.
fn is_in_name(function: &str, at: usize) -> bool {
    function[at..].starts_with("(anonymous namespace)")
        || function[..at].trim_end().ends_with("decltype")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_standard_libraries_and_headers_is_known_by_its_folder() {
        for folder in [
            "/usr/include/c++/12",
            "/usr/include/c++/12/bits",
            "/usr/include/x86_64-linux-gnu/c++/12/bits",
            "/usr/include/x86_64-linux-gnu/bits",
            "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits",
            "/opt/toolchain/aarch64-linux-gnu/include/c++/9.2.1/bits",
            "/opt/llvm/include/c++/v1/__memory",
            "/home/me/third/include/boost/asio",
            "/build/gcc-12/src/libstdc++-v3/src/c++11",
            "/rustc/90b35a623/library/std/src/io",
            "/home/me/.rustup/lib/rustlib/src/rust/library/core/src",
        ] {
            assert!(is_of_library("f", Some(folder)), "{folder}");
        }
        for folder in [
            "/home/me/c++/loop",
            "/home/me/boost/src",
            "/usr/src/loop",
            "src/include",
            "/rustcode",
            "",
        ] {
            assert!(!is_of_library("f", Some(folder)), "{folder}");
        }
    }

    #[test]
    fn specialisation_in_the_users_file_is_the_users() {
        assert!(!is_of_library("std::hash<Mine>::operator()(Mine)", Some("/home/me/src")));
        assert!(is_of_library(
            "boost::asio::detail::run()",
            Some("/home/me/boost_1_80/boost/asio")
        ));
    }

    #[test]
    fn code_without_lines_is_known_by_its_namespace() {
        for name in [
            "std::ostream::flush()",
            "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int const&)",
            "std::basic_ostream<char>& std::endl<char, std::char_traits<char> >(std::ostream&)",
            "std::basic_ostream<char>& std::operator<< <std::char_traits<char> >(char const*)",
            "std::__1::mutex::lock()",
            "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
            "boost::asio::io_context::run()",
            "operator new(unsigned long)",
            "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
            "_Znwm",
        ] {
            assert!(is_of_library(name, None), "{name}");
        }
        for name in [
            "main",
            "log_state(std::vector<int, std::allocator<int> >&)",
            "std::vector<int, std::allocator<int> > collect<int>(int)",
            "decltype (std::declval<int>()) collect<int>(int)",
            "(anonymous namespace)::log_state(std::ostream&)",
            "main::{lambda(std::string const&)#1}::operator()(std::string const&) const",
            "Loop::operator bool() const",
            "operators::update()",
            "operator<<(std::ostream&, State const&)",
            "standard::update()",
            "<loop::State as core::fmt::Display>::fmt",
            "_ZN4Loop6updateEv",
            "_ZneRK4LoopS1_",
        ] {
            assert!(!is_of_library(name, None), "{name}");
        }
    }
}
