"""Which containers may reach which: a small file of rules, and the nftables rules that the hosts make of it.

    name: shop
    default: deny                 # for connections that no rule fits; default: allow
    groups:                       # containers, by the names of their hosts
      web: [ams]
      store: [bra, mil]
    rules:                        # the first that fits holds
      - allow: {from: web, to: store, protocol: tcp, ports: [5201]}
      - deny: {from: web, to: store, protocol: icmp}

A rule is about the container that opens a connection; answers always pass. The target container's host enforces it, in
a table of its own that is replaced in one step; or the overlay itself, where it has policies of its own.

The policy in force is kept in the lab's run directory, so that hosts which join the overlay again enforce it again.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from minigts.errors import EnvironmentLacks, HostFailed, InputError, MinigtsError
from minigts.foreign import UNPRINTABLE
from minigts.lab import Lab, exclusive
from minigts.language import validation
from minigts.language.fields import choice, unknown, whole
from minigts.language.problems import Finding
from minigts.language.source import Language, read_text
from minigts.language.tree import read_tree
from minigts.language.validation import read_model
from minigts.machine.progress import Progress
from minigts.overlays import catalogue, policy_objects
from minigts.overlays.phases import Endpoint, Joined, joined_overlay, members_of, run_phase
from minigts.overlays.teams import team_of, teams
from minigts.topology.plan.elements import Host

FILE = "policy.json"
TABLE = "minigts_policy"
NFT_TIMEOUT_S = 30.0
ANY = "any"
"""The group of all containers, in `from` and `to`."""


LANGUAGE = Language(
    name="policy",
    opening="`name:`, `groups:` and `rules:`",
    largest_bytes=256_000,
    instead_of_aliases="give what rules share a name under `groups:`",
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Flow(_Part):
    """Connections from the containers of one group to those of another."""

    source: str = Field(alias="from", description="The group whose containers open connections, or any.")
    target: str = Field(alias="to", description="The group whose containers are spoken to, or any.")
    protocol: Annotated[Literal["tcp", "udp", "icmp"], choice("a protocol", "tcp", "udp", "icmp")] | None = Field(
        None, description="Only this protocol. Default: every one."
    )
    ports: tuple[Annotated[int, *whole("a port", 1, 65535)], ...] = Field(
        (), description="Only these ports of the target; they belong to a protocol. Default: every one."
    )

    @model_validator(mode="after")
    def _ports_have_a_protocol(self) -> Self:
        if self.ports and self.protocol not in ("tcp", "udp"):
            raise ValueError("ports belong to a protocol: add `protocol: tcp` or `protocol: udp`")
        return self


class Rule(_Part):
    """A rule: one key, the action, with the connections that it is for."""

    allow: Flow | None = Field(None, description="Connections that are let through.")
    deny: Flow | None = Field(None, description="Connections that are refused.")

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if (self.allow is None) == (self.deny is None):
            raise ValueError("a rule has exactly one key: allow or deny")
        return self

    @property
    def action(self) -> Literal["allow", "deny"]:
        return "deny" if self.allow is None else "allow"

    @property
    def flow(self) -> Flow:
        flow = self.allow or self.deny
        assert flow is not None  # by the validator
        return flow


class Policy(_Part):
    """A policy file."""

    name: str = Field(description="Name of the policy, for messages.")
    default: Annotated[Literal["allow", "deny"], choice("a default", "allow", "deny")] = Field(
        "allow", description="What happens to a connection between two containers that no rule fits. Default: allow."
    )
    groups: dict[str, tuple[str, ...]] = Field(
        description="Names of your own, each with the hosts whose containers are meant."
    )
    rules: tuple[Rule, ...] = Field((), description="The first rule that fits a connection decides it.")

    def members(self, group: str, hosts: Collection[str]) -> tuple[str, ...]:
        """The group's hosts; for `any` all `hosts`."""
        return tuple(hosts) if group == ANY else self.groups[group]


def load(path: Path, hosts: Collection[str]) -> Policy:
    """The policy in `path` for a lab with these hosts. Raises InputError with every problem, each with its line."""
    return parse(read_text(path, LANGUAGE), str(path), hosts)


