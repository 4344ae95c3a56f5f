//! Prepares a guest that has just booted: mounts, cgroup controllers, modules and the loopback interface. Opens the control line.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// File systems to mount, in this order: kind, place and options. One that the kernel has mounted already stays as it is.
const MOUNTS: [(&str, &str, &str); 8] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
    // Without favordynmods, each move into a control group takes some 60 ms.
    ("cgroup2", "/sys/fs/cgroup", "favordynmods"),
];
/// Links in /dev that udev makes elsewhere: each with what it leads to.
const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "fd/0"),
    ("/dev/stdout", "fd/1"),
    ("/dev/stderr", "fd/2"),
];
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "pids", "io"];
/// How much the kernel reads ahead of the root disk, in KiB. It costs no memory, since the pages are the image's own, and a
/// program gets as much at once.
const READ_AHEAD: (&str, &str) = ("/sys/block/ubda/queue/read_ahead_kb", "256");
/// The folder that the supervisor lends by hostfs. In it is one for the kernel's release, by which modprobe knows what is built
/// in.
const MODULES: &str = "modules";
const DEFAULT_LINE: &str = "/dev/ttyS0";

pub fn prepare() -> io::Result<()> {
    for (kind, target, options) in MOUNTS {
        mount(kind, target, options)
            .map_err(|error| io::Error::other(format!("{target}: {error}")))?;
    }
    for (link, target) in LINKS {
        // It fails where there is one.
        let _ = std::os::unix::fs::symlink(target, link);
    }
    for controller in CONTROLLERS {
        // It fails for a controller that this kernel does not have.
        let _ = fs::write(
            "/sys/fs/cgroup/cgroup.subtree_control",
            format!("+{controller}"),
        );
    }
    // It fails where there is no such disk.
    let _ = fs::write(READ_AHEAD.0, READ_AHEAD.1);
    borrow_modules()?;
    bring_loopback_up()
}

/// Mount the lent folder of modules, unless this kernel has modules of its own. It stays unmounted where there is no hostfs, as
/// for a kernel that is not confined.
fn borrow_modules() -> io::Result<()> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let target = format!("/usr/lib/modules/{}", release.trim_end());
    // hostfs takes its options as a path.
    let options = format!("{MODULES}/{}", release.trim_end());
    let is_own = fs::exists(format!("{target}/kernel"))?;
    if !is_own && mount("hostfs", &target, &options).is_err() {
        // Leave no empty directory behind.
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

/// Open the control line in raw mode. MINIGTS_LINE, which the kernel's command line may set, names its device; the default is
/// DEFAULT_LINE.
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

/// The error of a call of the C library, if it has returned a negative number.
pub fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
