//! Kernel modules that a guest loads: their selection, order and contents.

use crate::kernel::store::modules_place;
use crate::kernel::{Contents, Kernel};
use crate::unpack::{Packing, unpack};
use latlab_core::suggest;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// A module to load.
#[derive(Debug)]
pub struct Module {
    /// Its name as in `/proc/modules`.
    pub name: String,
    /// The uncompressed module, as `finit_module` takes it.
    pub bytes: Vec<u8>,
}

/// The modules `wanted` and their dependencies, in the order to load them; built-in ones are left
/// out. depmod need not have run. A kernel that came without modules may have them built in: the part
/// that needs one finds out in the guest.
///
/// A module is found by its name, with `-` or `_`. A cryptographic algorithm is also found by the
/// alias with which the kernel requests it, such as `crypto-crc32c`.
pub fn closure(kernel: &Kernel, wanted: &[String]) -> Result<Vec<Module>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let contents = kernel.contents()?;
    if !contents.have_modules() {
        return Ok(Vec::new());
    }
    let mut kernel = Modules::of(kernel, contents)?;
    let mut order = Order::default();
    for name in wanted {
        if !order.add(&mut kernel, name)? {
            return Err(kernel.lacks(name, ""));
        }
    }
    Ok(order.modules)
}

/// Modules, each after its dependencies.
#[derive(Default)]
struct Order {
    modules: Vec<Module>,
    seen: BTreeSet<String>,
}

impl Order {
    /// Adds a module after its dependencies. Whether the kernel has it.
    fn add(&mut self, kernel: &mut Modules<'_>, name: &str) -> Result<bool> {
        let name = match kernel.find(&underscored(name))? {
            Found::File(name) => name,
            Found::BuiltIn => return Ok(true),
            Found::Nowhere => return Ok(false),
        };
        if !self.seen.insert(name.clone()) {
            return Ok(true);
        }
        let (bytes, info) = kernel.read(&kernel.files[&name])?;
        for other in &info.before {
            // A soft dependency: it may be built in under another name.
            self.add(kernel, other)?;
        }
        for other in &info.depends {
            if !self.add(kernel, other)? {
                return Err(kernel.lacks(other, &format!(", which {name} needs")));
            }
        }
        self.modules.push(Module { name, bytes });
        Ok(true)
    }
}

/// Result of the search for a module.
enum Found {
    File(String),
    BuiltIn,
    Nowhere,
}

/// The modules of a kernel.
struct Modules<'a> {
    contents: Contents<'a>,
    release: &'a str,
    /// Their paths below the kernel's folder, by name.
    files: BTreeMap<String, PathBuf>,
    /// Names and aliases of built-in modules.
    built_in: BTreeSet<String>,
    /// The module of each algorithm; read on first use.
    algorithms: Option<BTreeMap<String, String>>,
}

impl<'a> Modules<'a> {
    fn of(kernel: &'a Kernel, contents: Contents<'a>) -> Result<Modules<'a>> {
        let folder = PathBuf::from(modules_place(&kernel.release));
        // A module in updates/ comes later and replaces the one in kernel/.
        let all = contents.paths().filter(|path| path.starts_with(&folder));
        let files = all.filter_map(|path| Some((module_name(path)?, path.to_owned()))).collect();
        let text = |name: &str| {
            let bytes = contents.read(&folder.join(name))?.unwrap_or_default();
            Ok::<_, Failure>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let names = text("modules.builtin")?;
        let names = names.lines().filter_map(|line| module_name(Path::new(line)));
        let info = text("modules.builtin.modinfo")?;
        let aliases = info.split('\0').filter_map(|field| field.split_once(".alias="));
        let aliases = aliases.map(|(_, alias)| underscored(alias));
        let built_in = names.chain(aliases).collect();
        Ok(Modules { contents, release: &kernel.release, files, built_in, algorithms: None })
    }

