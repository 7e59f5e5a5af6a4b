//! The library as users get it, built once for all tests, and programs with it.

use crate::program::{LATLAB, Running, latlab, run, wait_until};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library for C, and a folder for the compiler, which the processes of all tests share.
pub(crate) struct Library {
    folder: PathBuf,
}

pub(crate) fn tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate lies in crates/")
}

/// Builds the library as `make install` does, in a folder of its own: cargo is building the tests'. In all
/// processes but the first, there is nothing left to build.
pub(crate) fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = tree().join("target/period");
        let _lock = lock(&folder);
        let path = folder.join("liblatlab-period");
        let mut make = Command::new("make");
        make.arg("--silent").arg(format!("PERIOD={}", path.display()));
        make.arg(format!("CARGO_TARGET_DIR={}", folder.display()));
        make.arg(format!("{}.so", path.display()));
        let output = run(make.current_dir(tree()).env_remove("MAKEFLAGS"));
        assert_eq!(output.code(), Some(0), "{output:?}");
        Library { folder }
    })
}

/// Locks the folder, in which one process builds at a time.
pub(crate) fn lock(folder: &Path) -> File {
    std::fs::create_dir_all(folder).expect("target/ can be written");
    let file = File::create(folder.join("lock")).expect("target/ can be written");
    file.lock().expect("a file can be locked");
    file
}

impl Library {
    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the library with this extension.
    pub(crate) fn path(&self, extension: &str) -> PathBuf {
        self.folder.join("liblatlab-period").with_extension(extension)
    }

    /// Compiles an example as a static program, as guests need it.
    pub(crate) fn compile(&self, name: &str, into: &Path) -> PathBuf {
        cc(name, into, &["-static".to_owned(), self.path("a").display().to_string()])
    }

    /// Compiles an example with the shared library.
    pub(crate) fn compile_shared(&self, name: &str, into: &Path) -> PathBuf {
        // The name by which it is found, as `make install` makes it a link.
        let link = self.folder.join("liblatlab-period.so.0");
        let _ = std::os::unix::fs::symlink("liblatlab-period.so", link);
        cc(name, into, &[format!("-L{}", self.folder.display()), "-llatlab-period".to_owned()])
    }

    /// Copies the modules of the wheel that need nothing but the library into a folder. Returns the
    /// package. The wheel itself needs pandas, and is tested with it.
    pub(crate) fn python_package(&self, into: &Path) -> PathBuf {
        let package = into.join("latlab");
        std::fs::create_dir(&package).expect("the folder is the test's own");
        std::fs::write(package.join("__init__.py"), "").expect("the folder is the test's own");
        let module = |name: &str| tree().join("packages/python/latlab").join(name);
        let copies = [
            (module("period.py"), "period.py"),
            (module("mark.py"), "mark.py"),
            (self.path("so"), "liblatlab-period.so"),
        ];
        for (from, name) in copies {
            std::fs::copy(from, package.join(name)).expect("the folder is the test's own");
        }
        package
    }

    /// Builds the example in Rust as a project of a user's.
    pub(crate) fn rust_example(&self) -> PathBuf {
        let project = self.folder.join("project");
        let path = |path: &str| tree().join(path).display().to_string();
        let manifest = format!(
            "[package]\nname = \"control\"\nedition = \"2024\"\n\
             [dependencies]\nlatlab-period = {{ path = {:?} }}\n\
             [[bin]]\nname = \"control\"\npath = {:?}\n[workspace]\n",
            path("crates/latlab-period"),
            path("examples/control.rs"),
        );
        let _lock = lock(&self.folder);
        std::fs::create_dir_all(&project).expect("target/ can be written");
        std::fs::write(project.join("Cargo.toml"), manifest).expect("target/ can be written");
        std::fs::copy(tree().join("Cargo.lock"), project.join("Cargo.lock"))
            .expect("target/ can be written");
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--offline", "--target-dir"]).arg(&self.folder);
        let output = run(cargo.current_dir(&project));
        assert_eq!(output.code(), Some(0), "{output:?}");
        // target/TRIPLE/debug/latlab
        let triple = Path::new(LATLAB).ancestors().nth(2).and_then(Path::file_name);
        let triple = triple.expect("the tests are built for an explicit target");
        let built = self.folder.join(triple).join("debug/control");
        assert!(built.is_file(), "{}", built.display());
        built
    }
}

/// Compiles an example in C.
fn cc(name: &str, into: &Path, words: &[String]) -> PathBuf {
    let (program, source) = (into.join(name), tree().join(format!("examples/{name}.c")));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program);
    cc.arg(source).arg("-I").arg(tree().join("crates/latlab-period/include")).args(words);
    let output = run(&mut cc);
    assert_eq!(output.code(), Some(0), "{output:?}");
    program
}

/// Starts the control loop for longer than any test, and waits until it has run cycles.
pub(crate) fn start(program: &Path) -> Running {
    let running = Running::start(Command::new(program).arg("1000000000"));
    let pid = running.pid();
    wait_until("the loop runs", || {
        let output = latlab(&format!("watch {pid} --once --json"));
        output.code() == Some(0) && !output.stdout.contains("\"cycles\":0,")
    });
    running
}
