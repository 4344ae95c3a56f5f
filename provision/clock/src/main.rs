//! One clock for all kernels of a lab, and the links between them.
//!
//! `clock LAB CONTROL LISTENER [RECORDING]`: LAB is a file that describes the lab (orders.rs). CONTROL and LISTENER are numbers of
//! descriptors that the program inherits: a socket by which the supervisor announces kernels as they start, and a listening
//! socket for clients. RECORDING is that of a file in which the lab's course is recorded (course.rs). The program ends with the
//! supervisor.
//!
//! scheduler.rs says who may run and until when, traffic.rs what kernels send meanwhile, links.rs what becomes of it; server.rs
//! and clients.rs serve the supervisor and the clients.

mod calendar;
mod changed;
mod clients;
mod course;
mod delivery;
mod device;
mod fork;
mod frames;
mod gate;
mod host;
mod links;
mod orders;
mod page;
mod rings;
mod scheduler;
mod server;
mod socket;
mod sources;
mod storm;
mod taken_away;
mod trace;
mod traffic;
mod trunk;
mod turn;
mod under_way;
mod variation;
mod waiting;
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
    let [path, control, listener, rest @ ..] = arguments.as_slice() else {
        return Err(io::Error::other(
            "usage: clock LAB CONTROL LISTENER [RECORDING]",
        ));
    };
    let recording = rest.first().map(|number| inherited(number)).transpose()?;
    taken_away::install()?;
    let order: orders::Lab = serde_json::from_slice(&fs::read(path)?)?;
    let course = course::Course::new(&order.course, recording.map(fs::File::from));
    server::Server::new(order, course, inherited(control)?, inherited(listener)?)?.serve()
}

fn inherited(number: &str) -> io::Result<OwnedFd> {
    let number = number
        .parse()
        .map_err(|_| io::Error::other(format!("{number} is no descriptor")))?;
    // SAFETY: the supervisor hands these two over, and nothing else in this process knows them.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
