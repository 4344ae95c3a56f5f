"""A user with files, processes and limits, whose lab has two hostile hosts: is anything of the user's changed or read?

Of the lab's three hosts `a` has a kernel that has been taken over, and makes random calls by random descriptors; in `b`
root is hostile: it mounts hostfs by `..`, forges archives, logs and names, floods the console, writes on its control
line, and has the lab's programs replaced. `c` is honest. Meanwhile the user uses verbs. Between the rounds the user's
files, the cache, devices, processes and limits are compared with what they were, and all that came from the lab is
searched for the words of the user's files. It runs on a private ground (effects.py), and all chance is by the seed.

    python -m tests.live.canary plain virtual 60 1         for 60 seconds, seed 1; a line of JSON for each round
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from minigts.providers.uml.run import command_line
from minigts.providers.uml.run.system_calls import KERNEL, NUMBERS

from .effects import Ground, Hostile, grounds
from .hostile_calls import BY_DESCRIPTOR, BY_PATH
from .machine_state import State, Zone, changes, look
from .taken_kernel import ENDS, FORKS
from .traced_kernel import Ended, named
from .used_up import TRIES as USES
from .used_up import Loops, as_user

CHAIN = "name: pair\ntime: {time}\nchain: {{hosts: [a, b, c], link: {{rtt: 2ms}}}}\n"
DOTS = "../" * 40
NOT_AT_RANDOM = {*ENDS, *FORKS, *(NUMBERS[name] for name in ("execve", "munmap", "close", "close_range", "mprotect"))}
"""Calls that end a kernel at once, or leave a second one; they reach nobody else."""
CALLS_OF_A_ROUND = 150
FCHMOD = 91
"""It is no call of a kernel's, so it has no name among them (system_calls.py)."""
PATIENCE_S = 90.0

MOUNTED = r"""
exec 2>&1; mkdir -p /mnt/h
for place in "$@"; do
  umount /mnt/h 2>/dev/null; mount -t hostfs -o "hostfs=$place" none /mnt/h || continue
  for it in "" /file /folder /folder/kept /link /root.ext4 /linux /null; do
    it=/mnt/h$it
    cat "$it"; exec 3<"$it"; chmod MODE "$it"; chown 1:1 "$it"; touch -d 2001-01-01 "$it"
    setfattr -n user.x -v y "$it"
    exec 3<&-; ln "$it" "$it.2"; mv "$it" "$it.3"; echo x >>"$it"; rm -rf "$it"
  done
  mkdir /mnt/h/made; ln -s /etc/passwd /mnt/h/symlink; : >/mnt/h/again
done
umount /mnt/h; true
"""
ARCHIVER = r"""
import io, os, random, sys, tarfile
chance, out = random.Random(int(os.environ.get("EVIL", "1"))), io.BytesIO()
names = [".", "..", "../../x", "/tmp/planted", "x", "x/y", "folder/kept", "-rf", "a\nb", "\x1b[2J", "con"]
names += ["." * 200, "y" * 300]
targets = ["TARGET", "TARGET/file", "/etc/passwd", "..", ".", "x", "/dev/null", "/proc/self/mem"]
with tarfile.open(fileobj=out, mode="w", format=chance.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])) as archive:
    for _ in range(chance.randrange(1, 6)):
        member = tarfile.TarInfo(chance.choice(names))
        member.type = chance.choice([b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"S", b"Z"])
        member.linkname, member.mode = chance.choice(targets), chance.choice([0, 0o777, 0o4755, 0o300])
        body = b"planted" if member.type in b"07" else b""
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
data = bytearray(out.getvalue())
if chance.random() < 0.3:
    for _ in range(20):
        data[chance.randrange(len(data))] = chance.randrange(256)
sys.stdout.buffer.write(bytes(data))
"""
FORGE = r"""
cp -n /usr/bin/tar /usr/bin/tar.real
cat >/root/evil.py
printf '#!/bin/sh\nEVIL=$(date +%%N) exec python3 /root/evil.py\n' >/usr/bin/tar; chmod 755 /usr/bin/tar
mkdir -p /root/d; echo harmless >/root/notes.txt
"""
HONEST_AGAIN = "[ -e /usr/bin/tar.real ] && cp /usr/bin/tar.real /usr/bin/tar; true"


