"""client.py add SECONDS MEMBER…: adds a value to the stream every 20 ms, by one member after the other, and prints what
it asked and was answered.

client.py all MEMBER…: prints all values of the stream, as soon as a member tells."""

import base64
import itertools
import sys
import time

from history import Refused, ask, values
from nats import Member

EVERY_S = 0.02
PATIENCE_S = 60.0


def added(member: Member, value: str) -> dict[str, object]:
    member.add(value)
    return {}


def made(members: list[Member]) -> None:
    """Make the stream, once a member does."""
    for member in itertools.cycle(members):
        try:
            member.make_stream()
        except (Refused, OSError):
            time.sleep(0.2)
        else:
            return


def everything(members: list[Member]) -> list[str]:
    until_s, why = time.monotonic() + PATIENCE_S, "there is no member"
    for member in itertools.cycle(members):
        try:
            first, last = member.state()
            return [base64.b64decode(member.message(number)).decode() for number in range(first, last + 1)]
        except (Refused, OSError) as error:
            why = str(error)
        if time.monotonic() > until_s:
            break
        time.sleep(0.5)
    raise SystemExit(f"no member has told for {PATIENCE_S:g} s what is in the stream: {why}")


def main() -> None:
    verb, *words = sys.argv[1:]
    if verb == "all":
        sys.stdout.write("\n".join(everything([Member(host) for host in words])) + "\n")
        return
    members = [Member(host) for host in words[1:]]
    made(members)
    for number, value in enumerate(values(float(words[0]), EVERY_S)):
        member = members[number % len(members)]
        ask(lambda member=member, value=value: added(member, value), op="add", value=value)


main()
