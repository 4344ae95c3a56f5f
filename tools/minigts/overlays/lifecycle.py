"""The life of an overlay on a lab: it is joined, verified, joined again by a restarted host, and left.

The work on a host is done by the phases in provision/overlays/phase.sh. This module decides on which hosts each phase
runs, in which order, and what it passes on: a phase's `KEY=VALUE` lines on stdout are variables of the phases after it.
Facts that stay the same while an overlay is joined are in host.json on each host.

Where a lab has groups, each group is a team with its own leader (teams.py): all teams run the same phases in parallel,
independent of each other.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path, PurePosixPath

from minigts import lab as labs
from minigts.dataplane import names
from minigts.errors import CommandFailed, InputError, MinigtsError
from minigts.judge.silence import Silence, explain_silence
from minigts.lab import Lab, Record, dead_links, exclusive, losing_all, plan_now, routes, whole_paths
from minigts.language.blocks import reserved_block
from minigts.language.problems import list_names
from minigts.machine.progress import Progress
from minigts.overlays import catalogue, containers, policy
from minigts.overlays.catalogue import Overlay
from minigts.overlays.host_file import facts_for, largest_carried, patience_s
from minigts.overlays.phases import (
    FILE,
    IN_HOST,
    Endpoint,
    Joined,
    add_ends,
    endpoint_of,
    joined_overlay,
    members_of,
    printed_lines,
    run_phase,
    write,
)
from minigts.overlays.teams import UNDERLAYS, team_of, teams
from minigts.providers.base import CarriesPrograms, OwnProcesses, Provider
from minigts.topology import overlay_names
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

PROGRAMS_IN_HOST = PurePosixPath("/var/lib/minigts/programs")
MOVE_TIMEOUT_S = 180.0
MOST_HOSTS = 250
"""The most hosts of an overlay: its host's number is one byte of most containers' addresses."""


class NotReached(MinigtsError):
    """Plain hosts do not answer each other's echo requests, as their own commands may have it. All else is done."""

    def __init__(self, silences: Sequence[Silence]) -> None:
        self.silences = tuple(silences)
        super().__init__("\n".join(each.in_words for each in self.silences))


