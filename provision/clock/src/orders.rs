//! What the clock is told: the lab at its start, kernels as they start, and what clients ask. All of it JSON.

use serde::{Deserialize, Serialize};

use crate::wire::{Counts, Settings};

#[derive(Deserialize)]
pub struct Lab {
    /// The time of day at which every lab begins, in nanoseconds since 1970.
    pub epoch_ns: u64,
    /// How many kernels may run side by side; 0: as many as there are processors.
    #[serde(default)]
    pub at_once: usize,
    /// How long a kernel may be silent within its turn, by this machine's time.
    #[serde(default = "longest_turn_s")]
    pub longest_turn_s: u64,
    #[serde(flatten)]
    pub layout: Layout,
}

fn longest_turn_s() -> u64 {
    60
}

#[derive(Deserialize)]
pub struct Layout {
    /// By number; one without ports that is never started stands where there is none.
    pub hosts: Vec<HostOrder>,
    /// For each link, (host, port) of its two ends.
    pub links: Vec<[(usize, usize); 2]>,
    /// For each port, in the order of `hosts` and their ports, what it sends into.
    pub wires: Vec<PortSettings>,
}

#[derive(Deserialize)]
pub struct HostOrder {
    pub name: String,
    /// Each port's MAC address.
    pub ports: Vec<String>,
    pub processor: Option<Processor>,
}

/// What a modelled processor takes for what passes a port of its host.
#[derive(Clone, Deserialize)]
pub struct Processor {
    pub frame_ns: u64,
    pub byte_ns: f64,
}

impl Processor {
    pub fn cost_ns(&self, bytes: usize) -> u64 {
        self.frame_ns + (self.byte_ns * bytes as f64).round() as u64
    }
}

#[derive(Clone, Deserialize, Serialize)]
pub struct PortSettings {
    pub host: usize,
    pub port: usize,
    pub wire: Settings,
}

/// From the supervisor, with the host's descriptors: its calendar, its line, its console, its ports.
#[derive(Deserialize)]
pub struct Start {
    pub host: usize,
    /// Of the supervisor's starts the how manieth it is.
    #[serde(default)]
    pub start: u64,
}

/// To the supervisor: a host is no longer on the clock, since its kernel did what none does. It is to end that kernel.
#[derive(Serialize)]
pub struct Lost<'a> {
    pub host: usize,
    pub start: u64,
    pub why: &'a str,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Question {
    /// Act side by side with others; the turn ends with the connection.
    Turn,
    /// Of a turn: others act for it.
    Rest,
    /// Of a turn: it acts again.
    Resume,
    Now,
    /// Answered at once, whoever has a turn: what each host is about.
    Hosts,
    /// Answered with the time when it is that late. A turn, unless it is 0, rests until then.
    Sleep {
        until_ns: u64,
        turn: u64,
    },
    /// From now on no time passes for a host, until it is to go on.
    Pause {
        host: usize,
    },
    GoOn {
        host: usize,
    },
    /// From now on these are the lab's hosts and links.
    Lay(Layout),
    Wires,
    Set {
        wires: Vec<PortSettings>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer {
    Done {},
    Turn { turn: u64 },
    Now { now_ns: u64, passes: bool },
    Hosts { hosts: Vec<HostState> },
    Wires { wires: Vec<WireState> },
    Refused { error: String },
}

#[derive(Serialize)]
pub struct WireState {
    #[serde(flatten)]
    pub settings: PortSettings,
    #[serde(flatten)]
    pub counts: Counts,
    /// Bytes that wait in front of its rate now.
    pub queued: u64,
}

#[derive(Serialize)]
pub struct HostState {
    pub name: String,
    /// "absent", "starting", "waiting", "paused", or "running": it has its turn.
    pub state: &'static str,
    /// For how long it has had its turn, by this machine's time; 0 when it has none.
    pub turn_s: u64,
    /// Why the clock has ended it, if it has.
    pub lost: Option<String>,
}
