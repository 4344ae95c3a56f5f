//! Whether time may pass for the clients' sake: only while somebody waits for a host, and no client is busy that may still ask
//! something of one.

use std::collections::{HashMap, HashSet};

/// Which clients wait for what, and which are busy.
///
/// A *wait* is for what a host sends on one of its channels. It ends in the moment of the lab's clock in which the host sends
/// it. A *turn* belongs to a client that acts side by side with others. As long as any turn is busy, time stands still.
#[derive(Default)]
pub struct Gate {
    /// The channels on which hosts can still send something, as (host, channel): commands that have begun and not ended.
    channels: HashSet<(usize, u32)>,
    /// By (host, channel).
    waits: HashMap<(usize, u32), Wait>,
    /// By its number, whether a turn is busy.
    turns: HashMap<u64, bool>,
    /// The channels of terminals, at which somebody sits.
    paced: HashSet<(usize, u32)>,
}

struct Wait {
    /// The waiting client's turn; 0: it acts alone.
    turn: u64,
    /// Whether it waits for the command's end, or for anything that comes on the channel.
    for_end: bool,
}

impl Gate {
    /// Whether somebody waits, and no turn is busy.
    pub fn is_open(&self) -> bool {
        (!self.waits.is_empty() || !self.paced.is_empty()) && !self.somebody_is_busy()
    }

    pub fn somebody_is_busy(&self) -> bool {
        self.turns.values().any(|busy| *busy)
    }

    /// Whether a second of the lab's clock is to take a second: somebody sits at a terminal, and nobody else waits.
    pub fn is_paced(&self) -> bool {
        self.waits.is_empty() && !self.paced.is_empty()
    }

    /// A client begins a command on a host.
    pub fn begin(&mut self, host: usize, channel: u32) {
        self.channels.insert((host, channel));
    }

    /// A client waits for a channel: for its end, or for anything that comes on it. `turn` is 0 for a client that acts alone. If
    /// the channel has ended already, the client does not wait: it is busy, for it has yet to read what has come.
    pub fn wait(&mut self, host: usize, channel: u32, turn: u64, for_end: bool) {
        if !self.channels.contains(&(host, channel)) {
            return;
        }
        self.waits.insert((host, channel), Wait { turn, for_end });
        self.rest(turn);
    }

    /// A host has sent something on a channel. The client that waited for it is busy again.
    pub fn heard(&mut self, host: usize, channel: u32, ends: bool) {
        if ends {
            self.channels.remove(&(host, channel));
            self.paced.remove(&(host, channel));
        }
        if self
            .waits
            .get(&(host, channel))
            .is_some_and(|wait| ends || !wait.for_end)
        {
            self.end_wait(host, channel);
        }
    }

    /// Somebody sits at the terminal of that channel.
    pub fn pace(&mut self, host: usize, channel: u32) {
        if self.channels.contains(&(host, channel)) {
            self.paced.insert((host, channel));
        }
    }

    /// Nobody waits for a channel any more.
    pub fn forget(&mut self, host: usize, channel: u32) {
        self.paced.remove(&(host, channel));
        self.end_wait(host, channel);
    }

    /// A host has ended. All waits for its channels end.
    pub fn forget_host(&mut self, host: usize) {
        let channels: Vec<u32> = self
            .waits
            .keys()
            .filter(|key| key.0 == host)
            .map(|key| key.1)
            .collect();
        for channel in channels {
            self.end_wait(host, channel);
        }
        self.paced.retain(|key| key.0 != host);
        self.channels.retain(|key| key.0 != host);
    }

    /// All clients have gone; what they have begun goes on.
    pub fn forget_clients(&mut self) {
        self.waits.clear();
        self.turns.clear();
        self.paced.clear();
    }

    pub fn begin_turn(&mut self, turn: u64) {
        self.turns.insert(turn, true);
    }

    pub fn set_busy(&mut self, turn: u64, busy: bool) {
        self.turns.insert(turn, busy);
    }

    /// That turn rests; 0, or a turn that has ended, is nobody's.
    pub fn rest(&mut self, turn: u64) {
        if let Some(busy) = self.turns.get_mut(&turn) {
            *busy = false;
        }
    }

    /// That turn is busy again, if it has not ended.
    pub fn resume(&mut self, turn: u64) {
        if let Some(busy) = self.turns.get_mut(&turn) {
            *busy = true;
        }
    }

    pub fn end_turn(&mut self, turn: u64) {
        self.turns.remove(&turn);
    }

    fn end_wait(&mut self, host: usize, channel: u32) {
        if let Some(wait) = self.waits.remove(&(host, channel)) {
            self.resume(wait.turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate_with(channels: &[(usize, u32)]) -> Gate {
        let mut gate = Gate::default();
        channels
            .iter()
            .for_each(|(host, channel)| gate.begin(*host, *channel));
        gate
    }

    #[test]
    fn time_passes_while_somebody_waits() {
        let mut gate = gate_with(&[(0, 1)]);
        assert!(!gate.is_open());
        gate.wait(0, 1, 0, true);
        assert!(gate.is_open());
        gate.heard(0, 1, false);
        assert!(gate.is_open());
        gate.heard(0, 1, true);
        assert!(!gate.is_open());
    }

    #[test]
    fn who_waits_for_anything_hears_all() {
        let mut gate = gate_with(&[(0, 1)]);
        gate.wait(0, 1, 0, false);
        gate.heard(0, 1, false);
        assert!(!gate.is_open());
    }

    #[test]
    fn time_stands_until_every_turn_waits() {
        let mut gate = gate_with(&[(0, 1), (1, 1)]);
        gate.begin_turn(7);
        gate.begin_turn(8);
        gate.wait(0, 1, 7, true);
        assert!(!gate.is_open());
        gate.wait(1, 1, 8, true);
        assert!(gate.is_open());
        gate.heard(1, 1, true);
        assert!(!gate.is_open());
        gate.end_turn(8);
        assert!(gate.is_open());
    }

    #[test]
    fn nothing_is_awaited_of_a_host_that_has_ended() {
        let mut gate = gate_with(&[(0, 1), (0, 2)]);
        gate.wait(0, 1, 0, true);
        gate.pace(0, 2);
        gate.forget_host(0);
        assert!(!gate.is_open());
    }

    #[test]
    fn without_clients_nobody_waits_and_commands_go_on() {
        let mut gate = gate_with(&[(0, 1)]);
        gate.begin_turn(7);
        gate.wait(0, 1, 7, true);
        gate.forget_clients();
        assert!(!gate.is_open() && !gate.somebody_is_busy());
        gate.wait(0, 1, 0, true);
        assert!(gate.is_open());
    }

    #[test]
    fn nobody_waits_for_what_has_been_said_already() {
        let mut gate = gate_with(&[(0, 1), (0, 2)]);
        gate.begin_turn(7);
        gate.wait(0, 1, 7, false);
        gate.heard(0, 1, false);
        gate.heard(0, 1, true);
        gate.wait(0, 1, 7, false);
        assert!(gate.somebody_is_busy());
        gate.end_turn(7);
        gate.heard(0, 2, true);
        gate.pace(0, 2);
        assert!(!gate.is_open());
    }
}
