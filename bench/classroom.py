"""A class on one server: so many users at once, each of whom starts a lesson, brings its lab up, and pings.

Each is a user whom nobody is, with a home of their own and no more than a shell's environment, and types what a student
types, with the `minigts` that all users of this machine have (`--program`). They begin at the same moment, or one after
the other every `--every` seconds. All labs stay up until the last one has pinged and memory is measured: what the
machine has available beforehand and then, and what the processes of the labs have. Only root can do this.
"""

from __future__ import annotations

import os
import pwd
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import memory, stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import EnvironmentLacks
from minigts.machine.proc import PROC, shared_files_bytes, text_of, used_s

MIB = 1 << 20
LESSON = """minigts lesson {number} start
cd lesson-{number}
minigts lesson {number} predict {figure}
minigts up topology.yaml
minigts exec ams -- ping -c 1 {to}
"""
OWN = """minigts up {topology}
minigts exec {first} -- ping -c 1 {last}
"""
DOWN = "minigts down --all"


@dataclass
class User:
    """One of the class: their id, their home, and when what they have typed had ended, in seconds from its start."""

    number: int
    id: int
    home: Path
    ended_s: list[float] = field(default_factory=list)
    said: str = ""
    failed: str = ""

    def types(self, command: str, program: Path, limit_s: float) -> None:
        """Run a line of shell as this user, in the directory that the line before has left."""
        environment = {
            "HOME": str(self.home),
            "USER": f"student{self.number}",
            "PATH": f"{program.parent}:{os.defpath}",
            "LANG": "C.UTF-8",
            **{name: os.environ[name] for name in (paths.SHARED,) if name in os.environ},
        }
        argv = ["bash", "-c", f'cd "$(cat ~/where)"; {command} || exit; pwd >~/where']
        began = time.monotonic()
        try:
            done = subprocess.run(
                argv,
                user=self.id,
                group=self.id,
                extra_groups=(),
                umask=0o077,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired:
            self.failed = f"{command}: not done after {limit_s:.0f} s"
            return
        self.ended_s.append(time.monotonic() - began)
        self.said += done.stdout + done.stderr
        if done.returncode:
            self.failed = f"{command}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"


def main() -> None:
    arguments = stage.parser(__doc__, "pair.yaml")
    arguments.add_argument("--users", type=int, default=25)
    arguments.add_argument("--program", type=Path, default=shutil.which("minigts"), help="their minigts")
    arguments.add_argument("--lesson", default="1:65ms:mil", metavar="N:FIGURE:HOST", help="or --topology")
    arguments.add_argument("--every", type=float, default=0.0, metavar="SECONDS", help="between two users' beginnings")
    arguments.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="for one command")
    arguments.set_defaults(topology=None)
    chosen = arguments.parse_args()
    stage.perform(lambda: bench(chosen))


def bench(chosen: Any) -> None:
    if os.geteuid() != 0 or chosen.program is None:
        raise EnvironmentLacks("only root can be several users, who all need a minigts: --program PATH")
    figures = stage.Figures("classroom", chosen.topology or Path(chosen.lesson))
    script = of_topology(chosen.topology) if chosen.topology else of_lesson(*chosen.lesson.split(":"))
    with tempfile.TemporaryDirectory(prefix="minigts-class-") as place:
        Path(place).chmod(0o755)
        users = [made(number, each, Path(place)) for number, each in enumerate(free_ids(chosen.users), 1)]
        before_mib, began = available_mib(), time.monotonic()
        try:
            with ThreadPoolExecutor(len(users)) as pool:
                list(pool.map(lambda user: study(user, script, chosen), users))
            together_s, up_mib = time.monotonic() - began, available_mib()
            found = {"labs_mib": labs_mib({user.id for user in users}), "available_mib": [before_mib, up_mib]}
            found["processor_s"] = processor_s({user.id for user in users})
            found["disk_mib"] = [disk_mib(user.home) for user in users]
        finally:
            began = time.monotonic()
            with ThreadPoolExecutor(len(users)) as pool:
                list(pool.map(lambda user: user.types(DOWN, chosen.program, chosen.limit), users))
        down_s, left = time.monotonic() - began, left_over({user.id for user in users})
        found |= {"together_s": together_s, "down_s": down_s, "left": left}
    found["users"] = [{"ended_s": user.ended_s, "failed": user.failed, "said": user.said} for user in users]
    show(users, script, found)
    figures.write(chosen.out, found)