@dataclass
class Round:
    number: int
    acts: list[str] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Canary:
    """The user's belongings, what they were, and how to see whether they are still so."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.words = secrets.token_hex(24)
        """What the user's files contain, and nothing else may."""
        self.inbox = ground.place / "inbox"
        self.inbox.mkdir(exist_ok=True)
        os.chown(self.inbox, ground.uid, ground.uid)
        for name in ("file", "folder/kept"):
            (ground.home / name).write_text(f"{self.words}\n")
        (ground.home / "folder").chmod(0o755)
        self._process = subprocess.Popen(
            ["sleep", "100000"], user=ground.uid, group=ground.uid, extra_groups=[], cwd="/", env={"OWN": self.words}
        )
        self._of_process = self._about_process()
        self.limits = as_user(ground.uid)
        self._before = self._look()

    def _zones(self) -> list[Zone]:
        """All but the lab's own parts."""
        own = {"its own directory", "what the user copies from it", "what its guest may read", "its console's file"}
        own |= {"another host's files", "the lab's records", "the notes of why hosts were ended", "the user's state"}
        return [zone for zone in self._ground.zones() if zone.name not in own]

    def _look(self) -> State:
        return look(self._zones(), {}, 0)

    def _about_process(self) -> tuple[object, ...]:
        pid = self._process.pid
        limits = Path(f"/proc/{pid}/limits").read_text()
        return os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid), os.sched_getscheduler(pid), limits

    def faults(self) -> list[str]:
        """What is not as it was."""
        now = self._look()
        found = [str(each) for each in sorted(changes(self._before, now))]
        self._before = now
        if self._process.poll() is not None:
            found.append("the user's process has ended")
        elif self._about_process() != self._of_process:
            found.append("the user's process has other limits")
        return [*found, *self._in_inbox()]

    def _in_inbox(self) -> Iterator[str]:
        for path in self.inbox.rglob("*"):
            if path.is_symlink():
                yield f"a link to {str(path.readlink())!r} came into the user's inbox"
            elif path.is_file() and self.words.encode() in path.read_bytes():
                yield "the user's words came back into the inbox"

    def limit_faults(self) -> list[str]:
        """What the user does not get any more, once a kernel that used it up is gone."""
        now = as_user(self._ground.uid)
        return [f"the user gets no {name}: {now[name]}" for name, had in self.limits.items() if now[name] != had]

    def is_in_the_lab(self) -> list[str]:
        """Files of the lab that contain the user's words."""
        return [
            f"the user's words are in {path.relative_to(self._ground.rundir)}"
            for path in self._ground.rundir.rglob("*")
            if path.is_file() and not path.is_symlink() and _contains(path, self.words.encode())
        ]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _contains(path: Path, words: bytes) -> bool:
    """Of a large file with holes, too, whose holes are not read."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        at, size = 0, path.stat().st_size
        while at < size:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return False
            at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            base = begin // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            with mmap.mmap(file.fileno(), at - base, offset=base, prot=mmap.PROT_READ) as data:
                if data.find(words) >= 0:
                    return True
    return False


class Siege:
    """The rounds."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground, self._chance = ground, random.Random(seed)
        self._canary = Canary(ground)

    def last(self, seconds: float) -> Iterator[Round]:
        deadline, number = time.monotonic() + seconds, 0
        acts = [
            self._calls,
            self._calls,
            self._modes,
            self._use_up,
            self._again,
            self._mounts,
            self._forge,
            self._flood,
            self._line,
        ]
        verbs = [self._cp_from, self._cp_between, self._logs, self._exec_honest, self._exec_hostile, self._status]
        try:
            while time.monotonic() < deadline:
                this = Round(number)
                for act in self._chance.sample(acts, 2):
                    this.acts.append(act(this))
                for verb in self._chance.sample(verbs, 3):
                    verb(this)
                this.faults += self._canary.faults()
                self._repair(this)
                yield this
                number += 1
            end = Round(number)
            self._succeeds(end, "down")
            self._succeeds(end, "up", *self._up)
            end.faults += [*self._canary.limit_faults(), *self._canary.faults()]
            self._succeeds(end, "down", "--all")
            if self._ground.rundir.exists():
                end.faults.append("`down` left the run directory")
            yield end
        finally:
            self._canary.end()

    @property
    def _up(self) -> tuple[str, ...]:
        return str(self._ground.place / "pair.yaml"), "--overlay", "none", "--certify", "quick"

    # The taken kernel of host a

    def _hostile(self, act: Callable[[Hostile], str]) -> str:
        """What it did; the kernel goes on afterwards, if it can."""
        try:
            held = Hostile(self._ground)
        except (KeyError, OSError, Ended, AssertionError) as error:
            return f"no kernel of a: {type(error).__name__}"
        try:
            return act(held)
        except (Ended, OSError) as error:
            return f"the kernel of a ended: {error}"
        finally:
            held.release()

    def _calls(self, this: Round) -> str:
        """Random calls, descriptors, paths and arguments."""
        chance = self._chance

        def act(held: Hostile) -> str:
            paths, done = list(held.paths().values()), 0
            for _ in range(CALLS_OF_A_ROUND):
                kind = chance.random()
                path = held.traced.put(4096, str(chance.choice(paths)).encode() + b"\0")
                descriptor = chance.choice(list(held.kinds.values()))
                if kind < 0.4:
                    result = chance.choice(BY_DESCRIPTOR[:-8]).by(held.traced, descriptor)
                elif kind < 0.5:
                    result = chance.choice(BY_PATH).by(held.traced, path)
                else:
                    allowed = [NUMBERS[name] for name in KERNEL if NUMBERS[name] not in NOT_AT_RANDOM]
                    number = chance.choice(allowed) if chance.random() < 0.8 else chance.randrange(480)
                    if number in NOT_AT_RANDOM:
                        continue
                    pool = (
                        descriptor,
                        path,
                        held.traced.box,
                        0,
                        1,
                        2,
                        -1,
                        -100,
                        0o777,
                        4096,
                        1 << 31,
                        chance.getrandbits(64),
                    )
                    result = held.traced.call(number, *(chance.choice(pool) for _ in range(6)))
                done += named(result) == "done"
            return f"{CALLS_OF_A_ROUND} calls, of which {done} succeeded"

        return self._hostile(act)

    def _modes(self, this: Round) -> str:
        """Its own directories cannot be entered or read, and have files in them."""
        chance = self._chance

        def act(held: Hostile) -> str:
            own = self._ground.rundir / "hosts" / "a" / "own"
            put, call = held.traced.put, held.traced.call
            for name in (own / "planted", self._ground.rundir / "hosts" / "a" / "planted"):
                call(257, -100, put(0, str(name).encode() + b"\0"), os.O_CREAT | os.O_RDWR, 0)
            mode = chance.choice((0, 0o300, 0o500))
            names = (
                "its kernel's directory",
                "what the user copies from it",
                "what its guest may read",
                "its own directory",
            )
            names += ("the image, opened to read", "the kernel's program", "/dev/null")
            done = [named(call(FCHMOD, held.kinds[name], mode)) for name in names if name in held.kinds]
            return f"fchmod {mode:o} of its own and shared places: {' '.join(done)}"

        return self._hostile(act)

    def _use_up(self, this: Round) -> str:
        """As much as it gets of what counts for the user."""
        what, use, _, _ = self._chance.choice(USES)
        return self._hostile(lambda held: f"{what}: {use(held.traced, Loops(held.traced))}")

    def _again(self, this: Round) -> str:
        """It asks to be started again by itself, and ends."""

        def act(held: Hostile) -> str:
            rundir = self._ground.rundir
            for place in (command_line.restart_file(rundir, "a"), rundir / "hosts" / "a" / "again"):
                path = held.traced.put(0, str(place).encode() + b"\0")
                made = held.traced.call(257, -100, path, os.O_CREAT | os.O_RDWR, 0o600)
            with contextlib.suppress(Ended):
                held.traced.call(231, 0)
            return f"asks to be started again: {named(made)}"

        return self._hostile(act)

    # The hostile root of host b

    def _in_b(self, script: str, *words: str, timeout_s: float = 20.0) -> str:
        argv = ("exec", "b", "--", "timeout", f"{timeout_s:g}", "bash", "-c", script, "bash", *words)
        return self._run(argv)[1]

    def _mounts(self, this: Round) -> str:
        """Hostfs by way of the root, in places of the user's, of the lab and of the machine."""
        ground = self._ground
        places = [
            ground.home,
            ground.home / "folder",
            ground.image.parent,
            ground.kernel_directory,
            Path("/dev"),
            ground.rundir,
        ]
        places += [ground.rundir / "hosts" / "c", Path("/"), self._canary.inbox]
        ways = [f"{DOTS}{str(place).lstrip('/')}" for place in self._chance.sample(places, 3)]
        ways += [
            f"{DOTS}proc/self/cwd",
            *(f"{DOTS}proc/self/fd/{number}" for number in self._chance.sample(range(3, 40), 3)),
        ]
        said = self._in_b(MOUNTED.replace("MODE", self._chance.choice(("000", "777"))), *ways)
        if self._canary.words in said:
            this.faults.append("hostfs shows the user's words")
        return f"mounts {len(ways)} places by hostfs"

    def _forge(self, this: Round) -> str:
        """Its archiver answers with links, devices and names that lead elsewhere."""
        text = ARCHIVER.replace("TARGET", str(self._ground.home))
        self._in_b(f"cat >/root/evil.py <<'END'\n{text}\nEND\n" + FORGE.replace("cat >/root/evil.py\n", ""))
        return "forges archives"

    def _flood(self, this: Round) -> str:
        """The console and the logs get escapes, odd names and megabytes."""
        script = r"""
        for name in /var/log/..hidden.log "/var/log/$(printf 'a\nb').log" /var/log/-rf.log; do
          yes "$(printf '\033[2J')" | head -c 3000000 >"$name"
        done
        ln -sf /etc/shadow /var/log/shadow.log; timeout 2 yes "$(printf '\033]0;x\007')" >/dev/console; true
        """
        self._in_b(script)
        return "floods its console and logs"

    def _line(self, this: Round) -> str:
        """Bytes of its own on the control line."""
        script = r"""
        for line in "$MINIGTS_LINE" /dev/hvc0 /dev/ttyS0; do
          [ -c "$line" ] && timeout 2 head -c 100000 /dev/urandom >"$line"
        done; true
        """
        self._in_b(script, timeout_s=5)
        return "writes on its control line"

    # The user

    def _run(self, argv: tuple[str, ...]) -> tuple[int, str]:
        started = self._ground.program.start(*argv)
        try:
            stdout, stderr = started.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            started.kill()
            stdout, stderr = started.communicate()
            return -1, stdout + stderr
        return started.returncode, stdout + stderr

    def _verb(self, this: Round, *argv: str) -> tuple[int, str]:
        """Run it; a traceback, no end, or the user's words in its output are faults."""
        code, said = self._run(argv)
        this.verbs.append(f"{' '.join(argv)}: {code}"[:200])
        words = f"`{' '.join(argv)[:80]}`"
        if code == -1:
            this.faults.append(f"{words} did not end in {PATIENCE_S:g} s")
        if "Traceback (most recent call last)" in said:
            this.faults.append(f"{words} gave a traceback: {said.strip().splitlines()[-1][:200]}")
        if self._canary.words in said:
            this.faults.append(f"{words} shows the user's words")
        return code, said

    def _succeeds(self, this: Round, *argv: str) -> bool:
        code, said = self._verb(this, *argv)
        if code not in (0, -1):
            last = (said.strip().splitlines() or ["nothing said"])[-1]
            this.faults.append(f"`{' '.join(argv)[:80]}` ended with {code}: {last[:200]}")
        return code == 0

    def _cp_from(self, this: Round) -> None:
        host, into = self._chance.choice("ab"), self._canary.inbox / f"got-{this.number}"
        self._verb(this, "cp", *self._chance.choice(((), ("-r",))), f"{host}:/root/notes.txt", str(into))

    def _cp_between(self, this: Round) -> None:
        self._verb(this, "cp", "b:/root/notes.txt", "c:/root/notes.txt")
        code, said = self._run(("exec", "c", "--", "grep", "-rl", self._canary.words, "/root", "/tmp", "/home"))
        if code == 0:
            this.faults.append(f"the user's words are in host c: {said[:100]}")

    def _logs(self, this: Round) -> None:
        self._verb(this, "logs", self._chance.choice("ab"), "--into", str(self._canary.inbox / f"logs-{this.number}"))

    def _exec_honest(self, this: Round) -> None:
        self._succeeds(this, "exec", "c", "--", "echo", "well")

    def _exec_hostile(self, this: Round) -> None:
        self._verb(this, "exec", self._chance.choice("ab"), "--", "timeout", "5", "true")

    def _status(self, this: Round) -> None:
        self._verb(this, "status", "--json")

    def _repair(self, this: Round) -> None:
        """Both hostile hosts anew, or the whole lab; the user's limits must then be as ever."""
        if self._chance.random() < 0.3:
            self._succeeds(this, "down")
            if self._ground.rundir.exists():
                this.faults.append("`down` left the run directory")
            self._succeeds(this, "up", *self._up)
        else:
            self._succeeds(this, "restart", "a")
            if self._verb(this, "exec", "b", "--", "sh", "-c", HONEST_AGAIN)[0]:
                self._succeeds(this, "restart", "b")
        if this.number % 5 == 0:
            this.faults += self._canary.is_in_the_lab()
        this.faults += self._canary.limit_faults()
        if any("ended with" in fault for fault in this.faults):
            self._by_force()

    def _by_force(self) -> None:
        """A lab as new, where the user's own verbs no longer bring one: so that the next round has one."""
        for path in (self._ground.rundir, *self._ground.rundir.rglob("*")):
            with contextlib.suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o700)
        with contextlib.suppress(OSError):
            self._ground.image.chmod(0o644)
            (self._ground.kernel_directory / "linux").chmod(0o755)
            self._ground.kernel_directory.chmod(0o755)
        with contextlib.suppress(AssertionError):
            self._ground.again()
        self._canary.faults()


def main() -> None:
    user, time_word, seconds, seed = sys.argv[1:]
    with grounds(user, time_word, CHAIN) as ground:
        for each in Siege(ground, int(seed)).last(float(seconds)):
            sys.stdout.write(json.dumps(asdict(each)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
