"""The kinds of faults of policies: the rules by which a host enforces one differ from it.

The rules are the table that `overlays.policy.ruleset` writes: the chain `forward`, which lets answers pass and sends
what is new and for the host's own container to `to_container`, where the policy's rules stand before its default.
"""

from __future__ import annotations

from minigts.lessons.break_kinds import Kind
from minigts.overlays.policy import TABLE

NOBODY = "172.31.255.1"
"""An address that no container has."""
_LIST = f"nft -s list table inet {TABLE}"
_PUT = f"""
rules=$({_LIST})
put() {{ printf 'table inet {TABLE}\\ndelete table inet {TABLE}\\n%s\\n' "$1"; }}
undo() {{ echo "nft -f - <<'RULES'"; put "$rules"; echo RULES; }}
"""
_FIRST = f"{_LIST} | sed -n '/chain to_container {{/{{n;p}}' | grep -qx"
_BEHIND = f"{_LIST} | sed '1,/chain to_container {{/d' | sed -n '/accept/,$p' | grep -q 'saddr.*drop'"


def _changed(name: str, says: str, program: str, shows: str) -> Kind:
    """A kind that changes the rules by a program of sed's."""
    do = f'{_PUT}changed=$(echo "$rules" | sed \'{program}\')\n[ "$changed" != "$rules" ]\n'
    return Kind(name, says, "interface", f'{do}put "$changed" | nft -f -\nundo', shows)


POLICY_KINDS = (
    Kind(
        "policy-off",
        "a host enforces no policy: its rules are gone",
        "interface",
        f"{_PUT}nft delete table inet {TABLE}\nundo",
        f"! {_LIST}",
    ),
    _changed(
        "policy-closed",
        "a rule before all others lets nobody open a connection to a host's container",
        "/chain to_container {/a counter drop",
        f"{_FIRST} '[[:blank:]]*counter drop'",
    ),
    _changed(
        "policy-open",
        "a rule before all others lets everybody open connections to a host's container",
        "/chain to_container {/a counter accept",
        f"{_FIRST} '[[:blank:]]*counter accept'",
    ),
    _changed(
        "policy-order",
        "a host has the policy's rules in another order: what should be denied first is denied last",
        "/} counter drop/{h;d}; /^[[:blank:]]*counter drop/{x;G}",
        _BEHIND,
    ),
    _changed(
        "policy-default",
        "a host lets through what no rule of the policy fits, which the policy denies",
        "s/^\\([[:blank:]]*counter\\) drop/\\1 accept/",
        f"! {_LIST} | grep -qx '[[:blank:]]*counter drop'",
    ),
    _changed(
        "policy-source",
        "a host's rules let in an address that no container has, in place of the containers'",
        f"/accept/s/ip saddr {{ [^}}]* }}/ip saddr {NOBODY}/",
        f"{_LIST} | grep -q 'saddr {NOBODY}'",
    ),
    _changed(
        "policy-port",
        "a host's rules let in another port than the policy says",
        "s/dport 5201/dport 5210/",
        f"{_LIST} | grep -q 'dport 5210'",
    ),
    _changed(
        "policy-answers",
        "a host's rules hold for answers, too, which should always pass",
        "/ct state/d",
        f"! {_LIST} | grep -q 'ct state'",
    ),
    _changed(
        "policy-target",
        "a host's rules are for an address that its container does not have",
        f"/jump/s/daddr [^ ]*/daddr {NOBODY}/",
        f"{_LIST} | grep -q 'daddr {NOBODY}'",
    ),
)
ONLY = {
    **dict.fromkeys(("policy-order", "policy-answers"), ("par", "lyo")),
    **dict.fromkeys(("policy-default", "policy-port"), ("nic", "tou")),
}
"""The hosts of the boards with a policy on which a kind has an effect; the others have it on all."""
