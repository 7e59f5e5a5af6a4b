//! Kernels in the cache: each is complete or absent, whatever happens to the process that adds it.

use crate::program::{
    Missing, Output, Running, command, entries, folder, in_mount_namespace, latlab, not_run,
    path_with_script, pause, root, run, wait_until,
};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Returns the smallest kernel image: an ELF header, the PVH note for QEMU, and a banner.
pub(super) fn kernel(release: &str) -> Vec<u8> {
    let mut file = vec![0_u8; 64 + 56];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let note = b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0\x53\x0b\0\x01";
    let header = [(16, 2), (18, 62), (20, 1), (32, 64), (52, 64), (54, 56), (56, 1)];
    let segment = [(64, 4), (72, 120), (96, 20), (112, 4)];
    for (at, value) in header.into_iter().chain(segment) {
        file[at] = value;
    }
    let banner = format!("Linux version {release} (someone@somewhere) #1 SMP\0");
    [file.as_slice(), note, banner.as_bytes()].concat()
}

/// Returns the command `latlab kernel` with these arguments, with `folder` as working directory and
/// cache.
fn in_cache(folder: &Path, words: &str) -> Command {
    let mut command = command(&format!("kernel {words}"));
    command.current_dir(folder).env("XDG_CACHE_HOME", folder);
    command
}

/// Returns the names in the cache, with drafts and without locks.
fn kernels(folder: &Path) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let paths = entries(&folder.join("latlab/kernels"));
    let mut names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    names.retain(|name| name != ".locks");
    names.sort();
    names
}

/// Creates the cache in `folder`.
fn cache(folder: &Path) -> PathBuf {
    let cache = folder.join("latlab");
    let private = Permissions::from_mode(0o700);
    let created = fs::create_dir(&cache).and_then(|()| fs::set_permissions(&cache, private));
    created.expect("the folder is the test's own");
    cache
}

fn assert_prints_name(output: &Output, name: &str) {
    assert_eq!(
        (output.code(), output.stdout.as_str()),
        (Some(0), format!("{name}\n").as_str()),
        "{output:?}"
    );
}

#[test]
fn kernel_is_added_listed_and_removed() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9-mine")).unwrap();
    fs::create_dir_all(folder.join("m/lib/modules/6.1.9-mine/kernel")).unwrap();
    fs::write(folder.join("m/lib/modules/6.1.9-mine/modules.order"), "a.ko").unwrap();
    symlink("/", folder.join("m/lib/modules/6.1.9-mine/build")).unwrap();
    assert_prints_name(&run(&mut in_cache(folder, "add vmlinux --modules m")), "6.1.9-mine");
    assert_prints_name(&run(&mut in_cache(folder, "add vmlinux --name other")), "other");
    let modules = folder.join("latlab/kernels/6.1.9-mine/lib/modules/6.1.9-mine");
    assert!(modules.join("modules.order").is_file() && !modules.join("build").exists());
    fs::write(folder.join("rebuilt"), [kernel("6.1.9-mine").as_slice(), b"again"].concat())
        .unwrap();
    let refused = run(&mut in_cache(folder, "add rebuilt --name other"));
    refused.assert_refused(2, &["has the name other already (6.1.9-mine)", "kernel remove other"]);
    assert_prints_name(&run(&mut in_cache(folder, "add vmlinux --name other")), "other");
    let list = run(&mut in_cache(folder, "list")).stdout;
    for word in ["6.1.9-mine", "kernel = { added = \"other\" }", "linux-image-6.12-rt-amd64"] {
        assert!(list.contains(word), "{word}: {list}");
    }
    let sentence = run(&mut in_cache(folder, "remove othre"));
    sentence.assert_refused(2, &["there is no kernel 'othre'", "did you mean other?"]);
    assert_eq!(run(&mut in_cache(folder, "remove other 6.1.9-mine")).code(), Some(0));
    assert_eq!(kernels(folder), Vec::<String>::new());
}

