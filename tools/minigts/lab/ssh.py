"""A lab's hosts for programs that speak SSH: a configuration for OpenSSH, an inventory for Ansible, and what carries
their connections.

Nothing listens, on no machine. OpenSSH starts `minigts ssh-line` for every connection (ssh_config(5), ProxyCommand),
and that an sshd in the host, whose input and output are on the host's control line. No frame takes a link of the lab.

The keys are the lab's own, in its run directory: one by which its hosts know the user, one by which all of them are
known. They are made when they are first asked for. A host is given what it needs of them with each connection, so it
may have been started again meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.errors import EnvironmentLacks, HostFailed
from minigts.lab.record import Lab, exclusive
from minigts.lab.software import environment_of
from minigts.machine import shell
from minigts.providers.agent import ended, wire
from minigts.providers.base import Converses

FOLDER, CONFIG, USER_KEY, HOST_KEY, KNOWN_HOSTS = "ssh", "config", "user", "host", "known_hosts"
"""In the run directory."""
KEY_LIMIT_BYTES = 1 << 14
KEYGEN_S = 60.0
CHANNEL = 1
STANDARD_ERROR = 2
GRACE_S = 10.0
"""How long the host's sshd may take to end, in this machine's time, when the user's end has gone."""
SSHD = "/usr/sbin/sshd"
SERVE = f"""
test -x {SSHD} || {{ echo "this host has no {SSHD}: it runs from an older image" >&2; exit 127; }}
place=$1; shift
(
  umask 077
  mkdir -p /run/sshd "$place"
  cd "$place"
  while [ $# -gt 0 ]; do head -c "$2" >".$1.$$"; mv ".$1.$$" "$1"; shift 2; done
)
exec {SSHD} -i -e -f "$place/config"
"""
"""For `sh -euc`: a directory, and by name how many bytes of the input are which file in it; then it is sshd."""
PLACE = "/run/minigts-ssh-{host}"
"""On a host, or where hosts share a file system, beside the others'."""
SERVER = """\
HostKey {place}/host
AuthorizedKeysFile {place}/user.pub
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
LogLevel ERROR
Subsystem sftp internal-sftp
SetEnv {environment}
"""
LANGUAGE = "LANG=C.UTF-8"
CLIENT = """\
# The hosts of lab {lab}, for ssh -F, scp -F, sftp -F: written by minigts ssh-config. minigts down removes it.
Host {hosts}
  User root
  HostKeyAlias {alias}
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  UpdateHostKeys no
  IdentityFile {user_key}
  IdentitiesOnly yes
  BatchMode yes
  ProxyCommand {proxy}
"""
INTERPRETER = "/usr/bin/python3"
CONTROL_PATH = "%(directory)s/minigts-{lab}-%%n"
"""Of the connections that Ansible leaves open for a minute. By itself it knows them by the host's name alone, which
another lab may have, too."""


@dataclass(frozen=True)
class Keys:
    """Files of the lab's `ssh` folder."""

    folder: Path

    @property
    def user(self) -> Path:
        return self.folder / USER_KEY

    @property
    def host(self) -> Path:
        return self.folder / HOST_KEY

    @property
    def known_hosts(self) -> Path:
        """Written last: where it is, the others are."""
        return self.folder / KNOWN_HOSTS


def write_config(lab: Lab) -> str:
    """What ssh_config(5) calls a user's configuration, of all machines of the lab; it is also in `config_file`.

    Raises EnvironmentLacks for a provider that cannot, and without ssh-keygen.
    """
    _converses(lab)
    keys = _keys(lab)
    text = CLIENT.format(
        lab=lab.name,
        hosts=" ".join(machine.name for machine in lab.plan.machines),
        alias=_alias(lab),
        known_hosts=_quoted(keys.known_hosts),
        user_key=_quoted(keys.user),
        proxy=" ".join((shlex.join(_line(lab)).replace("%", "%%"), "%n")),
    )
    paths.write_whole(config_file(lab), text)
    return text


def config_file(lab: Lab) -> Path:
    """Where it is, once it has been written."""
    return lab.rundir / FOLDER / CONFIG


def inventory(lab: Lab) -> str:
    """The lab's hosts as Ansible's YAML has them, its overlay's groups as groups. Writes the configuration, too."""
    write_config(lab)
    settings = {
        "ansible_user": "root",
        "ansible_python_interpreter": INTERPRETER,
        "ansible_ssh_common_args": f"-F {shlex.quote(str(config_file(lab)))}",
        "ansible_control_path": CONTROL_PATH.format(lab=_digest(Keys(lab.rundir / FOLDER).user)),
    }
    # A string of JSON is one of YAML.
    lines = [
        f"# The hosts of lab {lab.name}, for ansible -i: written by minigts inventory.",
        "all:",
        "  hosts:",
        *(f"    {json.dumps(host.name)}:" for host in lab.plan.hosts),
        *(["  children:"] if lab.plan.groups else []),
    ]
    for group in lab.plan.groups:
        # What Ansible takes for a name there has no hyphens.
        lines += [f"    {json.dumps(group.name.replace('-', '_'))}:", "      hosts:"]
        lines += [f"        {json.dumps(host)}:" for host in group.hosts]
    lines += ["  vars:", *(f"    {name}: {json.dumps(value)}" for name, value in settings.items())]
    return "".join(f"{line}\n" for line in lines)


