//! Finds the profiles that are built into the program, and builds the program of guests, which it carries.

#![expect(
    clippy::disallowed_methods,
    reason = "a build starts cargo, and writes nothing but its own files"
)]

#[path = "../../build/table.rs"]
mod table;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::env::var_os;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of which the program of guests consists.
const CRATES: [&str; 9] =
    ["adapt", "bpf", "check", "core", "guest", "measure", "mechanism", "part", "sys"];

fn main() {
    table::table("SHIPPED", Path::new("src/profile"), "profiles.rs");
    let program = guest();
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packed.write_all(&program).and_then(|()| packed.finish());
    let packed = packed.expect("writing to memory does not fail");
    std::fs::write(variable("OUT_DIR").join("latlab-guest.gz"), packed)
        .expect("cargo has made the folder");
}

/// The program of guests. It does not depend on what else is built, on the profile, or on where the sources lie: the
/// same sources give the same figures in the laboratory. `make` has built it, and says in `LATLAB_GUEST` where.
fn guest() -> Vec<u8> {
    println!("cargo::rerun-if-env-changed=LATLAB_GUEST");
    let built = var_os("LATLAB_GUEST").map(PathBuf::from);
    let path = built.unwrap_or_else(build);
    println!("cargo::rerun-if-changed={}", path.display());
    std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Builds it in a folder of its own, as the outer cargo has locked the usual one. Returns its path.
fn build() -> PathBuf {
    let workspace = variable("CARGO_MANIFEST_DIR").join("../..");
    let workspace = workspace.canonicalize().expect("this crate lies in crates/");
    for name in CRATES {
        let folder = workspace.join(format!("crates/latlab-{name}"));
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    for file in ["Cargo.lock", "Cargo.toml", ".cargo/config.toml"] {
        println!("cargo::rerun-if-changed={}", workspace.join(file).display());
    }
    // One for all profiles of this target.
    let folder =
        variable("OUT_DIR").ancestors().nth(4).expect("cargo nests it").join("latlab-guest");
    let target = variable("TARGET").display().to_string();
    let mut cargo = Command::new(variable("CARGO"));
    cargo.current_dir(&workspace);
    cargo.args(["build", "--quiet", "--locked", "--package", "latlab-guest", "--release"]);
    cargo.args(["--target", &target]).arg("--target-dir").arg(&folder);
    cargo.args(["--config", &flags(&target)]);
    // What the outer cargo, clippy or a user sets for the program that is being built.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_INCREMENTAL",
    ] {
        cargo.env_remove(name);
    }
    let status = cargo.status().expect("cargo runs this script");
    assert!(status.success(), "latlab-guest, the program of guests, could not be built");
    folder.join(target).join("release/latlab-guest")
}

/// Flags of the compiler, beside those of .cargo/config.toml: messages of panics in other crates do not name the
/// folder of this user's cargo. The paths of this workspace are relative.
fn flags(target: &str) -> String {
    let usual = || Some(PathBuf::from(var_os("HOME")?).join(".cargo"));
    let home = var_os("CARGO_HOME").map(PathBuf::from).or_else(usual);
    let home = home.expect("a user has a home").display().to_string();
    format!("target.{target}.rustflags=[\"--remap-path-prefix={home}=/cargo\"]")
}

fn variable(name: &str) -> PathBuf {
    var_os(name).unwrap_or_else(|| panic!("cargo sets {name}")).into()
}
