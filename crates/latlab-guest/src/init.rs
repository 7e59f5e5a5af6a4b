//! The init process of a guest, started by its kernel.

use crate::orders::{DRIVER, JOB, Job, MODULES, ORDERS, Orders, PROGRAM};
use crate::{archive, calibration, disk, kallsyms, orders};
use latlab_core::machine::TimeDomain;
use latlab_core::plan::Plan;
use latlab_core::record::WarningCode;
use latlab_core::time::Nanos;
use latlab_measure::engine::{self, Prepared};
use latlab_measure::message::{Message, Messenger, program};
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::machine::TIME_DOMAIN;
use latlab_sys::mailbox::Mailbox;
use latlab_sys::process;
use latlab_sys::signal::Signals;
use latlab_sys::{clock, init, terminal};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Whether this process is the init process of a guest.
pub fn is_init() -> bool {
    std::process::id() == 1 && Path::new(ORDERS).exists()
}

/// Carries out the guest's orders and powers it off. On failure it panics with the reason, which
/// the kernel prints on the console before it panics too.
pub fn serve() -> ! {
    let served = mount_all().and_then(|()| {
        let orders: Orders = read(ORDERS)?;
        let mut port = port(&orders)?;
        let done = prepare(&orders).and_then(|()| {
            let job = job()?;
            load_driver(&orders)?;
            carry_out(&job, &orders, &mut port)
        });
        let last = done.unwrap_or_else(Message::Failed);
        // Closing the port waits until everything is sent.
        last.send(&mut port).context("the port")
    });
    if let Err(failure) = served {
        panic!("{failure}");
    }
    panic!("the guest can't be powered off: {}", init::power_off());
}

/// Mounts the file systems that programs expect and latlab reads.
fn mount_all() -> Result<()> {
    let needed = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];
    let wanted = [
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("bpf", "/sys/fs/bpf"),
        ("devpts", "/dev/pts"),
        ("mqueue", "/dev/mqueue"),
        ("tmpfs", "/dev/shm"),
    ];
    // The root is in memory, and the user's program may lie in these folders.
    for folder in ["/run", "/tmp", "/var/tmp"] {
        std::fs::create_dir_all(folder).context(folder)?;
    }
    for (kind, place) in needed {
        init::mount(kind, kind, Path::new(place)).context(place)?;
    }
    for (kind, place) in wanted {
        // Not every kernel has all of them; a part that needs one reports it.
        let _ = init::mount(kind, kind, Path::new(place));
    }
    let _ = init::loopback_up();
    Ok(())
}

/// The serial port to latlab on the host; the other one is the console.
///
/// A kernel with threaded interrupts takes an interrupt for each byte. Linux 6.1 counts few of them as handled,
/// unlike 6.12, and disables the interrupt after 100 000, so that nothing more could be sent. The port is opened,
/// which requests its interrupt, while that check is off (`note_interrupt` in `kernel/irq/spurious.c`).
fn port(orders: &Orders) -> Result<File> {
    /// A parameter of each kernel that has the check. An interrupt keeps its value at the request.
    const UNCHECKED: &str = "/sys/module/spurious/parameters/noirqdebug";
    let path = format!("/dev/{}", orders.port);
    let set_unchecked = |word: &str| -> io::Result<()> {
        File::options().write(true).open(UNCHECKED)?.write_all(word.as_bytes())
    };
    let open = || {
        let _ = set_unchecked("Y");
        let port = File::options().write(true).open(&path)?;
        let _ = set_unchecked("N");
        terminal::set_raw(&port)?;
        Ok(port)
    };
    open().map_err(|e: io::Error| failed(&path, e))
}

/// Prepares the guest as ordered, whatever its job is.
fn prepare(orders: &Orders) -> Result<()> {
    for module in &orders.modules {
        load(module)?;
    }
    if let Some(folder) = &orders.disk {
        make_disk(folder)?;
    }
    for (path, value) in &orders.files {
        // Each write to these files is a command of its own.
        let mut file = File::options().write(true).open(path).context(path)?;
        file.write_all(value.as_bytes()).context(&format!("{value} to {path}"))?;
    }
    if orders.forgets_device {
        forget_device().context("the device of the test driver")?;
    }
    settle();
    Ok(())
}

/// The job. In instruction time the guest stops here, and receives it from latlab on the host;
/// otherwise it is in the initramfs.
fn job() -> Result<Job> {
    if !Path::new(JOB).exists() {
        let mut mailbox = Mailbox::map().context("the mailbox")?;
        let unpacked = archive::unpack(&mailbox.receive(), Path::new("/"));
        unpacked.context("the files of the job")?;
    }
    read(JOB)
}