def join(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    """Join overlay `name` on the lab, in place of the one that is joined; return its measuring ends by host.

    A policy of a kept or altered lab is in force again; that of another overlay is dropped.
    Raises InputError for an unknown overlay, EnvironmentLacks when its programs cannot be obtained, CommandFailed when
    a script fails; and NotReached, once all is done, where plain hosts do not answer each other.
    """
    require_engine(lab.provider, name)
    require_fit(lab.plan, name)
    overlay = catalogue.find(name)
    with exclusive(lab.rundir):
        return _join(lab, overlay, _required(lab), progress)


def require(plan: Plan, provider: Provider, name: str) -> None:
    """Check before anything is started that overlay `name` and the plan's containers can run on this provider's hosts.
    Raises InputError, EnvironmentLacks."""
    require_fit(plan, name)
    require_engine(provider, name)
    containers.require(plan, provider, name)


def carry(lab: Lab, name: str, progress: Progress) -> None:
    """Let the hosts of a lab that is to come up anew have the programs of overlay `name` from their start, where its
    provider can. Programs that there are not yet are built or copied now. Raises EnvironmentLacks, MinigtsError."""
    if isinstance(lab.provider, CarriesPrograms) and not lab.rundir.is_dir():
        programs = catalogue.find(name).programs(progress)
        if programs is not None:
            lab.provider.carry(programs, PROGRAMS_IN_HOST)


def lab_for(plan: Plan, provider: str, name: str, laid: Iterable[str], progress: Progress) -> Lab:
    """Bring up a new lab without an overlay, on which these are to be joined. That one's programs cannot be had is said
    when it is joined, and keeps nobody from the others. Raises what `lab.up` raises."""
    lab = labs.future_lab(plan, provider, name)
    for each in laid:
        with suppress(MinigtsError):
            carry(lab, each, progress)
    return labs.bring_up(lab, progress)


def require_engine(provider: Provider, name: str) -> None:
    """Raises InputError when overlay `name` cannot run on this provider's hosts."""
    if provider.engine not in catalogue.find(name).declaration.engines:
        fitting = ", ".join(
            other for other in catalogue.known_names() if provider.engine in catalogue.find(other).declaration.engines
        )
        raise InputError(
            f"overlay {name!r} needs Docker on every host, and a host of provider {provider.name} has none; "
            f"choose another with --overlay: {fitting}"
        )


def require_fit(plan: Plan, name: str) -> None:
    """Raises InputError when overlay `name` does not fit the plan: it uses a version of IP of which hosts have no
    addresses, or it has too few addresses for them, or addresses that a link has, or hosts have too little memory, or
    are not on one segment."""
    if name not in UNDERLAYS and plan.sharing:
        raise InputError(
            f"overlay {name!r} needs hosts with kernels of their own, and {min(plan.sharing)} of topology {plan.name} "
            "is a light one: leave `light` out, or --overlay none"
        )
    if name not in UNDERLAYS and plan.hosts[-1].index >= MOST_HOSTS:
        more = f"topology {plan.name} has {plan.hosts[-1].index + 1}: bring it up without one, --overlay none"
        raise InputError(f"an overlay has addresses for {MOST_HOSTS} hosts, and {more}")
    for link in plan.links if name not in UNDERLAYS else ():
        for _, subnet in link.segments:
            if user := reserved_block(IPv4Network(subnet)):
                where = f"link {link.name} of topology {plan.name} has {subnet}"
                raise InputError(f"overlay {name!r} does not fit: {where}, which overlaps {user}")
    if (why := overlay_names.why_unfit(name, plan.families, f"topology {plan.name}")) is not None:
        raise InputError(why)
    if name in catalogue.known_names():  # that there is no such overlay is said elsewhere
        _require_memory(plan, catalogue.find(name))
        _require_one_segment(plan, catalogue.find(name))


def _require_memory(plan: Plan, overlay: Overlay) -> None:
    if (least := overlay.declaration.memory) is None:
        return
    for team in teams(plan, overlay.name):
        for host in team:
            needed_mb = least.leader_mb if host == team.leader else least.host_mb
            if host.memory_mb < needed_mb:
                what = ", the first of its network," if host == team.leader else ""
                raise InputError(
                    f"overlay {overlay.name!r} needs {needed_mb} MB on host {host.name}{what} which has "
                    f"{host.memory_mb} MB in topology {plan.name}: write `memory: {needed_mb}MB` there"
                )


def _require_one_segment(plan: Plan, overlay: Overlay) -> None:
    if not overlay.data_path.one_segment:
        return
    for leader, *others in teams(plan, overlay.name):
        near = list(plan.neighbours(leader))
        around = [{other for port, other, _ in near if port == own} for own in leader.on_segments]
        apart = min(([each for each in others if each not in segment] for segment in around), key=len, default=others)
        if apart:
            raise InputError(
                f"overlay {overlay.name!r} needs all hosts on one segment, two with a link or several around a switch, "
                f"and in topology {plan.name} {apart[0].name} is on none with {leader.name}"
            )


def _join(lab: Lab, overlay: Overlay, record: Record, progress: Progress) -> dict[str, Endpoint]:
    before = joined_overlay(lab)
    all_anew = before is not None and {host.name for host in members_of(lab, before)} <= record.unjoined
    if before is not None and before.name == overlay.name and before.ends and not all_anew:
        before, record = _rejoin_all(lab, before, record, record.unjoined, progress)
        lacking = containers.lacking(lab, before.name, members_of(lab, before))
        _bring_containers_up(lab, before, record, lacking, progress)
        return before.endpoints()
    after = record.model_copy(update={"unjoined": frozenset[str]()})
    programs = overlay.programs(progress)
    if before is not None and all_anew and before.name != overlay.name:
        _start_to_leave(lab, before, record)
    if before is not None and not (all_anew and before.name == overlay.name):
        _leave(lab, before, progress)
    policy.drop_others(lab, overlay.name, progress)
    now = Joined(name=overlay.name, programs="" if programs is None else str(PROGRAMS_IN_HOST / programs.name))
    members = members_of(lab, now)
    where = f"{len(members)} hosts{f' in {len(lab.plan.groups)} groups' if lab.plan.groups else ''}"
    _put_scripts(lab, overlay, record, now.programs, members)
    if programs is not None:
        progress(f"{overlay.name}: seeing that {where} have its programs")
        lab.work_on(members, lambda host: _put_programs(lab, host, programs))
    # Written before the first script runs, so that an interrupted join can be left.
    write(lab, now)
    progress(f"{overlay.name}: installing on {where}")
    _on_all(lab, now, "install", {})
    progress(f"{overlay.name}: joining")
    _leaders_first(lab, now, "join")
    progress(f"{overlay.name}: starting the measuring ends")
    now = add_ends(now, _leaders_first(lab, now, "start"))
    silences = _wait_until_connected(lab, now, after, rules=policy.policy_on_disks(lab, now.name))
    write(lab, now)
    policy.enforce(lab, now, members, progress)
    _bring_containers_up(lab, now, after, members, progress)
    lab.write(after, record)
    lab.note({"event": "joined", "overlay": now.name})
    _require_reached(silences)
    return now.endpoints()


def _require_reached(silences: Sequence[Silence]) -> None:
    if silences:
        raise NotReached(silences)


def _start_to_leave(lab: Lab, before: Joined, record: Record) -> None:
    """Prepare leaving on hosts that were all restarted: the overlay does not run, but its state is on their disks."""
    _put_scripts(lab, catalogue.find(before.name), record, before.programs, members_of(lab, before))
    _on_all(lab, before, "install", {})


def rejoin(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    """Join a restarted host to the overlay again; return the measuring ends once every end reaches every other.

    With the leader of a network, the hosts that could not join again without it do so; and before a host, its leader.
    A host whose leader is off is left for then, among those that have not joined, where `restart` has put it.
    The other hosts are left alone, except that the leader runs phase `join` for its variables. A host that has ended by
    itself is not waited for. It does nothing for a switch, nor without an overlay.
    """
    with exclusive(lab.rundir):
        now, record = joined_overlay(lab), lab.read_record()
        if now is None or not now.ends or name not in now.ends:
            lab.write(record.model_copy(update={"unjoined": record.unjoined - {name}}), record)
            return {}
        team = team_of(lab.plan, now.name, name)
        if team.leader.name in record.off - {name}:
            progress(f"{now.name}: {name} joins again with {team.leader.name}, which leads its network and is off")
            return {}
        waiting = record.unjoined.intersection(team.names if name == team.leader.name else (team.leader.name,))
        return _rejoin_all(lab, now, record, {name} | (waiting - record.silent), progress)[0].endpoints()


def _rejoin_all(
    lab: Lab, now: Joined, record: Record, names: Collection[str], progress: Progress
) -> tuple[Joined, Record]:
    """As `_rejoin`, for these hosts, the leaders first."""
    leaders = {team.leader.name for team in teams(lab.plan, now.name)}
    for name in sorted(names, key=lambda name: (name not in leaders, name)):
        now, record = _rejoin(lab, now, record, name, progress)
    return now, record


def _rejoin(lab: Lab, now: Joined, record: Record, name: str, progress: Progress) -> tuple[Joined, Record]:
    """As `rejoin` for one host; return the overlay and the lab's record after it. The caller holds the lab's lock."""
    progress(f"{now.name}: joining {name} again")
    after = record.model_copy(update={"unjoined": record.unjoined - {name}})
    host, team = lab.plan.host(name), team_of(lab.plan, now.name, name)
    ended = _ended(lab, after)
    if ended:
        progress(f"{now.name}: without {list_names(sorted(ended))}, which runs no more")
    there = after.model_copy(update={"off": after.off | ended})
    leader, absent = team.leader, " ".join(name for name in team.names if name in there.silent | there.unjoined)
    _put_scripts(lab, catalogue.find(now.name), record, now.programs, [host])
    run_phase(lab, "install", host, {})
    # Before its container starts, so that no connection comes to stand that the policy denies.
    policy.enforce(lab, now, [host], progress, starting=True)
    words = printed_lines(lab, now.name, "join", leader, {})
    if host != leader:
        run_phase(lab, "join", host, words)
    known = {**({} if host == leader else now.ends[leader.name]), **({"ABSENT": absent} if absent else {})}
    end = printed_lines(lab, now.name, "start", host, known)
    before, now = now, add_ends(now, {**now.ends, name: end})
    write(lab, now)
    same = before.endpoints()[name].address == now.endpoints()[name].address
    knowing = [host] if same else _taking_part(there, members_of(lab, now))
    policy.enforce(lab, now, knowing, progress)
    silences = _wait_until_connected(lab, now, there, rules=policy.policy_in_force(lab))
    _bring_containers_up(lab, now, there, [host], progress)
    lab.write(after, record)
    _require_reached(silences)
    return now, after


def _ended(lab: Lab, record: Record) -> frozenset[str]:
    """The hosts whose kernels have ended though nobody told them to, where the provider can tell."""
    if not isinstance(lab.provider, OwnProcesses):
        return frozenset()
    return frozenset(host.name for host in lab.plan.hosts) - record.silent - lab.provider.kernels().keys()


def _bring_containers_up(lab: Lab, now: Joined, record: Record, hosts: Sequence[Host], progress: Progress) -> None:
    """Start the user's own containers on these hosts, wait until every end reaches each, and report failed ones."""
    run = partial(run_phase, lab)
    addresses = containers.bring_up(lab, now.name, hosts, run, progress)
    if lab.plan.dns:
        _serve_names(lab, now, record)
    if not addresses:
        return
    owners, more_s = {name: name.rpartition(".")[2] for name in addresses}, _asking_takes_s(lab, record)

    def wait(host: Host) -> None:
        near = team_of(lab.plan, now.name, host.name).names
        peers = " ".join(address for name, address in addresses.items() if owners[name] in near)
        run_phase(lab, "reach", host, {**now.ends[host.name], "PEERS": peers}, more_s)

    lab.work_on(_taking_part(record, members_of(lab, now)), wait)
    for line in containers.launch(lab, hosts, lambda host: team_of(lab.plan, now.name, host.name), run):
        progress(line)


def _serve_names(lab: Lab, now: Joined, record: Record) -> None:
    """Tell the hosts' name servers the names of the network's containers, and start those of the containers."""

    def serve(host: Host) -> None:
        team = team_of(lab.plan, now.name, host.name)
        inside = ((name, now.ends[name]) for name in team.names if "ENTER" in now.ends[name])
        measuring = "".join(f"{end['ADDRESS']} {containers.full_name('measure', name)}\n" for name, end in inside)
        text = f"{measuring}{containers.names_beside(host, tuple(team), lab)}"
        containers.fill(lab, host, names.DIRECTORY / "containers", text)
        server = " ".join(names.server_argv(way_out=host.gateway))
        run_phase(lab, "names", host, {**now.ends[host.name], "NAME_SERVER": server})

    lab.work_on(_taking_part(record, members_of(lab, now)), serve)


def second_container(lab: Lab, host: str) -> Endpoint:
    """Start a second measuring container of the overlay on a host. Raises InputError for an overlay that has none."""
    now = joined_overlay(lab)
    if now is None or not now.ends:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    if not catalogue.find(now.name).declaration.second:
        raise InputError(f"overlay {now.name} has no second container on a host")
    if host not in now.ends:
        raise InputError(f"{host} is in no group of {lab.plan.name}, so overlay {now.name} is not laid over it")
    end = printed_lines(lab, now.name, "second", lab.plan.host(host), now.ends[host])
    return endpoint_of(host, add_ends(now, {host: end}).ends[host])


def follow(lab: Lab, before: Joined, progress: Progress) -> dict[str, Endpoint]:
    """Make plain hosts measuring ends again after hosts were added or removed while a host is off. That host becomes
    one when it is started. `before` is what was joined; return the measuring ends by host.
    """
    with exclusive(lab.rundir):
        members, record = members_of(lab, before), lab.read_record()
        on = [host for host in members if host.name not in record.silent]
        _put_scripts(lab, catalogue.find(before.name), record, before.programs, on)
        ends = lab.work_on(on, lambda host: printed_lines(lab, before.name, "start", host, {}))
        kept = {host.name: before.ends[host.name] for host in members if host.name in before.ends}
        now = add_ends(before, {**kept, **ends})
        silences = _wait_until_connected(lab, now, record)
        write(lab, now)
        progress(f"{now.name}: {len(on)} hosts can be measured")
        _require_reached(silences)
        return now.endpoints()


def verify(lab: Lab, progress: Progress) -> dict[str, dict[str, str]]:
    """Verify the overlay's data path from every host to the next in its network; return each host's KEY=VALUE lines."""
    now = joined_overlay(lab)
    if now is None or not now.ends:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    progress(f"{now.name}: verifying the data path")
    several = [team for team in teams(lab.plan, now.name) if len(team) > 1 or not lab.plan.groups]
    peers = {host: peer for team in several for host, peer in zip(team, [*team[1:], team.leader], strict=True)}
    plan = plan_now(lab.plan, lab.read_record())
    largest = {mtu: largest_carried(plan, int(mtu)) for mtu in {now.ends[host.name]["MTU"] for host in peers}}
    words = {
        host.name: {**(end := now.ends[host.name]), **largest[end["MTU"]], "PEER": now.ends[peer.name]["ADDRESS"]}
        for host, peer in peers.items()
    }
    with policy.naming(lab):
        return lab.work_on([*peers], lambda host: printed_lines(lab, now.name, "verify", host, words[host.name]))


def settle(lab: Lab, progress: Progress) -> None:
    """Wait until routes and overlay have followed links that were cut, changed or mended: a routing protocol's routes
    are complete, and each measuring end answers every other to which a path of whole links leads; any such path if
    the routing protocol or the overlay finds new ones, otherwise the plan's.

    Raises HostFailed for routes, and CommandFailed for an end that does not answer in time.
    """
    with exclusive(lab.rundir):
        record = lab.read_record()
        routes.wait(lab, record, progress)
        if (now := joined_overlay(lab)) is not None and now.ends:
            progress(f"{now.name}: waiting until its ends reach each other")
            apart = _without_any_way(lab.plan, now, record)
            _require_reached(_wait_until_connected(lab, now, record, apart, policy.policy_in_force(lab)))


def _without_any_way(plan: Plan, now: Joined, record: Record) -> set[frozenset[str]]:
    """The pairs of hosts to be left out where routes or the overlay find new ways: an overlay over its team's hosts and
    switches, a routing protocol over all hosts. Where none does, those of `_without_their_path`."""
    if plan.has_routers:
        networks = [{machine.name for machine in plan.machines}]
    elif catalogue.find(now.name).declaration.reroutes:
        networks = [{*team.names, *(switch.name for switch in plan.switches)} for team in teams(plan, now.name)]
    else:
        return _without_their_path(plan, record)
    dead = dead_links(plan, record) | losing_all(plan, record)
    apart = {frozenset(pair) for pair in combinations((host.name for host in plan.hosts), 2)}
    for network in networks:
        whole = [link.ends for link in plan.links if link.name not in dead and network.issuperset(link.ends)]
        apart -= {frozenset(pair) for part in _parts(network, whole) for pair in combinations(part, 2)}
    return apart - {frozenset((path.source, path.target)) for path in plan.paths if dead.isdisjoint(path.crossed)}


def _parts(names: Collection[str], links: Iterable[tuple[str, str]]) -> list[set[str]]:
    """The parts of a graph that no link joins."""
    part_of = {name: {name} for name in names}
    for first, second in links:
        if part_of[first] is not part_of[second]:
            part_of[first] |= part_of[second]
            part_of.update(dict.fromkeys(part_of[second], part_of[first]))
    return [*{id(part): part for part in part_of.values()}.values()]


def leave(lab: Lab, progress: Progress, *, to_join_again: bool = False) -> None:
    """Leave the overlay that is joined, or whose joining was interrupted. Its policy is dropped; with `to_join_again`
    it is in force again once this overlay is joined again, and what its users have made of it may stay."""
    with exclusive(lab.rundir):
        _required(lab)
        if (now := joined_overlay(lab)) is not None:
            _leave(lab, now, progress, to_join_again=to_join_again)
            if not to_join_again:
                policy.drop(lab, progress)


def _required(lab: Lab) -> Record:
    """The lab's record. Raises HostFailed when a machine is off or paused, MinigtsError when the lab was taken down
    while this command waited for its lock."""
    record = lab.read_record()
    record.require_on(machine.name for machine in lab.plan.machines)
    return record


def _leave(lab: Lab, now: Joined, progress: Progress, *, to_join_again: bool = False) -> None:
    progress(f"{now.name}: leaving")
    _on_all(lab, now, "leave", {"AGAIN": "yes"} if to_join_again else {})
    containers.forget(lab)
    (lab.rundir / FILE).unlink()
    lab.note({"event": "left", "overlay": now.name})


def _wait_until_connected(
    lab: Lab,
    now: Joined,
    record: Record,
    apart: Collection[frozenset[str]] | None = None,
    rules: policy.Policy | None = None,
) -> list[Silence]:
    """Wait until every end reaches every other of its network, except those on hosts that do not take part, and the
    pairs `apart`; None: those whose path has a link that is cut or loses everything. With `rules` in force no end waits
    for one that it may not ping. Plain hosts of a lab in mode neighbours are not waited for: they reach only
    neighbours. Of a lab with light hosts each waits for one.

    Returns the plain hosts that do not answer, which is their user's to decide. Raises CommandFailed where the ends of
    an overlay do not.
    """
    if now.name in UNDERLAYS and lab.plan.routing == "neighbours":
        return []
    more_s = _asking_takes_s(lab, record)
    without = _without_their_path(lab.plan, record) if apart is None else apart
    members = _taking_part(record, members_of(lab, now))
    present = {host.name for host in members}

    def wait(host: Host) -> list[str]:
        team = team_of(lab.plan, now.name, host.name).names
        pairs = {peer: frozenset((peer, host.name)) for peer in team if peer in present and peer != host.name}
        others = [peer for peer, pair in pairs.items() if pair not in without]
        if lab.plan.has_relationships:
            others = [peer for peer in others if lab.plan.reaches(host.name, peer)]
        if rules is not None:
            others = [peer for peer in others if policy.lets_ping(rules, host.name, peer, team)]
        if lab.plan.sharing:  # there may be a thousand, and the certificate has tried their paths
            others = [peer for peer in others if peer > host.name][:1]
        peers = " ".join(now.ends[peer]["ADDRESS"] for peer in others)
        named = " ".join(f"{peer}={now.ends[peer]['ADDRESS']}" for peer in team)
        try:
            run_phase(lab, "reach", host, {**now.ends[host.name], "PEERS": peers, "NAMES": named}, more_s)
        except CommandFailed as error:
            if now.name not in UNDERLAYS or error.code != 1:
                raise
            return [peer for peer in others if not _answers(lab, host, now.ends[peer]["ADDRESS"])]
        return []

    silent = [(host, peer) for host, peers in lab.work_on(members, wait).items() for peer in peers]
    return explain_silence(lab.plan, silent, {})


def _answers(lab: Lab, host: Host, address: str) -> bool:
    """Whether an address answers one echo request of a plain host."""
    patience = patience_s(plan_now(lab.plan, lab.read_record()))
    argv = ["ping", "-n", "-c", "1", "-W", str(patience), "-q", address]
    return lab.provider.run(host.name, argv, timeout_s=30 + patience, check=False).code == 0


def _without_their_path(plan: Plan, record: Record) -> set[frozenset[str]]:
    """The pairs of hosts whose path has a link that is cut or loses everything."""
    deaf = losing_all(plan, record)
    whole = {
        frozenset((path.source, path.target)) for path in whole_paths(plan, record) if deaf.isdisjoint(path.crossed)
    }
    return {frozenset((path.source, path.target)) for path in plan.paths} - whole


def _put_scripts(lab: Lab, overlay: Overlay, record: Record, programs: str, hosts: Sequence[Host]) -> None:
    """Copy the overlay's folders, the scripts that its phases use, and host.json to these hosts."""
    scripts, patience = catalogue.scripts(), patience_s(plan_now(lab.plan, record))

    def put(host: Host) -> None:
        with tempfile.TemporaryDirectory(dir=lab.rundir, prefix="staged.") as temporary:
            staged = Path(temporary) / IN_HOST.name
            for folder in overlay.folders:
                shutil.copytree(folder, staged / "overlays" / folder.name, ignore=shutil.ignore_patterns("build"))
            shutil.copy(scripts.parent / "lib.sh", staged)
            for path in (*scripts.glob("*.sh"), *scripts.glob("*.py")):
                shutil.copy(path, staged / "overlays")
            facts = facts_for(lab.plan, host, overlay, programs, lab.provider.engine, patience)
            (staged / "host.json").write_text(facts.model_dump_json(indent=1) + "\n")
            lab.provider.put(host.name, staged, IN_HOST)

    lab.work_on(hosts, put)


def _put_programs(lab: Lab, host: Host, programs: Path) -> None:
    """Copy the overlay's programs to a host, unless it has them."""
    target = PROGRAMS_IN_HOST / programs.name
    if lab.provider.run(host.name, ["test", "-d", str(target)], timeout_s=MOVE_TIMEOUT_S, check=False).code != 0:
        arriving = target.with_name("arriving")
        lab.provider.put(host.name, programs, arriving)
        lab.provider.run(host.name, ["mv", "-T", str(arriving), str(target)], timeout_s=MOVE_TIMEOUT_S)


def _taking_part(record: Record, hosts: Sequence[Host]) -> list[Host]:
    """Those that are on, and have joined the overlay again since they were restarted."""
    return [host for host in hosts if host.name not in record.silent | record.unjoined]


def _on_all(lab: Lab, now: Joined, phase: str, words: Mapping[str, str]) -> None:
    lab.work_on(members_of(lab, now), lambda host: run_phase(lab, phase, host, words))


def _leaders_first(lab: Lab, now: Joined, phase: str) -> dict[str, dict[str, str]]:
    """Run a phase on every leader, then on all other hosts with the variables that their leader printed."""
    leader_of = {name: team.leader for team in teams(lab.plan, now.name) for name in team.names}
    leaders = list(dict.fromkeys(leader_of.values()))
    words = lab.work_on(leaders, lambda leader: printed_lines(lab, now.name, phase, leader, {}))

    def follow(host: Host) -> dict[str, str]:
        own = words[leader_of[host.name].name]
        return own if host in leaders else printed_lines(lab, now.name, phase, host, own)

    return lab.work_on(members_of(lab, now), follow)


def run_on(lab: Lab) -> containers.RunPhase:
    """A function that runs phases of the overlay. Raises InputError unless an overlay with a place for containers or
    pods is joined."""
    now = joined_overlay(lab)
    declared = None if now is None or not now.ends else catalogue.find(now.name).declaration
    if declared is None or not (declared.containers or declared.pods):
        what = (
            "nothing is joined" if now is None else f"overlay {now.name} is joined, which has no place for containers"
        )
        raise InputError(f"lab {lab.name}: {what}: minigts up --overlay swarm")
    return partial(run_phase, lab)


def own_containers(lab: Lab) -> list[dict[str, str]]:
    """The containers that the topology declares, with their state now; see `containers.states`."""
    return containers.states(lab, partial(run_phase, lab))


def _asking_takes_s(lab: Lab, record: Record) -> float:
    """What phase `reach` may take beyond others: it asks all hosts in turn, each over an RTT of perhaps seconds."""
    return 2 * (patience_s(plan_now(lab.plan, record)) - 1) * len(lab.plan.hosts)