    /// The uncompressed contents of the module at a path below the kernel's folder, and the
    /// information in it.
    fn read(&self, path: &Path) -> Result<(Vec<u8>, Info)> {
        let packed = self.contents.read(path)?.unwrap_or_default();
        let place = self.contents.place(path);
        let bytes = unpacked(packed, path.extension());
        let bytes = bytes.at(&place)?;
        let info = Info::read(&place, &bytes)?;
        Ok((bytes, info))
    }

    fn find(&mut self, name: &str) -> Result<Found> {
        if self.files.contains_key(name) {
            return Ok(Found::File(name.to_owned()));
        }
        if self.built_in.contains(name) {
            return Ok(Found::BuiltIn);
        }
        Ok(self.algorithms()?.get(name).cloned().map_or(Found::Nowhere, Found::File))
    }

    /// All algorithms in modules. Without depmod's tables every module would have to be read, which
    /// takes 15 s; the kernel keeps algorithms in folders of their own.
    fn algorithms(&mut self) -> Result<&BTreeMap<String, String>> {
        if self.algorithms.is_none() {
            let mut algorithms = BTreeMap::new();
            let in_crypto = |path: &Path| path.iter().any(|folder| folder == "crypto");
            let mut modules: Vec<_> =
                self.files.iter().filter(|(_, path)| in_crypto(path)).collect();
            modules.sort_by_key(|(name, path)| preference(name, path));
            for (name, path) in modules {
                for alias in self.read(path)?.1.aliases {
                    algorithms.entry(alias).or_insert_with(|| name.clone());
                }
            }
            self.algorithms = Some(algorithms);
        }
        Ok(self.algorithms.get_or_insert_default())
    }

    fn lacks(&self, name: &str, why: &str) -> Failure {
        let (release, wanted) = (&self.release, underscored(name));
        let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
        let near = suggest::nearest(&wanted, &names);
        let way_out = if near.is_empty() {
            "use a kernel that has it".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        Failure::unsupported(format!("kernel {release} has no module {name}{why}: {way_out}"))
    }
}

/// Sort key of modules with the same algorithm: the generic one first, so that a guest runs the
/// same code on every host.
fn preference(name: &str, path: &Path) -> (bool, bool) {
    let is_specific = path.iter().any(|folder| folder == "arch" || folder == "drivers");
    (!name.ends_with("_generic"), is_specific)
}

/// A module's section `.modinfo`.
pub struct Info {
    /// Modules to load before it.
    depends: Vec<String>,
    /// Modules to load before it if they exist.
    before: Vec<String>,
    /// Its aliases.
    aliases: Vec<String>,
}

impl Info {
    /// Reads it from the contents of a file, whose path is for messages.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Info> {
        let section = modinfo(bytes).map_err(|e| {
            failed(&path.display().to_string(), format!("this is not a kernel module: {e}"))
        })?;
        let text = String::from_utf8_lossy(section);
        let mut info = Info { depends: Vec::new(), before: Vec::new(), aliases: Vec::new() };
        for (key, value) in text.split('\0').filter_map(|field| field.split_once('=')) {
            match key {
                "depends" => info.depends.extend(value.split(',').map(str::to_owned)),
                "softdep" => info.before.extend(before(value).map(str::to_owned)),
                "alias" => info.aliases.push(underscored(value)),
                _ => {}
            }
        }
        info.depends.retain(|name| !name.is_empty());
        Ok(info)
    }
}

fn modinfo(elf: &[u8]) -> object::Result<&[u8]> {
    let elf: ElfFile64<'_> = ElfFile64::parse(elf)?;
    elf.section_by_name(".modinfo").map_or(Ok(&[]), |section| section.data())
}

/// The modules after `pre:` in a soft dependency, as in `pre: a b post: c`.
fn before(softdep: &str) -> impl Iterator<Item = &str> {
    let words = softdep.split_whitespace().skip_while(|word| *word != "pre:").skip(1);
    words.take_while(|word| *word != "post:")
}

