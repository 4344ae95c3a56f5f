//! Makes a freshly booted guest usable: mounts, controllers, modules, loopback; and the line that requests arrive on.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// What, where and with which options, in this order. What the kernel itself has mounted already stays.
const MOUNTS: [(&str, &str, &str); 8] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
    // Without it each move into a group costs some 60 ms.
    ("cgroup2", "/sys/fs/cgroup", "favordynmods"),
];
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "pids", "io"];
/// What is read ahead is lent by the disk's image and takes no memory; a program is given as much at once.
const READ_AHEAD: (&str, &str) = ("/sys/block/ubda/queue/read_ahead_kb", "256");
/// What the supervisor lends by hostfs: a folder named for the kernel's release, with which modprobe knows what is built in.
const MODULES: &str = "modules";
const DEFAULT_LINE: &str = "/dev/ttyS0";

pub fn prepare() -> io::Result<()> {
    for (kind, target, options) in MOUNTS {
        mount(kind, target, options)
            .map_err(|error| io::Error::other(format!("{target}: {error}")))?;
    }
    for controller in CONTROLLERS {
        // One that this kernel has not is nothing to give on.
        let _ = fs::write(
            "/sys/fs/cgroup/cgroup.subtree_control",
            format!("+{controller}"),
        );
    }
    // What has no such disk does without.
    let _ = fs::write(READ_AHEAD.0, READ_AHEAD.1);
    borrow_modules()?;
    bring_loopback_up()
}

/// A kernel with modules of its own is lent none, and one that is not confined has no hostfs.
fn borrow_modules() -> io::Result<()> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let target = format!("/usr/lib/modules/{}", release.trim_end());
    // mount(2) hands hostfs the path alone.
    let options = format!("{MODULES}/{}", release.trim_end());
    let is_own = fs::exists(format!("{target}/kernel"))?;
    if !is_own && mount("hostfs", &target, &options).is_err() {
        // Not even an empty directory is left of it.
        let _ = fs::remove_dir(target);
    }
    Ok(())
}

fn mount(kind: &str, target: &str, options: &str) -> io::Result<()> {
    let _ = fs::DirBuilder::new().mode(0o755).create(target);
    let [kind, target, options] = [kind, target, options].map(|each| CString::new(each).unwrap());
    let mounted = unsafe {
        libc::mount(
            kind.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            options.as_ptr().cast(),
        )
    };
    match done(mounted) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        result => result,
    }
}

fn bring_loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) })
}

/// The control line, which the kernel's command line may name, as bytes that nobody interprets.
pub fn open_line() -> io::Result<File> {
    let path = std::env::var_os("MINIGTS_LINE").unwrap_or_else(|| DEFAULT_LINE.into());
    let line = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(path)?;
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    done(unsafe { libc::tcgetattr(line.as_raw_fd(), &mut settings) })?;
    unsafe { libc::cfmakeraw(&mut settings) };
    settings.c_cc[libc::VMIN] = 1;
    settings.c_cc[libc::VTIME] = 0;
    done(unsafe { libc::tcsetattr(line.as_raw_fd(), libc::TCSAFLUSH, &settings) })?;
    Ok(line)
}

/// What a call of the C library says went wrong.
pub fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