def parse(text: str, file: str, hosts: Collection[str]) -> Policy:
    """As `load`, from text; `file` is its name in messages. Pure."""
    return read_model(read_tree(text, file, LANGUAGE), file, Policy, lambda policy: _unknown_names(policy, hosts))


def _unknown_names(policy: Policy, hosts: Collection[str]) -> Iterator[Finding]:
    for name, members in policy.groups.items():
        if name == ANY:
            yield ("groups", name), f"{ANY!r} is every container already: choose another name"
        for index, member in enumerate(members):
            if member not in hosts:
                yield ("groups", name, index), unknown("host", "hosts", member, tuple(hosts))
    groups = {**policy.groups, ANY: ()}
    for index, rule in enumerate(policy.rules):
        for key, group in (("from", rule.flow.source), ("to", rule.flow.target)):
            if group not in groups:
                yield ("rules", index, rule.action, key), unknown("group", "groups", group, tuple(groups))


def json_schema_text() -> str:
    """The JSON Schema of a policy file, which is shipped as docs/policy.schema.json."""
    return validation.schema_text(validation.json_schema(Policy))


def ruleset(policy: Policy, ends: Mapping[str, Endpoint], host: str) -> str:
    """Input for `nft -f` on `host`: the rules for connections to its container, where `ends` are the endpoints of its
    network. It replaces all earlier rules in the same step. Pure; see nft(8).
    """
    own = ends[host].address
    lines = [_rule_line(policy, rule, ends) for rule in policy.rules if host in policy.members(rule.flow.target, ends)]
    containers = _addresses(ends, ends)
    rules = "".join(f"    {line}\n" for line in lines if line)
    return (
        f"table inet {TABLE}\n"
        f"delete table inet {TABLE}\n"
        f"table inet {TABLE} {{\n"
        "  chain forward {\n"
        "    type filter hook forward priority filter; policy accept;\n"
        "    ct state established,related accept\n"
        f"    ip saddr {containers} ip daddr {own} jump to_container\n"
        "  }\n"
        "  chain to_container {\n"
        f"{rules}"
        f"    counter {_VERDICT[policy.default]}\n"
        "  }\n"
        "}\n"
    )


_VERDICT = {"allow": "accept", "deny": "drop"}


def _rule_line(policy: Policy, rule: Rule, ends: Mapping[str, Endpoint]) -> str:
    """One line of nftables; empty when no host of the rule's source group is in this network."""
    flow = rule.flow
    sources = [name for name in policy.members(flow.source, ends) if name in ends]
    if not sources:
        return ""
    words = [f"ip saddr {_addresses(ends, sources)}"]
    if flow.ports:
        words.append(f"{flow.protocol} dport {{ {', '.join(str(port) for port in flow.ports)} }}")
    elif flow.protocol:
        words.append(f"meta l4proto {flow.protocol}")
    return " ".join([*words, "counter", _VERDICT[rule.action]])


def _addresses(ends: Mapping[str, Endpoint], hosts: Collection[str]) -> str:
    addresses = sorted({ipaddress.IPv4Address(ends[host].address) for host in hosts})
    return f"{{ {', '.join(map(str, addresses))} }}"


def document(policy: Policy, hosts: Collection[str]) -> str:
    """The rules as JSON for an overlay's phase `policy`, with each group replaced by its hosts of one network. Pure.

    {"default": "deny",
     "rules": [{"action": "allow", "from": ["ams"], "to": ["bra"], "protocol": "tcp", "ports": [5201]}]}
    """
    rules = [
        {
            "action": rule.action,
            "from": [name for name in policy.members(rule.flow.source, hosts) if name in hosts],
            "to": [name for name in policy.members(rule.flow.target, hosts) if name in hosts],
            "protocol": rule.flow.protocol,
            "ports": list(rule.flow.ports),
        }
        for rule in policy.rules
    ]
    return json.dumps({"default": policy.default, "rules": [rule for rule in rules if rule["from"] and rule["to"]]})


def lets_ping(policy: Policy, source: str, target: str, hosts: Collection[str]) -> bool:
    """Whether the container on `source` may ping the one on `target`, both of the network of `hosts`. Pure."""
    return lets(policy, source, target, hosts, "icmp")