/// Makes the kernel forget the test driver's interrupting device, and leaves the device as after
/// power-on. A guest that continues later then finds the same device as a restored guest.
fn forget_device() -> io::Result<()> {
    /// Fields of the configuration space that the kernel has written: the command, and the address of
    /// the registers (PCI Local Bus Specification, 6.1).
    const WRITTEN: [(u64, usize); 2] = [(0x04, 2), (0x10, 4)];
    for device in std::fs::read_dir("/sys/bus/pci/devices")? {
        let device = device?.path();
        let is = |file: &str, id: &str| {
            std::fs::read_to_string(device.join(file)).is_ok_and(|text| text.trim() == id)
        };
        if is("vendor", "0x1234") && is("device", "0x11e8") {
            let config = File::options().write(true).open(device.join("config"))?;
            for (at, length) in WRITTEN {
                config.write_all_at(&[0; 4][..length], at)?;
            }
            File::options().write(true).open(device.join("remove"))?.write_all(b"1")?;
        }
    }
    Ok(())
}

/// Loads the test driver. In instruction time its device is found now: it was plugged in while the
/// guest was stopped, or forgotten before.
fn load_driver(orders: &Orders) -> Result<()> {
    const RESCAN: &str = "/sys/bus/pci/rescan";
    if !orders.driver {
        return Ok(());
    }
    if orders.time_domain == TimeDomain::Instructions {
        let scan = || File::options().write(true).open(RESCAN)?.write_all(b"1");
        scan().map_err(|e: io::Error| failed(RESCAN, e))?;
    }
    load(DRIVER)
}

fn read<T: DeserializeOwned>(path: &str) -> Result<T> {
    let bytes = std::fs::read(path).context(path)?;
    serde_json::from_slice(&bytes).context(path)
}

fn carry_out(job: &Job, orders: &Orders, port: &mut File) -> Result<Message> {
    match job {
        Job::Run(plan) => run(plan, orders, port),
        Job::Exec { words, folder, variables } => {
            // Through latlab, so that its options mean the same as on the host.
            let mut command = process::command(PROGRAM);
            command.args(words).current_dir(folder);
            command.envs(variables).env(TIME_DOMAIN, orders.time_domain.word());
            std::fs::create_dir_all(folder).at(folder)?;
            program::run(&mut command, port, &mut || false).map(Message::Exited)
        }
        Job::Calibrate => calibration::read(orders.calibration.as_ref()).map(Message::Calibration),
        Job::Symbols(_) => kallsyms::send(port).map(|()| Message::Exited(0)),
    }
}

/// Waits until the kernel has finished its delayed work of the boot: it chooses its clocksource a
/// second later. In instruction time, waiting costs nothing.
fn settle() {
    const LONGEST: Nanos = Nanos::from_secs(3);
    const STEP: Nanos = Nanos::from_millis(100);
    let chosen = || {
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(path).is_ok_and(|name| !name.contains("early"))
    };
    let deadline = clock::now() + LONGEST;
    while !chosen() && clock::now() < deadline {
        clock::sleep_for(STEP);
    }
    clock::sleep_for(STEP);
}

/// `name` or `name key=value …`.
fn load(module: &str) -> Result<()> {
    let (name, parameters) = module.split_once(' ').unwrap_or((module, ""));
    let path = format!("{MODULES}/{name}.ko");
    let load = || init::load_module(&File::open(&path)?, parameters);
    load().context(&format!("the module {name}"))
}

/// A disk in memory, whose completions are timers of the guest, with a file system on it.
fn make_disk(folder: &Path) -> Result<()> {
    const DISK: &str = "/dev/nullb0";
    if !Path::new(DISK).exists() {
        return Err(Failure::unsupported(
            "the guest's disk needs the kernel's module null_blk: add the kernel with its modules \
             (latlab kernel add FILE --modules DIR), or use one that has it built in",
        ));
    }
    let file = File::options().write(true).open(DISK).context(DISK)?;
    disk::write(&file).context("the guest's disk")?;
    drop(file);
    init::mount("ext4", DISK, folder).context("the guest's disk")
}

fn run(plan: &Plan, orders: &Orders, port: &mut File) -> Result<Message> {
    if plan.starts_programs() {
        init::set_variables(&orders::usual_variables());
    }
    let signals = Signals::block().context("signals can't be blocked")?;
    // Progress messages would disturb the only processor.
    let mut watch = Messenger::new(&mut *port, Nanos::from_secs(3600));
    let plan = Prepared::of(plan)?;
    let mut outcome = engine::run(&plan, orders.time_domain, &signals, &mut watch)?;
    // The guest is configured by its profile, so that the doctor's findings are expected.
    outcome.record.warnings.retain(|warning| warning.code != WarningCode::Machine);
    let engine::Outcome { record, verdict } = outcome;
    Ok(Message::Record { record: Box::new(record), verdict })
}