def carry(lab: Lab, host: str, source: int, target: int) -> int:
    """Carry one connection between two descriptors and an sshd on the host, to its end; sshd's exit code.

    When the user's end goes, by its end of input or a signal that says so, sshd learns it and ends by itself, and what
    it has started goes on or not as after any SSH connection. In virtual time a second of the lab takes a second or
    longer meanwhile. Raises EnvironmentLacks, HostFailed.
    """
    provider, keys = _converses(lab), Keys(lab.rundir / FOLDER)
    argv, given = session(lab, host, keys)
    with contextlib.closing(provider.converse(host, argv)) as line, _told_of_signals() as told:
        line.settimeout(None)
        connection = _Connection(host, line, source, target)
        connection.send(given)
        return connection.carry(told)


def session(lab: Lab, host: str, keys: Keys) -> tuple[list[str], bytes]:
    """What becomes sshd on that host, and what it is given before the connection itself. Raises EnvironmentLacks."""
    place = PLACE.format(host=host)
    try:
        public, private = (
            paths.read_whole(file, KEY_LIMIT_BYTES) for file in (keys.user.with_suffix(".pub"), keys.host)
        )
    except OSError as error:
        raise EnvironmentLacks(f"lab {lab.name} has no keys for SSH yet: minigts ssh-config {lab.name}") from error
    environment = " ".join(map(_word, (LANGUAGE, *_settable(environment_of(lab, host)))))
    files = {
        CONFIG: SERVER.format(place=place, environment=environment).encode(),
        HOST_KEY: private,
        f"{USER_KEY}.pub": public,
    }
    sizes = [word for name, content in files.items() for word in (name, str(len(content)))]
    return ["sh", "-euc", SERVE, "sh", place, *sizes], b"".join(files.values())


class _Connection:
    def __init__(self, host: str, line: socket.socket, source: int, target: int) -> None:
        self._host, self._line, self._source, self._target = host, line, source, target
        self._frames = wire.Decoder()
        self._user_is_there = True

    def carry(self, told: int) -> int:
        """`told` becomes readable when the user's end has gone."""
        code = None
        try:
            while code is None:
                readable, _, _ = select.select([told, self._source, self._line.fileno()], [], [])
                if told in readable:
                    break
                if self._source in readable:
                    piece = os.read(self._source, wire.CHUNK)
                    if not piece:
                        break
                    self.send(piece)
                if self._line.fileno() in readable:
                    code = self._take()
        except BrokenPipeError:
            pass
        return self._leave() if code is None else code

    def send(self, content: bytes) -> None:
        for offset in range(0, len(content), wire.CHUNK):
            self._frame(content[offset : offset + wire.CHUNK])

    def _leave(self) -> int:
        """Nobody reads any more what comes."""
        self._user_is_there = False
        self._frame(b"")
        self._line.settimeout(GRACE_S)
        with contextlib.suppress(TimeoutError):
            while (code := self._take()) is None:
                pass
            return code
        return 0

    def _frame(self, piece: bytes) -> None:
        try:
            self._line.sendall(wire.Frame(CHANNEL, wire.INPUT, piece).encode())
        except ConnectionError as error:
            raise HostFailed(f"host {self._host} went away") from error

    def _take(self) -> int | None:
        """The exit code, once it has come."""
        try:
            data = self._line.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            raise HostFailed(f"host {self._host} went away")
        for frame in self._frames.feed(data):
            if frame.kind == wire.EXIT:
                return ended.of(frame.payload, self._host)[0]
            if self._user_is_there:
                _write(self._target if frame.kind == wire.STDOUT else STANDARD_ERROR, frame.payload)
        return None


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


@contextlib.contextmanager
def _told_of_signals() -> Iterator[int]:
    """A descriptor that becomes readable with a signal by which a user's SSH ends its proxy command: a hang-up as a
    rule, an interrupt from the terminal that both are on."""
    told, tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signals = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in signals}
    woken = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    try:
        yield told
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)
        os.close(tell)


def _converses(lab: Lab) -> Converses:
    if not isinstance(lab.provider, Converses):
        raise EnvironmentLacks(f"hosts of provider {lab.provider.name} cannot be reached by SSH")
    return lab.provider


def _keys(lab: Lab) -> Keys:
    """The lab's keys, made now if they are not there yet."""
    keys = Keys(lab.rundir / FOLDER)
    if keys.known_hosts.exists():
        return keys
    if shutil.which("ssh-keygen") is None:
        raise EnvironmentLacks("ssh-keygen is not installed: apt-get install openssh-client")
    with exclusive(lab.rundir):
        if not keys.known_hosts.exists():
            keys.folder.mkdir(mode=0o700, exist_ok=True)
            for file in (keys.user, keys.host):
                file.unlink(missing_ok=True)
                words = ["-q", "-t", "ed25519", "-N", "", "-C", f"minigts {lab.name} {file.name}", "-f", str(file)]
                shell.run(["ssh-keygen", *words], timeout_s=KEYGEN_S)
            public = keys.host.with_suffix(".pub").read_text()
            paths.write_whole(keys.known_hosts, f"{_alias(lab)} {public}")
    return keys


def _alias(lab: Lab) -> str:
    """What all hosts of the lab are known as."""
    return f"minigts-{lab.name}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]


def _line(lab: Lab) -> Sequence[str]:
    """What carries a connection to the host that is named behind it, whatever the environment is that it starts in."""
    settings = (f"MINIGTS_STATE={lab.rundir.parents[1]}", f"PYTHONPATH={paths.import_root()}")
    return ("env", *settings, sys.executable, "-P", "-m", "minigts", "ssh-line", "--lab", lab.name)


def _quoted(path: Path) -> str:
    """A path as ssh_config(5) takes it: one word, in which a per cent sign stands for something."""
    return _word(str(path).replace("%", "%%"))


def _word(text: str) -> str:
    """One word of a line of sshd_config(5) or ssh_config(5)."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _settable(assignments: Sequence[str]) -> Iterator[str]:
    """Those that stand in one line."""
    return (each for each in assignments if not set(each) & {"\n", "\r"})