#[test]
fn file_that_is_no_kernel_is_refused_and_leaves_nothing() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9")).unwrap();
    fs::write(folder.join("noise"), [0x5a; 5000]).unwrap();
    let refused = |words: &str, saying: &[&str]| {
        run(&mut in_cache(folder, words)).assert_refused(2, saying);
    };
    refused("add noise", &["noise", "not a Linux kernel"]);
    refused("add /proc/self/exe", &["/proc/self/exe", "a program"]);
    refused("add /dev/zero", &["/dev/zero", "not a kernel"]);
    refused("add absent", &["absent", "No such file"]);
    refused("add vmlinux --name ../x", &["'../x'", "letters"]);
    refused("add vmlinux --name rt", &["rt is a profile's name", "--name"]);
    refused("add vmlinux --modules .", &["no modules of 6.1.9"]);
    refused("fetch ../linux", &["'../linux'", "not a package name"]);
    refused("build monolitic", &["no build 'monolitic'", "monolithic"]);
    assert!(!folder.join("latlab/kernels").exists() || kernels(folder).is_empty());
}

#[test]
fn kernel_added_twice_at_once_is_whole() {
    let folder = folder();
    let folder = folder.path();
    let bytes = [kernel("6.1.9"), vec![0; 20_000_000]].concat();
    fs::write(folder.join("vmlinux"), &bytes).unwrap();
    let both = [(); 2].map(|()| Running::start(&mut in_cache(folder, "add vmlinux")));
    for output in both.map(Running::finish) {
        assert_prints_name(&output, "6.1.9");
    }
    assert_eq!(kernels(folder), ["6.1.9"]);
    assert!(fs::read(folder.join("latlab/kernels/6.1.9/image")).unwrap() == bytes);
}

#[test]
fn wait_for_another_latlab_is_reported_and_can_be_ended() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9")).unwrap();
    let locks = cache(folder).join("kernels/.locks");
    fs::create_dir_all(&locks).unwrap();
    let lock = File::create(locks.join("add-6.1.9")).unwrap();
    lock.lock().unwrap();
    let waits = |running: &Running| {
        wait_until("the wait is reported", || {
            running.stderr().contains("another latlab is adding 6.1.9")
        });
    };
    let ended = Running::start(&mut in_cache(folder, "add vmlinux"));
    waits(&ended);
    ended.signal("INT");
    let output = ended.finish();
    assert!(output.code() == Some(4) && output.stderr.contains("ended on request"), "{output:?}");
    let patient = Running::start(&mut in_cache(folder, "add vmlinux"));
    waits(&patient);
    assert_eq!(kernels(folder), Vec::<String>::new());
    lock.unlock().unwrap();
    assert_prints_name(&patient.finish(), "6.1.9");
}

#[test]
fn draft_of_killed_process_is_no_kernel_and_is_removed() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9")).unwrap();
    let draft = cache(folder).join("kernels/.draft-add-6.1.9/whole");
    fs::create_dir_all(&draft).unwrap();
    fs::write(draft.join("image"), "half").unwrap();
    let half = folder.join("latlab/kernels/half");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("image"), "half").unwrap();
    assert!(!run(&mut in_cache(folder, "list")).stdout.contains("half"));
    let other = folder.join("latlab/kernels/.draft-fetch-linux-image-of-old/tree");
    fs::create_dir_all(&other).unwrap();
    assert_prints_name(&run(&mut in_cache(folder, "add vmlinux")), "6.1.9");
    assert_eq!(kernels(folder), ["6.1.9", "half"]);
    // What is no complete kernel can be removed by its name.
    fs::write(folder.join("latlab/kernels/6.1.9/kernel.json"), "{").unwrap();
    assert_eq!(run(&mut in_cache(folder, "remove half 6.1.9")).code(), Some(0));
    assert_eq!(kernels(folder), Vec::<String>::new());
    for name in [".locks", "../kernels", ""] {
        let output = run(in_cache(folder, "remove").arg(name));
        assert_eq!(output.code(), Some(2), "{output:?}");
    }
}

#[test]
fn read_only_cache_still_lists_its_kernels() {
    if !root() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9")).unwrap();
    assert_prints_name(&run(&mut in_cache(folder, "add vmlinux")), "6.1.9");
    let read_only = "mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"; cd \"$1\"";
    let in_read_only = |words: &str| {
        run(in_mount_namespace(read_only, folder, &format!("kernel {words}"))
            .env("XDG_CACHE_HOME", folder))
    };
    let list = in_read_only("list");
    assert!(list.code() == Some(0) && list.stdout.contains("6.1.9"), "{list:?}");
    in_read_only("add vmlinux --name b")
        .assert_refused(2, &["latlab/kernels", "Read-only file system"]);
    in_read_only("remove 6.1.9").assert_refused(2, &["latlab/kernels", "Read-only file system"]);
}

