"""Provider `vagrant`: every host is a libvirt virtual machine that Vagrant brings up from the project's Vagrantfile.

`minigts up --provider vagrant` and a plain `vagrant up` make the same machines from the same definition, and each uses
machines that the other has brought up. A host's agent is then reached over one SSH connection, which a process of the
lab keeps (ssh_supervisor.py).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Literal, TypeVar

from minigts import paths
from minigts.errors import CommandFailed, HostFailed, MinigtsError, noting_failures
from minigts.foreign import Foreign, one_line
from minigts.language import documents
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import supported
from minigts.providers.agent import lab_processes
from minigts.providers.agent.provider import PACE_S, AgentProvider
from minigts.providers.base import Carrier, DoctorFinding
from minigts.providers.uml.build import image, package_images
from minigts.providers.vagrant import definition, doctor, libvirt, prerequisites, ssh_supervisor
from minigts.providers.vagrant.definition import Definition
from minigts.topology.plan.plan import Plan

T = TypeVar("T")
DEFINITION = "definition.json"
DOTFILE = "vagrant"
FOUND = "found-running"
"""A file in the run directory of a lab whose machines ran already, since `vagrant up` had made them."""
EMULATED_PACE_S = 0.02
ADDRESS_DEADLINE_S = 30.0
ANSWER_DEADLINE_S = 120.0
DESTROY_S = 180.0
PUT_TIMEOUT_S = 1800.0
SYNC_TIMEOUT_S = 30.0
LOG_LINES = 12
NOT_KEPT = "not-kept.log"
UNPACK = 'mkdir -p "$1" && tar -x --no-same-owner -C "$1"'


class VagrantProvider(AgentProvider):
    """See `providers.base.Provider`. The run directory has the definition, Vagrant's own records, sockets and logs."""

    name = "vagrant"
    about = "one libvirt virtual machine a host"
    engine: Literal["docker", "namespace"] = "docker"
    supports = prerequisites.SUPPORTS

    @property
    def pace_s(self) -> float:
        """See `Provider`. A request every 4 ms across six emulated machines would keep two cores busy."""
        return EMULATED_PACE_S if self.emulated else PACE_S

    @property
    def emulated(self) -> bool:
        """Whether QEMU emulates the machines' processors."""
        defined = self._definition()
        return defined is not None and defined.processor.driver == definition.EMULATED.driver

    def missing(self) -> list[str]:
        return prerequisites.missing()

    def findings(self) -> Iterable[DoctorFinding]:
        return doctor.findings(prerequisites.gather())

    def prepare(self, progress: Progress, meanwhile: Callable[[], object] | None = None) -> None:
        prerequisites.prepare(progress)

    def up(self, plan: Plan, progress: Progress) -> None:
        if lab_processes.supervisor(self.rundir) is None:
            self.prepare(progress)
            defined = prerequisites.define(plan, self.rundir)
            self.rundir.mkdir(parents=True, exist_ok=True)
            paths.write_whole(self.rundir / DEFINITION, defined.model_dump_json(indent=1) + "\n")
            try:
                if self.all_run(plan):
                    (self.rundir / FOUND).touch()
                else:
                    prerequisites.refuse_memory(plan, but=self.running(plan))
                    prerequisites.open_consoles(defined)
                    self._vagrant_up(defined, progress)
                self._connect(defined)
            except BaseException as error:
                with noting_failures(error):
                    self.down()
                    self._note_what_was_not_kept(error)
                raise
        self._wait([host.name for host in plan.machines], progress)
        self._install_packages(plan, progress)

    def unpack_on(self, host: str, above: PurePosixPath, write: Callable[[IO[bytes]], T]) -> T:
        with tempfile.SpooledTemporaryFile() as packed:
            written = write(packed)
            packed.seek(0)
            argv = ["sh", "-euc", UNPACK, "sh", str(above)]
            self.run(host, argv, timeout_s=PUT_TIMEOUT_S, stdin=packed.read())
        return written

    def restart(self, host: str) -> None:
        if host not in {path.name for path in self.rundir.glob("hosts/*")}:
            raise HostFailed(f"there is no host {host} in this lab")
        with contextlib.suppress(HostFailed, CommandFailed):
            self.run(host, ["sync"], timeout_s=SYNC_TIMEOUT_S)
        (self.rundir / "hosts" / host / paths.CONTROL_SOCKET).unlink(missing_ok=True)
        libvirt.start_again(definition.prefix(self.rundir) + host)
        self._wait([host], lambda _: None)

    def carriers_lack(self) -> str:
        return ""

    def set_carriers(self, carriers: Sequence[Carrier]) -> None:
        for each in carriers:
            libvirt.set_carrier(definition.prefix(self.rundir) + each.machine, each.mac, on=each.on)

    def logs(self, host: str) -> Mapping[str, Path]:
        console = prerequisites.consoles(self.rundir) / f"{host}.log"
        return {paths.CONSOLE_LOG: console, "ssh.log": self.rundir / "hosts" / host / "ssh.log"}

    def processes(self) -> tuple[int, ...]:
        keeper = lab_processes.supervisor(self.rundir)
        mark = f"guest={definition.prefix(self.rundir)}".encode()
        machines = [pid for pid, words in _command_lines() if any(word.startswith(mark) for word in words)]
        return (*machines, *(() if keeper is None else (keeper,)))

    def down(self) -> None:
        if not self.rundir.exists():
            return
        problems: list[Exception] = [MinigtsError(text) for text in lab_processes.end(self.rundir)]
        self._keep_consoles()
        if (self.rundir / DEFINITION).exists() and not problems and not self._only_found():
            if self._definition() is not None:
                self._vagrant_destroy()
            problems += libvirt.remove(definition.prefix(self.rundir))
            shutil.rmtree(prerequisites.consoles(self.rundir), ignore_errors=True)
        shutil.rmtree(self.rundir / "hosts", ignore_errors=True)
        if problems:
            raise ExceptionGroup(f"lab {self.rundir.name} is not down", problems)
        (self.rundir / DEFINITION).unlink(missing_ok=True)

    @property
    def has_own_vagrant(self) -> bool:
        """Whether `minigts up` brought the machines up, with a Vagrant directory of the lab's own."""
        return (self.rundir / DOTFILE).is_dir()

    def all_run(self, plan: Plan) -> bool:
        """Whether exactly the plan's machines run, no matter who brought them up."""
        wanted = {machine.domain for machine in definition.machines(plan, self.rundir, self.rundir)}
        return wanted == set(libvirt.running(definition.prefix(self.rundir)))

    def running(self, plan: Plan) -> set[str]:
        """The names of the plan's hosts and switches whose machines run."""
        running = libvirt.running(definition.prefix(self.rundir))
        return {each.name for each in definition.machines(plan, self.rundir, self.rundir) if each.domain in running}

    def is_configured(self, plan: Plan) -> bool:
        """Whether every host answers with its own host name, which a machine loses when it boots again."""
        try:
            names = {
                host.name: self.run(host.name, ["hostname"], timeout_s=20).stdout.strip() for host in plan.machines
            }
        except MinigtsError:
            return False
        return all(host == name for host, name in names.items())

    def forget(self) -> None:
        """Remove the run directory and end the lab's processes, but leave the machines as they are."""
        lab_processes.end(self.rundir)
        shutil.rmtree(self.rundir, ignore_errors=True)

    def leave(self) -> None:
        """Forget the lab after Vagrant has halted or destroyed some of its machines, since it is no longer up."""
        self.forget()
        if not libvirt.defined_domains(definition.prefix(self.rundir)):
            shutil.rmtree(prerequisites.consoles(self.rundir), ignore_errors=True)

    def _only_found(self) -> bool:
        """Whether `vagrant up` had made the machines, and this lab never came up: then a failed start must not remove
        them."""
        if not (self.rundir / FOUND).exists():
            return False
        try:
            record = documents.document(paths.read_whole(self.rundir / paths.LAB, documents.USUAL.bytes))
            return bool(record["state"] != "up")
        except (OSError, ValueError, TypeError, KeyError):
            return True

    def _keep_consoles(self) -> None:
        """Copy the consoles into the run directory, from which a failed lab's logs are kept. A file there lists the
        consoles that could not be copied."""
        consoles, kept = prerequisites.consoles(self.rundir), self.rundir / "consoles"
        closed = []
        for file in sorted(consoles.glob("*")):
            try:
                kept.mkdir(parents=True, exist_ok=True, mode=0o700)
                shutil.copyfile(file, kept / file.name)
            except OSError as error:
                closed.append(f"{file.name}: {error.strerror}")
        if closed:
            with contextlib.suppress(OSError):
                (kept / NOT_KEPT).write_text(f"consoles that could not be kept: {'; '.join(closed)}\n")

    def _note_what_was_not_kept(self, error: BaseException) -> None:
        with contextlib.suppress(OSError):
            error.add_note((self.rundir / "consoles" / NOT_KEPT).read_text().strip())

    def _definition(self) -> Definition | None:
        try:
            return documents.model(paths.read_whole(self.rundir / DEFINITION, documents.USUAL.bytes), Definition)
        except (OSError, ValueError):
            return None

    def _vagrant_up(self, defined: Definition, progress: Progress) -> None:
        count, how = len(defined.machines), "KVM" if defined.processor.driver == "kvm" else "emulation"
        progress(f"vagrant up: {count} machines under {how}, {defined.at_once} at a time")
        limit_s = defined.boot_timeout_s + prerequisites.BOX_S
        libvirt.remove_older_boxes(f"{defined.box}_vagrant_box_image_{defined.box_version}_box.img")
        try:
            self._vagrant(["up", "--provider=libvirt", "--no-color"], limit_s)
        except CommandFailed as error:
            last = "".join(f"\n    {one_line(each)}" for each in error.out.splitlines()[-LOG_LINES:])
            raise HostFailed(f"`vagrant up` did not bring the machines up; it ended with:{last}") from error

    def _vagrant_destroy(self) -> None:
        """Have Vagrant remove the machines from its own index; the caller removes what it leaves in libvirt."""
        if (self.rundir / DOTFILE).is_dir() and shutil.which("vagrant"):
            try:
                self._vagrant(["destroy", "--force", "--no-color"], DESTROY_S)
            except CommandFailed as error:
                paths.write_whole(self.rundir / "vagrant-destroy.log", str(error))
            shutil.rmtree(self.rundir / DOTFILE, ignore_errors=True)

    def _vagrant(self, argv: Sequence[str], timeout_s: float) -> None:
        """Run Vagrant. Its processes carry the lab's mark, so that `down` ends them even if this process has ended."""
        done = shell.run_group(
            ["env", "-C", str(paths.project_root()), "vagrant", *argv],
            timeout_s=timeout_s,
            env={
                "MINIGTS_DEFINITION": str(self.rundir / DEFINITION),
                "VAGRANT_DOTFILE_PATH": str(self.rundir / DOTFILE),
                lab_processes.MARK: str(self.rundir),
            },
            patience_s=10,
        )
        paths.write_whole(self.rundir / f"vagrant-{argv[0]}.log", done.stdout)

    def _install_packages(self, plan: Plan, progress: Progress) -> None:
        """Install the hosts' packages, from the same archives as for `uml`; machines fetch nothing themselves."""
        with_packages = [host for host in plan.hosts if supported.packages_of(host)]
        if not with_packages:
            return
        ready = image.ensure(progress)
        fetched = {host.name: package_images.archives(plan, host, ready, progress) for host in with_packages}
        progress(f"installing packages on {len(with_packages)} hosts")

        def install(host: str) -> None:
            def run(argv: Sequence[str], stdin: bytes) -> Foreign:
                return self.run(host, argv, timeout_s=package_images.INSTALL_TIMEOUT_S, stdin=stdin).stdout

            paths.write_whole(
                self.rundir / "hosts" / host / package_images.VERSIONS,
                package_images.install(partial(self.put, host), run, fetched[host]),
            )

        with self.together() as pool:
            pool.all([partial(install, name) for name in fetched])

    def _connect(self, defined: Definition) -> None:
        launch = ssh_supervisor.SshLaunch(
            _addresses(defined),
            defined.private_key,
            defined.known_hosts,
            defined.box,
            libvirt.network_prefix(),
        )
        for machine in defined.machines:
            for folder in (self.rundir / "hosts", self.rundir / "hosts" / machine.name):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        launch.write(self.rundir / lab_processes.LAUNCH)
        ssh_supervisor.start(self.rundir)

    def _wait(self, names: Sequence[str], progress: Progress) -> None:
        deadline = time.monotonic() + ANSWER_DEADLINE_S
        for count, name in enumerate(names, 1):
            while not self._answers(name):
                if time.monotonic() > deadline:
                    log = self.rundir / "hosts" / name / "ssh.log"
                    last_lines = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
                    raise HostFailed(f"host {name} runs but does not answer over SSH: {' '.join(last_lines)}")
                time.sleep(0.2)
            progress(f"{count} of {len(names)} hosts answer")

    def _answers(self, name: str) -> bool:
        try:
            self.run(name, ["true"], timeout_s=20)
        except MinigtsError:
            return False
        return True


def _command_lines() -> Iterator[tuple[int, list[bytes]]]:
    """Id and arguments of every process. QEMU's name its machine: `-name guest=minigts-0a1b2c3d-ams,…`"""
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(directory.name), (directory / "cmdline").read_bytes().split(b"\0")


def _addresses(defined: Definition) -> dict[str, str]:
    """Every host's address in the management network. Raises HostFailed when a host has none."""
    deadline = time.monotonic() + ADDRESS_DEADLINE_S
    while True:
        leases = libvirt.addresses()
        addresses = {m.name: leases[m.management_mac] for m in defined.machines if m.management_mac in leases}
        if len(addresses) == len(defined.machines):
            return addresses
        if time.monotonic() > deadline:
            lacking = [machine for machine in defined.machines if machine.name not in addresses]
            names, consoles = (", ".join(words) for words in zip(*((m.name, m.console) for m in lacking), strict=True))
            raise HostFailed(f"no address in network {defined.network} for {names}; their consoles are in {consoles}")
        time.sleep(0.5)
