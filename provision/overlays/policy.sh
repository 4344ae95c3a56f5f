# shellcheck shell=bash
# Sourced by leave.sh of the overlays that enforce policies: see tools/minigts/policy.py.

# remove_policy: the rules, where there are any.
remove_policy() { nft delete table inet minigts_policy 2>/dev/null || true; }
