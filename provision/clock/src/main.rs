//! One clock for all kernels of a lab, and the links between them.
//!
//! `clock LAB CONTROL LISTENER`: a file that says what the lab is (orders.rs), and two descriptors that it inherits: the
//! supervisor's, by which kernels are announced as they start, and a listening socket for clients. It ends with the
//! supervisor.

mod answers;
mod calendar;
mod device;
mod frames;
mod gate;
mod host;
mod lab;
mod orders;
mod socket;
mod taken_away;
mod under_way;
mod watchdog;
mod wire;

use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clock: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, control, listener] = arguments.as_slice() else {
        return Err(io::Error::other("usage: clock LAB CONTROL LISTENER"));
    };
    taken_away::install()?;
    let order: orders::Lab = serde_json::from_slice(&fs::read(path)?)?;
    lab::Lab::new(order, inherited(control)?, inherited(listener)?)?.serve()
}

fn inherited(number: &str) -> io::Result<OwnedFd> {
    let number = number
        .parse()
        .map_err(|_| io::Error::other(format!("{number} is no descriptor")))?;
    // SAFETY: the supervisor hands these two over, and nothing else in this process knows them.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