/// The name of the module in a file of this name, if it is a module.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (name, compression) = file.rsplit_once(".ko")?;
    matches!(compression, "" | ".xz" | ".zst" | ".gz").then(|| underscored(name))
}

fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

/// Most bytes of a module, debug information included.
const LARGEST: u64 = 1 << 30;

/// The uncompressed contents of a file with this extension.
pub fn unpacked(packed: Vec<u8>, extension: Option<&OsStr>) -> io::Result<Vec<u8>> {
    let packing = match extension.and_then(OsStr::to_str) {
        Some("xz") => Packing::Xz,
        Some("zst") => Packing::Zstd,
        Some("gz") => Packing::Gzip,
        _ => return Ok(packed),
    };
    unpack(packing, &packed, LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_part::failure::FailureKind;
    use latlab_sys::{file, process};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind, write};

    /// A module with these fields in its `.modinfo`.
    fn module(fields: &[&str]) -> Vec<u8> {
        let elf = (BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let mut elf = write::Object::new(elf.0, elf.1, elf.2);
        let section = elf.add_section(Vec::new(), b".modinfo".to_vec(), SectionKind::ReadOnlyData);
        let fields: Vec<u8> =
            fields.iter().flat_map(|field| [field, "\0"]).collect::<String>().into();
        elf.append_section_data(section, &fields, 1);
        elf.write().unwrap()
    }

    /// A kernel's folder in the cache.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.0.path().join("lib/modules/6.1-bare").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            file::write_atomically(&path, bytes).unwrap();
            path
        }

        /// The kernel with the files that are there now.
        fn kernel(&self) -> Kernel {
            Kernel::bare(self.0.path())
        }

        fn modules(&self, wanted: &[&str]) -> Result<Vec<Module>> {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            closure(&self.kernel(), &wanted)
        }

        fn closure(&self, wanted: &[&str]) -> Result<Vec<String>> {
            let modules = self.modules(wanted)?;
            Ok(modules.into_iter().map(|module| module.name).collect())
        }
    }

    /// A file system that depends on a journal and, by alias, on a checksum algorithm.
    fn file_system() -> Folder {
        let folder = Folder::new();
        let needs = ["softdep=pre: crypto-crc32c nowhere post: last", "depends=journal,crc16"];
        folder.put("kernel/fs/fs-four/fs-four.ko", &module(&needs));
        folder.put("kernel/fs/journal.ko", &module(&["depends=crc16"]));
        folder.put("kernel/lib/crc16.ko", &module(&["depends="]));
        folder.put("kernel/lib/last.ko", &module(&[]));
        let checksum = ["alias=crc32c", "alias=crypto-crc32c", "alias=crypto-crc32c-quick"];
        folder.put("kernel/arch/x86/crypto/crc32c-intel.ko", &module(&checksum));
        folder.put("kernel/crypto/crc32c_generic.ko", &module(&checksum[..2]));
        folder
    }

    #[test]
    fn closure_loads_dependencies_first_and_once() {
        let loaded = file_system().closure(&["fs-four", "journal", "fs_four"]).unwrap();
        assert_eq!(loaded, ["crc32c_generic", "crc16", "journal", "fs_four"]);
    }

    #[test]
    fn closure_prefers_the_generic_module_of_an_algorithm() {
        let folder = file_system();
        assert_eq!(folder.closure(&["crypto_crc32c"]).unwrap(), ["crc32c_generic"]);
        assert_eq!(folder.closure(&["crypto-crc32c-quick"]).unwrap(), ["crc32c_intel"]);
    }

    #[test]
    fn closure_leaves_out_built_in_modules() {
        let folder = file_system();
        folder.put("modules.builtin", b"kernel/drivers/virtio-blk.ko\n");
        folder.put("modules.builtin.modinfo", b"crc.author=X\0crc.alias=crypto-crc32c\0");
        let loaded = folder.closure(&["virtio_blk", "fs_four"]).unwrap();
        assert_eq!(loaded, ["crc16", "journal", "fs_four"]);
        assert!(Folder::new().closure(&["anything"]).unwrap().is_empty());
    }

    #[test]
    fn closure_prefers_a_module_in_updates() {
        let folder = file_system();
        folder.put("updates/dkms/crc16.ko", &module(&["depends=last"]));
        assert_eq!(folder.closure(&["crc16"]).unwrap(), ["last", "crc16"]);
    }

    #[test]
    fn closure_refuses_a_module_that_was_changed_or_added() {
        let folder = file_system();
        let kernel = folder.kernel();
        let load = |name: &str| closure(&kernel, &[name.to_owned()]).unwrap_err().to_string();
        folder.put("kernel/lib/crc16.ko", &module(&["depends=", "author=another"]));
        assert!(load("fs_four").contains("crc16.ko: it was changed"), "{}", load("fs_four"));
        folder.put("kernel/lib/new.ko", &module(&[]));
        assert!(load("new").contains("no module new"), "{}", load("new"));
        std::fs::remove_dir_all(folder.0.path().join("lib")).unwrap();
        assert!(load("fs_four").contains("No such file"), "{}", load("fs_four"));
    }

    #[test]
    fn closure_names_a_missing_module_in_one_sentence() {
        let folder = file_system();
        let lacks =
            |text: &str| Err(Failure::unsupported(format!("kernel 6.1-bare has no {text}")));
        let said = folder.closure(&["fs_fuor"]);
        assert_eq!(said, lacks("module fs_fuor: did you mean fs_four?"));
        folder.put("kernel/broken.ko", &module(&["depends=xyzzy"]));
        let said = folder.closure(&["broken"]);
        assert_eq!(said, lacks("module xyzzy, which broken needs: use a kernel that has it"));
        let path = folder.put("kernel/text.ko", b"this is text").display().to_string();
        let said = folder.closure(&["text"]).unwrap_err();
        assert_eq!(said.kind, FailureKind::Failed);
        assert!(said.text.starts_with(&format!("{path}: this is not a kernel module: ")), "{said}");
    }

    #[test]
    fn compressed_modules_are_unpacked_and_damaged_ones_refused() {
        // As the kernel's build compresses them (`scripts/Makefile.modinst`).
        let tools: [&[&str]; 3] = [
            &["gzip", "-n", "-f", "--keep"],
            &["xz", "--check=crc32", "--lzma2=dict=1MiB", "-f", "--keep"],
            &["zstd", "-T0", "-f", "-q", "--keep"],
        ];
        let filler = format!("description={}", "all work and no play ".repeat(9_999));
        let plain = module(&["depends=", &filler]);
        for (tool, extension) in tools.into_iter().zip(["gz", "xz", "zst"]) {
            let folder = Folder::new();
            let path = folder.put("kernel/one.ko", &plain);
            let packed = process::command(tool[0]).args(&tool[1..]).arg(&path).status();
            assert!(packed.expect("it is installed: see the Makefile").success(), "{tool:?}");
            std::fs::remove_file(&path).unwrap();
            let modules = folder.modules(&["one"]).unwrap();
            assert!(modules.len() == 1 && modules[0].bytes == plain, "{extension}");
            let packed = path.with_extension(format!("ko.{extension}"));
            let mut bytes = std::fs::read(&packed).unwrap();
            assert!(bytes.len() < plain.len() / 2, "{extension}: it is compressed");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
            file::write_atomically(&packed, &bytes).unwrap();
            let said = folder.closure(&["one"]).expect_err("it is damaged");
            assert_eq!(said.kind, FailureKind::Failed);
            assert!(said.text.starts_with(&packed.display().to_string()), "{said}");
        }
    }
}