def lets(
    policy: Policy, source: str, target: str, hosts: Collection[str], protocol: str, port: int | None = None
) -> bool:
    """Whether the first container may open a connection of that protocol to the other one, to that port. Pure."""
    for rule in policy.rules:
        flow = rule.flow
        named = source in policy.members(flow.source, hosts) and target in policy.members(flow.target, hosts)
        if named and flow.protocol in (None, protocol) and (not flow.ports or port in flow.ports):
            return rule.action == "allow"
    return policy.default == "allow"


class InForce(BaseModel):
    """policy.json in the run directory: the policy in force, with the overlay that enforces it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    overlay: str
    policy: Policy

    @model_validator(mode="after")
    def _is_as_written(self) -> Self:
        named = {group for rule in self.policy.rules for group in (rule.flow.source, rule.flow.target)}
        if not named <= {*self.policy.groups, ANY}:
            raise ValueError("a rule names a group that there is not")
        if UNPRINTABLE.search(self.policy.name):
            raise ValueError("its name cannot be printed")
        return self


def policy_in_force(lab: Lab) -> Policy | None:
    """The policy in force on the lab, or which is again once a kept lab is up; None: none. Raises MinigtsError when a
    record is damaged."""
    kept, now = lab.read(FILE, InForce), joined_overlay(lab)
    return kept.policy if kept and now and now.ends and kept.overlay == now.name else None


def policy_on_disks(lab: Lab, overlay: str) -> Policy | None:
    """The policy that an overlay which enforces by itself finds on its hosts' disks when it is joined again; None where
    none is in force before `enforce`."""
    kept = lab.read(FILE, InForce) if _enforces_itself(overlay) else None
    return kept.policy if kept and kept.overlay == overlay else None


def apply(lab: Lab, policy: Policy) -> None:
    """Put the policy in force on every host, in place of an earlier one.

    Raises MinigtsError when the overlay enforces no policies, HostFailed when a host is off or paused, InputError when
    the policy names a host that is not on the overlay, EnvironmentLacks when the hosts' kernel has no nftables.
    """
    with exclusive(lab.rundir):
        now = joined_overlay(lab)
        name = "none" if now is None else now.name
        if now is None or not now.ends or name not in catalogue.enforcing():
            raise MinigtsError(f"overlay {name} enforces no policy; those that do: {', '.join(catalogue.enforcing())}")
        lab.read_record().require_on(now.ends)
        named = dict.fromkeys(host for members in policy.groups.values() for host in members)
        if outside := [host for host in named if host not in now.ends]:
            raise InputError(
                f"{', '.join(outside)}: in no group of {lab.plan.name}, so overlay {name} is not laid over it"
            )
        if not _enforces_itself(name):
            _require_nftables(lab)
        for team in teams(lab.plan, name) if _by_objects(name) else ():
            _require_objects(lab, policy, team.names)
        # Written before the first host is told, so that no host has rules that the record does not have.
        kept = InForce(overlay=name, policy=policy)
        lab.put(FILE, kept.model_dump_json(by_alias=True, exclude_none=True, indent=1) + "\n")
        _enforce(lab, now, policy, members_of(lab, now))
        lab.note({"event": "policy applied", "policy": policy.name})


def enforce(lab: Lab, now: Joined, hosts: Sequence[Host], progress: Progress, *, starting: bool = False) -> None:
    """Let these hosts enforce the lab's policy again, if one is in force. The caller holds the lab's lock.

    With `starting` their containers do not run yet: the rules are nftables' for the addresses that they had, and an
    overlay that enforces by itself is left alone.
    """
    policy = policy_in_force(lab)
    if policy is None or (starting and _enforces_itself(now.name)):
        return
    if not starting:
        progress(f"{now.name}: policy {policy.name} is put in force again")
    _enforce(lab, now, policy, hosts)


def remove(lab: Lab) -> None:
    """Remove the policy from every host that is on, and from the lab's record, by which no other host enforces it when
    it is started. Raises HostFailed when a host is paused."""
    with exclusive(lab.rundir):
        now, record = joined_overlay(lab), lab.read_record()
        if paused := sorted(record.paused & {host.name for host in lab.plan.hosts}):
            raise HostFailed(f"{paused[0]} is paused, and would keep its rules: minigts resume {paused[0]}")
        if now is not None and now.ends and _enforces_itself(now.name):
            asked = [host for host in members_of(lab, now) if host.name not in record.off]
            lab.work_on(asked, lambda host: run_phase(lab, "policy", host, {"POLICY": ""}))
        else:
            lab.work_on_hosts(lambda host: _nft(lab, host, f"table inet {TABLE}\ndelete table inet {TABLE}\n"))
        if _forget(lab):
            lab.note({"event": "policy removed"})


def drop(lab: Lab, progress: Progress) -> None:
    """Forget the policy, which nothing enforces any more, and say so. The caller holds the lab's lock."""
    with suppress(MinigtsError):  # one that cannot be read is forgotten all the same
        if (kept := lab.read(FILE, InForce)) is not None:
            progress(f"policy {kept.policy.name} has ended with overlay {kept.overlay}")
    if _forget(lab):
        lab.note({"event": "policy removed"})