def of_lesson(number: str, figure: str, to: str) -> tuple[str, ...]:
    return tuple(LESSON.format(number=number, figure=figure, to=to).splitlines())


def of_topology(topology: Path) -> tuple[str, ...]:
    hosts = [host.name for host in stage.plan_of(topology).hosts]
    words = {"topology": shlex.quote(str(topology.absolute())), "first": hosts[0], "last": hosts[-1]}
    return tuple(OWN.format(**words).splitlines())


def free_ids(number: int) -> list[int]:
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return [each for each in range(61000, 65000) if each not in taken][:number]


def made(number: int, user: int, place: Path) -> User:
    home = place / f"student{number}"
    home.mkdir(mode=0o700)
    (home / "where").write_text(f"{home}\n")
    for each in (home, home / "where"):
        os.chown(each, user, user)
    return User(number, user, home)


def study(user: User, script: Sequence[str], chosen: Any) -> None:
    time.sleep(chosen.every * (user.number - 1))
    for command in script:
        user.types(command, chosen.program, chosen.limit)
        if user.failed:
            return


def processor_s(ids: Iterable[int]) -> float:
    """Of all that these users have typed, and of their labs so far."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(used_s(pid) for pid in processes(ids))


def available_mib() -> float:
    """MemAvailable, which the files of labs' memory in /dev/shm lessen, too."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", text_of(PROC / "meminfo"), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def processes(ids: Iterable[int]) -> list[int]:
    """The processes of these users."""
    wanted = set(ids)
    own = (
        (int(each.name), re.search(r"^Uid:\t(\d+)", text_of(each / "status"), re.MULTILINE)) for each in every_process()
    )
    return [pid for pid, uid in own if uid is not None and int(uid[1]) in wanted]


def every_process() -> Iterable[Path]:
    return PROC.glob("[0-9]*")


def left_over(ids: Iterable[int]) -> list[str]:
    """The command lines of what these users' processes still are after some seconds."""
    for _ in range(50):
        if not (pids := processes(ids)):
            break
        time.sleep(0.2)
    return [text_of(PROC / str(pid) / "cmdline").replace("\0", " ")[:200] for pid in pids]


def disk_mib(home: Path) -> float:
    """What is on the disk of a home, whose files may have holes."""
    return sum(each.lstat().st_blocks * 512 for each in home.rglob("*")) / MIB


def labs_mib(ids: Iterable[int]) -> float:
    """What all processes of these users have, counted as `memory` counts it."""
    pids = processes(ids)
    shares = memory.shares(pids)
    return (shares["Pss"] - shares["Pss_Shmem"] + shared_files_bytes(pids)) / MIB


def show(users: Sequence[User], script: Sequence[str], found: dict[str, Any]) -> None:
    rows = []
    for place, command in enumerate(script):
        times = [user.ended_s[place] for user in users if len(user.ended_s) > place]
        rows.append((command, str(len(times)), *spread(times)))
    whole = [sum(user.ended_s[: len(script)]) for user in users if len(user.ended_s) > len(script)]
    rows.append(("from the first word to the answer", str(len(whole)), *spread(whole)))
    tables.show_table("each user's seconds", ("typed", ">users", ">least", ">median", ">most"), rows)
    before, up = found["available_mib"]
    for user in users:
        if user.failed:
            console.note(f"student{user.number}: {user.failed}")
    for said in (
        f"all together {found['together_s']:.0f} s, with {found['processor_s']:.0f} s of a processor",
        f"down {found['down_s']:.0f} s, and {len(found['left'])} processes left",
        f"available {before:.0f} MiB before and {up:.0f} with all up; their processes have {found['labs_mib']:.0f} MiB",
        f"a home has {statistics.median(found['disk_mib']):.1f} MiB",
    ):
        console.note(said)


def spread(times: Sequence[float]) -> tuple[str, str, str]:
    if not times:
        return ("", "", "")
    return (f"{min(times):.1f}", f"{statistics.median(times):.1f}", f"{max(times):.1f}")


if __name__ == "__main__":
    main()
