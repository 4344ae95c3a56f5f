"""A lab's hosts for programs that speak SSH: a configuration for OpenSSH, an inventory for Ansible, and the transport
of their connections.

No program listens on a port. OpenSSH starts `minigts ssh-line` for every connection (ssh_config(5), ProxyCommand). That
starts an sshd in the host, whose input and output are the host's control line. No frame passes a link of the lab.

The lab has two key pairs in its run directory: the user's, and one host key for all hosts. They are made when they are
first needed. Each connection sends the host its keys, so a host that was restarted has them, too.
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
from minigts.errors import EnvironmentLacks, HostFailed, reading_from
from minigts.lab.lab import Lab
from minigts.lab.provisioning import environment_of
from minigts.lab.rundir import exclusive
from minigts.machine import shell
from minigts.providers.agent import protocol
from minigts.providers.base import Streams

FOLDER, CONFIG, USER_KEY, HOST_KEY, KNOWN_HOSTS = "ssh", "config", "user", "host", "known_hosts"
"""A folder in the run directory, and files in it."""
KEY_LIMIT_BYTES = 1 << 14
KEYGEN_S = 60.0
CHANNEL = 1
STANDARD_ERROR = 2
GRACE_S = 10.0
"""How long the host's sshd may take to end, by this machine's clock, once the user's SSH has ended."""
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
"""A script for `sh -euc`. Its arguments are a directory, then NAME and SIZE of each file: it writes so many bytes of
its input to each, then becomes sshd."""
PLACE = "/run/minigts-ssh-{host}"
"""The directory on a host. It has the host's name in it, since hosts may share a file system."""
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
"""The sockets of connections that Ansible keeps open for a minute. Ansible's own name for them has only the host's
name, which another lab may have, too."""


@dataclass(frozen=True)
class SshKeys:
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
        """This file is written last: where it exists, the others do."""
        return self.folder / KNOWN_HOSTS


def write_config(lab: Lab) -> str:
    """An ssh_config(5) for all machines of the lab; it is also written to `config_file`.

    Raises EnvironmentLacks for a provider without control lines, and without ssh-keygen.
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
    """The file that `write_config` writes."""
    return lab.rundir / FOLDER / CONFIG


def inventory(lab: Lab) -> str:
    """An Ansible inventory in YAML: the lab's hosts, and its groups as groups. It writes the SSH configuration, too."""
    write_config(lab)
    settings = {
        "ansible_user": "root",
        "ansible_python_interpreter": INTERPRETER,
        "ansible_ssh_common_args": f"-F {shlex.quote(str(config_file(lab)))}",
        "ansible_control_path": CONTROL_PATH.format(lab=_digest(SshKeys(lab.rundir / FOLDER).user)),
    }
    # A JSON string is also a YAML string.
    lines = [
        f"# The hosts of lab {lab.name}, for ansible -i: written by minigts inventory.",
        "all:",
        "  hosts:",
        *(f"    {json.dumps(host.name)}:" for host in lab.plan.hosts),
        *(["  children:"] if lab.plan.groups else []),
    ]
    for group in lab.plan.groups:
        # Ansible allows no hyphens in a group's name.
        lines += [f"    {json.dumps(group.name.replace('-', '_'))}:", "      hosts:"]
        lines += [f"        {json.dumps(host)}:" for host in group.hosts]
    lines += ["  vars:", *(f"    {name}: {json.dumps(value)}" for name, value in settings.items())]
    return "".join(f"{line}\n" for line in lines)


def carry(lab: Lab, host: str, source: int, target: int) -> int:
    """Carry one connection between two descriptors and an sshd on the host until it ends; return sshd's exit code.

    When the user's SSH ends, by end of input or by a signal, sshd is told and ends; programs that it started run on or
    end as after any SSH connection. In virtual time a second of the lab meanwhile takes at least a second. Raises
    EnvironmentLacks, HostFailed.
    """
    provider, keys = _converses(lab), SshKeys(lab.rundir / FOLDER)
    argv, given = session(lab, host, keys)
    with contextlib.closing(provider.converse(host, argv)) as line, _told_of_signals() as told:
        line.settimeout(None)
        connection = _Connection(host, line, source, target)
        connection.send(given)
        return connection.carry(told)


def session(lab: Lab, host: str, keys: SshKeys) -> tuple[list[str], bytes]:
    """The command that starts sshd on that host, and the bytes that it reads first. Raises EnvironmentLacks."""
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
        self._frames = protocol.Decoder()
        self._user_is_there = True

    def carry(self, told: int) -> int:
        """Carry until sshd ends; return its exit code. `told` becomes readable when the user's SSH ends."""
        code = None
        try:
            while code is None:
                readable, _, _ = select.select([told, self._source, self._line.fileno()], [], [])
                if told in readable:
                    break
                if self._source in readable:
                    piece = os.read(self._source, protocol.CHUNK)
                    if not piece:
                        break
                    self.send(piece)
                if self._line.fileno() in readable:
                    code = self._take()
        except BrokenPipeError:
            pass
        return self._leave() if code is None else code

    def send(self, content: bytes) -> None:
        for offset in range(0, len(content), protocol.CHUNK):
            self._frame(content[offset : offset + protocol.CHUNK])

    def _leave(self) -> int:
        """Tell sshd that the user's SSH has ended, and wait for its exit code; 0 when it takes over GRACE_S."""
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
            self._line.sendall(protocol.Frame(CHANNEL, protocol.INPUT, piece).encode())
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
            if frame.kind == protocol.EXIT:
                with reading_from(f"host {self._host}", "how sshd ended"):
                    return protocol.parse_end(frame.payload).code
            if self._user_is_there and frame.kind in (protocol.STDOUT, protocol.STDERR):
                _write(self._target if frame.kind == protocol.STDOUT else STANDARD_ERROR, frame.payload)
        return None


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


@contextlib.contextmanager
def _told_of_signals() -> Iterator[int]:
    """A descriptor that becomes readable with a signal that ends a proxy command: SSH sends SIGHUP, the user's terminal
    SIGINT."""
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


def _converses(lab: Lab) -> Streams:
    if not isinstance(lab.provider, Streams):
        raise EnvironmentLacks(f"hosts of provider {lab.provider.name} cannot be reached by SSH")
    return lab.provider


def _keys(lab: Lab) -> SshKeys:
    """The lab's keys; they are made if they do not exist yet."""
    keys = SshKeys(lab.rundir / FOLDER)
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
    """The name of all hosts of the lab in known_hosts."""
    return f"minigts-{lab.name}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]


def _line(lab: Lab) -> Sequence[str]:
    """The proxy command, to which the host's name is appended. It works in any environment."""
    settings = (f"MINIGTS_STATE={lab.rundir.parents[1]}", f"PYTHONPATH={paths.import_root()}")
    return ("env", *settings, sys.executable, "-P", "-m", "minigts", "ssh-line", "--lab", lab.name)


def _quoted(path: Path) -> str:
    """A path as one word of ssh_config(5), in which a per cent sign has to be doubled."""
    return _word(str(path).replace("%", "%%"))


def _word(text: str) -> str:
    """One word of a line of sshd_config(5) or ssh_config(5)."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _settable(assignments: Sequence[str]) -> Iterator[str]:
    """The assignments without line breaks: sshd_config(5) cannot hold others."""
    return (each for each in assignments if not set(each) & {"\n", "\r"})
