//! Light hosts: hosts that share this guest's kernel, each in namespaces of its own, on a view of the guest's root of its own.
//!
//!     agent light          makes those that JSON on standard input describes, and ends when all are there
//!
//! A light host has a process 1, which waits for nothing but its children, and keeps the namespaces. Its interfaces are VLANs of
//! the guest's only card, by the tags that the clock knows (provision/clock/src/trunk.rs). What it changes in files is in memory.

use crate::json::Value;
use crate::system::done;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder that has a folder for each light host.
const HOSTS: &str = "/run/minigts/light";
/// In it, the number of the host's process 1.
const FIRST: &str = "first";
const TRUNK: &str = "eth0";
/// The largest frame that a trunk carries: a port's MTU may be as large as a card's.
const TRUNK_MTU: u32 = 65535;

const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWPID;

struct Port {
    tag: u32,
    name: String,
    mac: String,
    mtu: u32,
}

struct Host {
    name: String,
    ports: Vec<Port>,
}

/// Make the light hosts that standard input describes: JSON [{"name": ..., "ports": [{"tag", "name", "mac", "mtu"}, ...]}, ...].
pub fn make() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    let hosts = Value::read(&text)
        .as_ref()
        .and_then(hosts_of)
        .ok_or_else(|| io::Error::other("standard input describes no light hosts"))?;
    let mut links = vec![format!("link set dev {TRUNK} mtu {TRUNK_MTU} up")];
    for host in &hosts {
        let first = begin(&host.name)
            .map_err(|error| io::Error::other(format!("{}: {error}", host.name)))?;
        links.extend(host.ports.iter().map(|port| {
            let Port { tag, name, mac, mtu } = port;
            format!("link add link {TRUNK} name {name} netns {first} address {mac} mtu {mtu} type vlan id {tag}")
        }));
    }
    add(&links)?;
    // What a port is told of its own offload would not hold for its trunk.
    let told = Command::new("ethtool")
        .args(["-K", TRUNK, "gro", "off"])
        .status()?;
    match told.success() {
        true => Ok(()),
        false => Err(io::Error::other("ethtool could not set the trunk")),
    }
}

fn hosts_of(value: &Value) -> Option<Vec<Host>> {
    let host = |one: &Value| {
        let ports = one.of("ports")?.list()?.iter().map(port_of);
        Some(Host {
            name: name_of(one)?,
            ports: ports.collect::<Option<_>>()?,
        })
    };
    value.list()?.iter().map(host).collect()
}

fn port_of(value: &Value) -> Option<Port> {
    Some(Port {
        tag: value.of("tag")?.number()? as u32,
        name: name_of(value)?,
        mac: text(value.of("mac")?)?,
        mtu: value.of("mtu")?.number()? as u32,
    })
}

fn name_of(value: &Value) -> Option<String> {
    text(value.of("name")?)
}

/// A word without blanks, and no path.
fn text(value: &Value) -> Option<String> {
    let text = String::from_utf8(value.bytes()?.to_vec()).ok()?;
    let fits = |each: char| each.is_ascii_alphanumeric() || "-_.:".contains(each);
    (!text.is_empty() && !text.starts_with('.') && text.chars().all(fits)).then_some(text)
}

/// Have `ip` carry out these lines.
fn add(lines: &[String]) -> io::Result<()> {
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all((lines.join("\n") + "\n").as_bytes())?;
    }
    match ip.wait()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("ip could not add the hosts' ports")),
    }
}

fn folder(host: &str) -> PathBuf {
    Path::new(HOSTS).join(host)
}

/// Begin a host. Returns the number of its process 1, which has all its file systems then.
fn begin(name: &str) -> io::Result<libc::pid_t> {
    let folder = folder(name);
    for each in ["upper", "work", "root"] {
        fs::create_dir_all(folder.join(each))?;
    }
    let (mut ready, done_by) = pipe()?;
    // SAFETY: this process has one thread. Without a stack of its own the child goes on with a copy of this one, as after fork(2).
    let first = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(NAMESPACES | libc::SIGCHLD),
            0,
            0,
            0,
            0,
        )
    } as libc::pid_t;
    if first == 0 {
        drop(ready);
        be_first(name, &folder, done_by);
    }
    done(first)?;
    drop(done_by);
    let mut why = String::new();
    ready.read_to_string(&mut why)?;
    if !why.is_empty() {
        return Err(io::Error::other(why));
    }
    fs::write(folder.join(FIRST), first.to_string())?;
    Ok(first)
}

fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    done(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    let [ready, done_by] = ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) }));
    Ok((ready, done_by))
}

