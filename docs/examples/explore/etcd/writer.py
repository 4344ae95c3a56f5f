"""writer.py add MEMBER SECONDS: adds a value to a set every 5 ms, which is all keys below writes/, and prints what it
asked and was answered.

writer.py all MEMBER: prints the set, once the member answers; a member that has not within a minute is lost."""

import sys
import time

from etcd import Member
from history import Refused, ask, values

EVERY_S, PATIENCE_S = 0.005, 60.0


def added(member: Member, value: str) -> dict[str, object]:
    member.put(f"writes/{value}", value)
    return {}


def the_set(member: Member) -> list[str]:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return member.below("writes/")
        except (Refused, OSError) as error:
            if time.monotonic() > until_s:
                raise SystemExit(f"the member has not answered for {PATIENCE_S:g} s: {error}") from error
            time.sleep(0.2)


verb, host, *words = sys.argv[1:]
if verb == "all":
    sys.stdout.write("\n".join(the_set(Member(host))) + "\n")
else:
    asked = Member(host)
    the_set(asked)
    for value in values(float(words[0]), EVERY_S):
        ask(lambda value=value: added(asked, value), op="add", value=value)
