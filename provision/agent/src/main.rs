//! Process 1 of a guest: prepares the system, then runs commands that arrive on the control line.
//!
//!     agent           as process 1
//!     agent line      at the other end of an SSH connection, on standard input and output
//!     agent light     makes the hosts that share this guest's kernel
//!     probe ADDRESS COUNT INTERVAL_S [SIZE]
//!
//! The agent speaks the frames of wire.py. Every command gets a control group of its own, so that all that it has started ends
//! with it when it is killed. A daemon that a command leaves behind when it ends by itself goes on.

mod agent;
mod command;
mod json;
mod light;
mod probe;
mod system;
mod wire;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::ExitCode;

const GROUPS: &str = "/sys/fs/cgroup/minigts";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let name = words
        .first()
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or_default();
    let result = match (name, words.get(1).map(String::as_str)) {
        ("probe", _) => probe::run(&words[1..]),
        (_, Some("line")) => on_standard_streams(),
        (_, Some("light")) => light::make(),
        _ => as_process_1(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn as_process_1() -> io::Result<()> {
    system::prepare()?;
    let mut line = system::open_line()?;
    line.write_all(wire::HELLO)?;
    agent::Agent::new(line.try_clone()?, line, Path::new(GROUPS).into())?.serve()
}

/// Serve an SSH connection. When it ends, so do the commands that were begun over it, but not the daemons that they have left
/// behind. Commands get none of the descriptors that sshd gave.
fn on_standard_streams() -> io::Result<()> {
    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for descriptor in [0, 1] {
        system::done(unsafe { libc::dup2(nothing.as_raw_fd(), descriptor) })?;
    }
    answers.write_all(wire::HELLO)?;
    let groups = Path::new(GROUPS).join(std::process::id().to_string());
    agent::Agent::new(requests, answers, groups)?.serve()
}