/// Be a host's process 1. What cannot be done is said to `done_by`, which is closed when all is done.
fn be_first(name: &str, folder: &Path, mut done_by: File) -> ! {
    if let Err(error) = settle(name, folder) {
        let _ = done_by.write_all(error.to_string().as_bytes());
        std::process::exit(1);
    }
    drop(done_by);
    unsafe {
        // It outlives the command that has begun it, and holds none of that one's descriptors.
        libc::setsid();
        for descriptor in 0..3 {
            libc::close(descriptor);
        }
        loop {
            if libc::waitpid(-1, std::ptr::null_mut(), 0) < 0 {
                // It has no child now, and hears when one has come to it and ended.
                libc::pause();
            }
        }
    }
}

/// Make the host's own view of files, and give it its name.
fn settle(name: &str, folder: &Path) -> io::Result<()> {
    listen_for_children()?;
    let root = folder.join("root");
    let at = |place: &str| root.join(place);
    mount(
        "none",
        "",
        Path::new("/"),
        libc::MS_REC | libc::MS_PRIVATE,
        "",
    )?;
    let layers = format!(
        "lowerdir=/,upperdir={0}/upper,workdir={0}/work",
        folder.display()
    );
    mount("overlay", "overlay", &root, 0, &layers)?;
    mount("/dev", "", &at("dev"), libc::MS_BIND | libc::MS_REC, "")?;
    for (kind, place, options) in [
        ("proc", "proc", ""),
        ("sysfs", "sys", ""),
        ("tmpfs", "run", "mode=755"),
        ("tmpfs", "tmp", "mode=1777"),
    ] {
        mount(kind, kind, &at(place), 0, options)?;
    }
    std::env::set_current_dir(&root)?;
    let here = CString::new(".").unwrap();
    // The old root comes to lie over the new one, and is taken away there (pivot_root(2)).
    done(
        unsafe { libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr()) } as libc::c_int,
    )?;
    done(unsafe { libc::umount2(here.as_ptr(), libc::MNT_DETACH) })?;
    std::env::set_current_dir("/")?;
    done(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
}

/// Have SIGCHLD interrupt `pause`, which a process 1 would not hear otherwise.
fn listen_for_children() -> io::Result<()> {
    extern "C" fn heard(_: libc::c_int) {}
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = heard as *const () as usize;
        done(libc::sigaction(
            libc::SIGCHLD,
            &action,
            std::ptr::null_mut(),
        ))
    }
}

fn mount(
    what: &str,
    kind: &str,
    place: &Path,
    flags: libc::c_ulong,
    options: &str,
) -> io::Result<()> {
    let [what, kind, options] = [what, kind, options].map(|each| CString::new(each).unwrap());
    let target = CString::new(place.to_string_lossy().as_bytes()).unwrap();
    done(unsafe {
        libc::mount(
            what.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    })
    .map_err(|error| io::Error::other(format!("{}: {error}", place.display())))
}

/// A light host's namespaces, which a command enters as it starts.
pub struct Place {
    first: OwnedFd,
}

impl Place {
    /// An error if there is no light host of that name.
    pub fn find(host: &str) -> io::Result<Place> {
        let no_host = || io::Error::other(format!("there is no light host {host}"));
        let number = fs::read_to_string(folder(host).join(FIRST)).map_err(|_| no_host())?;
        let number: libc::pid_t = number.parse().map_err(|_| no_host())?;
        let first = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) } as libc::c_int;
        done(first)?;
        let first = unsafe { OwnedFd::from_raw_fd(first) };
        Ok(Place { first })
    }

    /// Another hold on the same place, for a child.
    pub fn copy(&self) -> io::Result<Place> {
        let first = self.first.try_clone()?;
        Ok(Place { first })
    }

    /// From now on this process's children are numbered as the host's.
    pub fn number_children(&self) -> io::Result<()> {
        done(unsafe { libc::setns(self.first.as_raw_fd(), libc::CLONE_NEWPID) })
    }

    /// Enter the other namespaces, and with them the host's root, in the directory `home` there.
    pub fn enter(&self, home: &str) -> io::Result<()> {
        let others = NAMESPACES & !libc::CLONE_NEWPID;
        done(unsafe { libc::setns(self.first.as_raw_fd(), others) })?;
        std::env::set_current_dir(home)
    }
}

/// From now on this process's children are numbered as itself.
pub fn number_children_as_own() -> io::Result<()> {
    let own = File::open("/proc/self/ns/pid")?;
    done(unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWPID) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read() {
        let text = br#"[{"name": "h1", "ports": [{"tag": 7, "name": "eth1", "mac": "02:00:00:00:00:07", "mtu": 1500}]}]"#;
        let hosts = hosts_of(&Value::read(text).unwrap()).unwrap();
        assert_eq!((hosts[0].name.as_str(), hosts[0].ports[0].tag), ("h1", 7));
    }

    #[test]
    fn a_name_is_no_path_and_no_further_word() {
        for name in ["", ".", "../x", "a/b", "a b", "a\nb"] {
            assert!(
                text(&Value::read(format!("{name:?}").as_bytes()).unwrap()).is_none(),
                "{name}"
            );
        }
    }
}
