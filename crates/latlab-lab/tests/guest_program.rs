//! The program of guests: it changes with what measures, and with nothing else.
#![expect(
    clippy::disallowed_methods,
    clippy::tests_outside_test_module,
    reason = "a test of a build starts cargo and writes files"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder for this target in that of cargo.
fn built() -> PathBuf {
    let program = std::env::current_exe().expect("it runs");
    // <target>/debug/deps/guest_program-…
    program.ancestors().nth(3).expect("cargo nests it").to_owned()
}

/// A copy of the sources.
struct Sources(tempfile::TempDir);

impl Sources {
    fn copied() -> Sources {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let parts = [".cargo", "Cargo.lock", "Cargo.toml", "build", "crates", "fuzz"];
        let copy = Command::new("cp")
            .arg("-r")
            .args(parts.map(|part| tree.join(part)))
            .arg(folder.path())
            .status();
        assert!(copy.expect("cp starts").success());
        Sources(folder)
    }

    /// Changes a text in a file, which has it.
    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.0.path().join("crates").join(file);
        let text = fs::read_to_string(&path).expect("the file is there");
        assert!(text.contains(from), "{file}: {from}");
        fs::write(&path, text.replace(from, to)).expect("it can be written");
    }

    /// Builds the program of guests as the build script does.
    fn program(&self) -> Vec<u8> {
        let triple = built().file_name().expect("it has a name").display().to_string();
        let folder = built().join("latlab-guest-of-a-copy");
        let home = std::env::var("CARGO_HOME").unwrap_or_else(|_| {
            format!("{}/.cargo", std::env::var("HOME").expect("a user has one"))
        });
        let remap = format!("target.{triple}.rustflags=[\"--remap-path-prefix={home}=/cargo\"]");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(self.0.path());
        cargo.args(["build", "--quiet", "--locked", "--package", "latlab-guest", "--release"]);
        cargo.args(["--target", &triple, "--config", &remap]).arg("--target-dir").arg(&folder);
        cargo.env_remove("CARGO_INCREMENTAL").env_remove("RUSTFLAGS");
        assert!(cargo.status().expect("cargo starts").success());
        fs::read(folder.join(triple).join("release/latlab-guest")).expect("cargo has built it")
    }
}

#[test]
fn program_of_guests_changes_with_what_measures_only() {
    let triple = built().file_name().expect("it has a name").to_owned();
    let carried = built().join("latlab-guest").join(&triple).join("release/latlab-guest");
    let carried = fs::read(carried).expect("the build script has built it");
    let sources = Sources::copied();
    sources.change("latlab-format/src/lib.rs", "\"latlab: {sentence}\"", "\"LATLAB: {sentence}\"");
    sources.change("latlab/src/commands.rs", "latency hazards of this machine\"", "hazards here\"");
    sources.change("latlab-core/src/verdict/answer.rs", "tasks of higher", "TASKS of higher");
    assert!(sources.program() == carried, "output, commands and verdicts do not measure");
    sources.change("latlab-measure/src/rig/life.rs", "raise priority=", "increase priority=");
    assert!(sources.program() != carried, "the rig measures");
}