def drop_others(lab: Lab, overlay: str, progress: Progress) -> None:
    """As `drop`, for a policy of another overlay than this."""
    kept = lab.read(FILE, InForce)
    if kept is not None and kept.overlay != overlay:
        drop(lab, progress)


@contextmanager
def naming(lab: Lab) -> Iterator[None]:
    """Adds to an error of work between containers the policy that may be its cause."""
    try:
        yield
    except (MinigtsError, ExceptionGroup) as error:
        if (policy := policy_in_force(lab)) is not None:
            error.add_note(f"policy {policy.name} is in force, and may deny it: minigts policy remove")
        raise


def _forget(lab: Lab) -> bool:
    """Remove policy.json; return whether it was there."""
    file = lab.rundir / FILE
    there = file.exists()
    file.unlink(missing_ok=True)
    return there


def _enforce(lab: Lab, now: Joined, policy: Policy, hosts: Sequence[Host]) -> None:
    ends = now.endpoints()

    def tell(host: Host) -> None:
        network = _network(lab, now.name, host.name)
        if _enforces_itself(now.name):
            rules = document(policy, network)
            told = policy_objects.document(policy.name, rules, network) if _by_objects(now.name) else rules
            run_phase(lab, "policy", host, {"POLICY": told})
        else:
            _nft(lab, host, ruleset(policy, {each: ends[each] for each in network}, host.name))

    lab.work_on(hosts, tell)


def _network(lab: Lab, overlay: str, host: str) -> tuple[str, ...]:
    """The names of the hosts in this host's network."""
    return team_of(lab.plan, overlay, host).names


def _enforces_itself(overlay: str) -> bool:
    """Whether the overlay enforces policies itself; otherwise its hosts filter by nftables."""
    return catalogue.find(overlay).declaration.policy != "nftables"


def _by_objects(overlay: str) -> bool:
    """Whether a policy becomes NetworkPolicy objects of Kubernetes."""
    return catalogue.find(overlay).declaration.policy == "objects"


def _require_objects(lab: Lab, policy: Policy, network: Sequence[str]) -> None:
    """Raises InputError where the lab's clusters enforce no NetworkPolicy, or none can hold this policy."""
    if not lab.plan.kubernetes.policies:
        raise InputError(
            f"the clusters of lab {lab.name} enforce no NetworkPolicy: write `kubernetes: {{policies: true}}` in the "
            "topology"
        )
    policy_objects.document(policy.name, document(policy, network), network)


def _nft(lab: Lab, host: Host, rules: str) -> None:
    lab.provider.run(host.name, ["nft", "-f", "-"], timeout_s=NFT_TIMEOUT_S, stdin=rules.encode())


def _require_nftables(lab: Lab) -> None:
    first = lab.plan.hosts[0].name
    asked = ["nft", "--check", f"add table inet {TABLE}"]
    if lab.provider.run(first, asked, timeout_s=NFT_TIMEOUT_S, check=False).code != 0:
        raise EnvironmentLacks(
            "the hosts' kernel has no nftables for IP: build the full one with `minigts kernel build`, and bring the "
            "lab up anew"
        )