/// What is in the cache is booted, and loaded into QEMU.
#[test]
fn cache_that_others_can_write_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let cache = cache(folder);
    fs::set_permissions(&cache, Permissions::from_mode(0o777)).unwrap();
    run(&mut in_cache(folder, "list")).assert_refused(2, &["chmod -R go-w", "latlab"]);
    fs::set_permissions(&cache, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(&mut in_cache(folder, "list")).code(), Some(0));
    if !root() {
        return;
    }
    chown(&cache, Some(65_534), None).unwrap();
    run(&mut in_cache(folder, "list"))
        .assert_refused(2, &["belongs to another user", "XDG_CACHE_HOME"]);
}

#[test]
fn kernel_changed_in_the_cache_is_removed_and_never_booted() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), kernel("6.1.9")).unwrap();
    assert_prints_name(&run(&mut in_cache(folder, "add vmlinux")), "6.1.9");
    let image = folder.join("latlab/kernels/6.1.9/image");
    // The file system may count time in ticks.
    pause(Duration::from_millis(20));
    File::options().write(true).open(image).unwrap().write_all_at(b"7", 200).unwrap();
    let mut command = command("run cyclic --count 1 --on lab:6.1.9");
    let output = run(command.env("XDG_CACHE_HOME", folder));
    assert_eq!(output.code(), Some(2), "{output:?}");
    let removed = "latlab: the kernel 6.1.9 was changed in the cache: it is removed\n";
    assert!(output.stderr.starts_with(removed), "{output:?}");
    assert_eq!(kernels(folder), Vec::<String>::new());
}

/// The programs that unpack a package are not children of latlab. Here they run until they are killed:
/// real ones may end before this test gets a CPU to see them.
#[test]
fn fetch_that_is_killed_leaves_nothing_running_and_can_be_repeated() {
    const PACKAGE: &str = "linux-image-cloud-amd64";
    if !has_apt() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let unpack = "[ \"$1\" = -x ] || exec /usr/bin/dpkg-deb \"$@\"\n\
                  tail -f \"$2\" >/dev/null; exit 1";
    let path = path_with_script(folder, "dpkg-deb", unpack);
    let words = format!("fetch {PACKAGE}");
    let fetch = || Running::start(in_cache(folder, &words).env("PATH", &path));
    let first = fetch();
    wait_until("the package is unpacked", || {
        programs_in(folder).any(|line| line.starts_with("tail -f "))
    });
    first.signal("KILL");
    wait_until("all programs end", || programs_in(folder).next().is_none());
    let again = fetch();
    wait_until("the package is fetched again", || again.stderr().contains("fetching linux-image"));
    again.signal("INT");
    let output = again.finish();
    assert!(output.stderr.contains("ended on request"), "{output:?}");
    assert_eq!(kernels(folder), Vec::<String>::new());
}

/// Returns the command lines of the running programs that name this folder.
pub(super) fn programs_in(folder: &Path) -> impl Iterator<Item = String> {
    let folder = folder.display().to_string();
    let line = |path: PathBuf| fs::read(path.join("cmdline")).ok();
    let lines = entries(Path::new("/proc")).into_iter().filter_map(line);
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(move |line| line.contains(&folder))
}

#[test]
fn full_disk_is_refused_before_copying() {
    if !root() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("vmlinux"), [kernel("6.1.9"), vec![0; 5_000_000]].concat()).unwrap();
    let script = "mkdir \"$1/c\"; mount -t tmpfs -o size=2m none \"$1/c\"; cd \"$1\"";
    let output = run(in_mount_namespace(script, folder, "kernel add vmlinux")
        .env("XDG_CACHE_HOME", folder.join("c")));
    output.assert_refused(2, &["latlab/kernels", "5 MB are needed and 2 MB are free"]);
}

