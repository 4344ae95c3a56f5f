//! Time passes when somebody waits and nobody acts, whatever clients and hosts do, and in whatever order.

use crate::for_all;
use crate::gate::Gate;
use crate::script::Chance;

const HOSTS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Nothing,
    Acts,
    Waits { for_end: bool },
}

/// Who has one command after the other run, each on a channel of its own.
struct Client {
    /// 0: it acts alone, and holds nobody up.
    turn: u64,
    host: usize,
    channel: u32,
    does: Does,
    /// Whether its command has not ended, and whether it is watched at a terminal.
    runs: bool,
    paced: bool,
}

impl Client {
    fn begin(&mut self, chance: &mut Chance, gate: &mut Gate) {
        self.host = chance.below(HOSTS) as usize;
        self.channel += 10;
        (self.does, self.runs, self.paced) = (Does::Acts, true, false);
        gate.begin(self.host, self.channel);
        if self.turn > 0 {
            gate.begin_turn(self.turn);
        }
    }

    fn wait(&mut self, chance: &mut Chance, gate: &mut Gate) {
        let for_end = chance.one_in(2);
        gate.wait(self.host, self.channel, self.turn, for_end);
        if self.runs {
            self.does = Does::Waits { for_end };
        }
    }

    fn pace(&mut self, gate: &mut Gate) {
        gate.pace(self.host, self.channel);
        self.paced = self.runs;
    }

    fn leave(&mut self, gate: &mut Gate) {
        gate.forget(self.host, self.channel);
        gate.end_turn(self.turn);
        (self.does, self.runs, self.paced) = (Does::Nothing, false, false);
    }

    /// Its host says something on its channel, or nothing any more.
    fn hears(&mut self, ends: bool) {
        if ends {
            (self.runs, self.paced) = (false, false);
        }
        if matches!(self.does, Does::Waits { for_end } if ends || !for_end) {
            self.does = Does::Acts;
        }
    }
}

fn step(chance: &mut Chance, gate: &mut Gate, clients: &mut [Client]) {
    let at = chance.below(clients.len() as u64) as usize;
    let one = &mut clients[at];
    match (one.does, chance.below(6)) {
        (_, 5) if chance.one_in(4) => {
            let host = chance.below(HOSTS) as usize;
            gate.forget_host(host);
            let there = |one: &&mut Client| one.host == host && one.does != Does::Nothing;
            clients
                .iter_mut()
                .filter(there)
                .for_each(|one| one.hears(true));
        }
        (Does::Nothing, _) => one.begin(chance, gate),
        (_, 0) => one.leave(gate),
        (_, 1) => one.pace(gate),
        (Does::Acts, 2 | 3) => one.wait(chance, gate),
        (_, _) if one.runs => {
            let ends = chance.one_in(3);
            gate.heard(one.host, one.channel, ends);
            one.hears(ends);
        }
        _ => {}
    }
}

#[test]
fn a_turn_is_as_busy_as_its_client_says() {
    let mut gate = Gate::default();
    gate.begin_turn(7);
    for busy in [false, true, false] {
        gate.set_busy(7, busy);
        assert_eq!(gate.somebody_is_busy(), busy);
    }
}

#[test]
fn time_passes_when_somebody_waits_and_nobody_acts() {
    for_all(|chance| {
        let mut gate = Gate::default();
        let new = |number: u64| Client {
            turn: number / 2, // two of them act alone
            host: 0,
            channel: number as u32,
            does: Does::Nothing,
            runs: false,
            paced: false,
        };
        let mut clients: Vec<Client> = [0, 1, 2, 4, 6].map(new).into();
        for _ in 0..chance.below(200) {
            step(chance, &mut gate, &mut clients);
            let waits = |one: &Client| matches!(one.does, Does::Waits { .. });
            let waits = clients.iter().any(waits);
            let paced = clients.iter().any(|one| one.paced);
            let acts = |one: &Client| one.turn > 0 && one.does == Does::Acts;
            let acts = clients.iter().any(acts);
            assert_eq!(gate.somebody_is_busy(), acts);
            assert_eq!(gate.is_open(), (waits || paced) && !acts);
            assert_eq!(gate.is_paced(), paced && !waits);
        }
    });
}