#[test]
fn fetch_without_apt_names_another_way() {
    let folder = folder();
    let output = run(in_cache(folder.path(), "fetch").env("PATH", folder.path()));
    output.assert_refused(3, &["apt-cache is not installed", "latlab kernel add FILE"]);
}

/// Whether packages can be fetched with apt-get.
fn has_apt() -> bool {
    let exists = Path::new("/usr/bin/apt-get").exists();
    if !exists {
        not_run(Missing::Required, "it needs apt-get");
    }
    exists
}

/// Without the signature anybody on the way could replace a kernel.
#[test]
fn archive_without_signature_is_refused_in_one_sentence() {
    if !has_apt() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let suite = folder.join("debian/dists/bookworm");
    fs::create_dir_all(&suite).unwrap();
    fs::write(suite.join("Release"), "Suite: oldstable\nCodename: bookworm\nComponents: main\n")
        .unwrap();
    let sources = folder.join("sources.list");
    fs::write(&sources, format!("deb file:{}/debian bookworm main\n", folder.display())).unwrap();
    let settings = format!(
        "Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"/dev/null\";\n",
        sources.display()
    );
    fs::write(folder.join("apt.conf"), settings).unwrap();
    let mut list = in_cache(folder, "list --available");
    let output = run(list.env("APT_CONFIG", folder.join("apt.conf")));
    assert_eq!((output.code(), output.stdout.as_str()), (Some(2), ""), "{output:?}");
    let sentence = output.stderr.lines().last().unwrap();
    assert!(sentence.starts_with("latlab: Debian's package lists can't be read ("), "{output:?}");
    assert!(sentence.contains("try again"), "{output:?}");
    assert!(!folder.join("latlab/apt/amd64/updated").exists());
}

/// A plan that may lack parts would omit the test driver for a wrong reason.
#[test]
fn error_of_apt_is_passed_on_and_not_taken_for_an_absent_package() {
    if !has_apt() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let sources = folder.join("sources.list");
    fs::write(&sources, "deb nonsense\n").unwrap();
    let settings = format!("Dir::Etc::sourcelist \"{}\";\n", sources.display());
    fs::write(folder.join("apt.conf"), settings).unwrap();
    for words in ["fetch linux-image-7.3-rt-amd64", "list --available"] {
        let output = run(in_cache(folder, words).env("APT_CONFIG", folder.join("apt.conf")));
        output.assert_refused(2, &["apt-", "Malformed entry 1", "sources.list"]);
    }
}

#[test]
fn missing_build_tools_are_named_with_their_packages() {
    if !has_apt() {
        return;
    }
    let folder = folder();
    let tools = folder.path().join("bin");
    fs::create_dir(&tools).unwrap();
    for tool in ["apt-cache", "apt-get"] {
        symlink(Path::new("/usr/bin").join(tool), tools.join(tool)).unwrap();
    }
    let output = run(in_cache(folder.path(), "build lab-full").env("PATH", &tools));
    assert_eq!(output.code(), Some(3), "{output:?}");
    let sentence = output.stderr.lines().last().unwrap();
    assert!(sentence.contains("apt-get install gcc make flex bison"), "{sentence}");
    assert!(sentence.contains("dwarves"), "{sentence}");
}

/// In the user's own cache, which the laboratory uses.
#[test]
fn debian_kernels_are_fetched_once() {
    if !has_apt() {
        return;
    }
    // Without a timeout, as the network may be slow.
    let fetch = || {
        let output = command("kernel fetch").output().expect("latlab starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is UTF-8");
        assert!(output.status.success(), "{}", text(output.stderr));
        (text(output.stdout), text(output.stderr))
    };
    let (first, _) = fetch();
    let names: Vec<&str> = first.lines().collect();
    assert!(names.len() == 2 && names[0].starts_with("debian-") && names[1].contains("-rt-"));
    let (again, stderr) = fetch();
    assert_eq!(again, first);
    // It also says so if it waits for another latlab.
    let known = stderr.lines().filter(|line| line.contains("is in the cache already"));
    assert_eq!(known.count(), 2, "{stderr}");
    let list = latlab("kernel list").stdout;
    assert!(names.iter().all(|name| list.contains(name)), "{list}");
}
