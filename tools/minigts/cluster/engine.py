"""The Dask cluster that `--on` names: local workers, a new cluster of one of Dask's classes, or one that runs."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from minigts.cluster import dask_preload, worker
from minigts.errors import EnvironmentLacks, InputError
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.language.source import Language, read_text
from minigts.language.tree import Data, read_tree
from minigts.language.validation import findings_of
from minigts.machine.progress import Progress

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster

PACKAGES = ("distributed", "cryptography")
"""The packages of the extra `campaign`."""
LOCAL = "local"
RUNNING = ("tcp://", "tls://", "ws://", "wss://")
"""The prefixes of a running scheduler's address."""
MOST_WORKERS = 4096
WAITING_S = 30.0
"""How long to wait for a scheduler to start or answer, and for its first worker."""
MOST_DEATHS = 3
"""A scheduler that minigts starts gives a job up when this many workers have died while doing it."""
ONE_JOB_EACH = 1.0
"""How many jobs a scheduler that minigts starts gives to each thread of a worker at once: with more, it would not be
known which of them a worker has died of."""
UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.disk": False,
}
"""Dask's looks at itself, for a dashboard that minigts does not show: by default at the stack each 10 ms, at its loop
each 20 ms, at the machine each 500 ms. Beside two idle workers they took 8 % of a processor, and take 1 %."""
CLASSES = (
    *(f"distributed.{name}" for name in ("LocalCluster", "SSHCluster")),
    *(f"dask_jobqueue.{name}Cluster" for name in ("SLURM", "PBS", "SGE", "LSF", "OAR", "Moab", "HTCondor")),
    *("dask_kubernetes.operator.KubeCluster", "dask_kubernetes.HelmCluster"),
    *("dask_yarn.YarnCluster", "dask_gateway.GatewayCluster"),
    *(f"dask_cloudprovider.aws.{name}" for name in ("EC2Cluster", "ECSCluster", "FargateCluster")),
    *("dask_cloudprovider.azure.AzureVMCluster", "dask_cloudprovider.gcp.GCPCluster"),
    *("dask_cloudprovider.openstack.OpenStackCluster", "dask_cloudprovider.hetzner.HetznerCluster"),
    "dask_cloudprovider.digitalocean.DropletCluster",
)
"""The classes that a file may name. With any name allowed, a file could call any function."""
LANGUAGE = Language(
    name="engine", opening="`cluster:`", largest_bytes=100_000, instead_of_aliases="write out what is meant"
)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(?P<part>\.[0-9]{1,15})?", re.ASCII)


def _class(value: object) -> str:
    if value not in CLASSES:
        hint = did_you_mean(value, CLASSES) if isinstance(value, str) else ""
        known = hint or f"; those are {list_names(CLASSES)}"
        raise ValueError(f"{quote(value)} is no cluster class of Dask that a file may name{known}")
    return str(value)


class EngineFile(BaseModel):
    """A file that describes the cluster to start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster: Annotated[str, BeforeValidator(_class)]
    """One of Dask's classes, such as distributed.SSHCluster or dask_jobqueue.SLURMCluster."""
    options: dict[str, Any] = {}
    """The arguments of that class."""
    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)] | None = None
    """The number of workers; None: as many as the options make."""


@dataclass(frozen=True)
class OpenEngine:
    """An engine, and the id in the names of its jobs' labs."""

    client: Client
    campaign_id: str


def missing() -> list[str]:
    """What this installation lacks for an engine, a sentence each."""
    if all(importlib.util.find_spec(name) is not None for name in PACKAGES):
        return []
    return [
        "--on needs the packages distributed, and cryptography for its keys; install them, with pipx by: "
        f"pipx inject minigts {' '.join(PACKAGES)}"
    ]


def check_engine(on: str) -> str | EngineFile:
    """The engine that `--on` names. Raises InputError, EnvironmentLacks."""
    if on.startswith(RUNNING) or on == LOCAL:
        found: str | EngineFile = on
    elif on.startswith(f"{LOCAL}:"):
        count = on.removeprefix(f"{LOCAL}:")
        if not count.isdecimal() or not 1 <= int(count) <= MOST_WORKERS:
            raise InputError(
                f"--on {on[:60]}: write local:N, where N is the number of workers, from 1 to {MOST_WORKERS}"
            )
        found = on
    elif on.endswith((".yaml", ".yml")):
        found = _read(Path(on))
    else:
        raise InputError(
            f"--on {on[:60]}: an engine is local, local:N, the address of a Dask scheduler, or a file .yaml"
        )
    if lacking := missing():
        raise EnvironmentLacks("\n".join(lacking))
    if on.startswith(RUNNING):
        _require_host_and_port(on)
    return found


def _require_host_and_port(address: str) -> None:
    from distributed.comm.addressing import parse_host_port  # noqa: PLC0415

    try:
        parse_host_port(address.partition("://")[2])
    except ValueError as error:
        raise InputError(f"--on {address[:60]}: {error}; write it as in tcp://192.0.2.1:8786") from error


def is_here(on: str) -> bool:
    """Whether the workers of the engine that `--on` names are on this machine."""
    return on.partition(":")[0] == LOCAL


def _read(path: Path) -> EngineFile:
    tree = read_tree(read_text(path, LANGUAGE), str(path), LANGUAGE)
    try:
        return EngineFile.model_validate(_typed(tree.data))
    except ValidationError as error:
        raise InputError([tree.problem(str(path), each) for each in findings_of(error, EngineFile)]) from error


def _typed(data: Data) -> Any:
    """The tree with numbers and booleans parsed, for a class's options."""
    if isinstance(data, dict):
        return {key: _typed(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_typed(value) for value in data]
    if data in ("true", "false"):
        return data == "true"
    if isinstance(data, str) and (number := _NUMBER.fullmatch(data)):
        return float(data) if number["part"] else int(data)
    return data


@contextmanager
def open_engine(engine: str | EngineFile, say: Progress) -> Iterator[OpenEngine]:
    """The engine, with at least one worker. Processes that were started for it end with the context, and no lab of an
    interrupted job stays on this machine. Raises EnvironmentLacks, InputError.
    """
    from distributed import Client  # noqa: PLC0415

    for name in [*logging.root.manager.loggerDict]:  # minigts itself reports lost workers
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    campaign_id = secrets.token_hex(3)
    with ExitStack() as stack:
        stack.callback(_remove_labs_of_the_dead, campaign_id, say)
        try:
            if isinstance(engine, str) and engine.startswith(RUNNING):
                client = stack.enter_context(_client_of(engine))
            else:
                cluster = stack.enter_context(_begun(engine, stack))
                if isinstance(engine, EngineFile) and engine.workers is not None:
                    cluster.scale(engine.workers)
                client = stack.enter_context(Client(cluster, timeout=WAITING_S, set_as_default=False))
            say("waiting for the first worker")
            # A batch system's queue may be long.
            client.wait_for_workers(1, timeout=None if isinstance(engine, EngineFile) else WAITING_S)
        except (OSError, TimeoutError) as error:
            raise EnvironmentLacks(f"the engine does not answer: {error or 'no worker came'}") from error
        yield OpenEngine(client, campaign_id)


def _remove_labs_of_the_dead(campaign_id: str, say: Progress) -> None:
    if wrong := worker.remove_labs(campaign_id, True):
        say(f"labs of interrupted jobs could not be taken down: {wrong}")


def _client_of(address: str) -> Client:
    from distributed import Client  # noqa: PLC0415

    try:
        return Client(address, timeout=WAITING_S, set_as_default=False)
    except (TypeError, ValueError) as error:  # such as tls:// and no certificate in Dask's settings
        raise InputError(f"--on {address[:60]}: {error}") from error


def _begun(engine: str | EngineFile, stack: ExitStack) -> Cluster:
    import dask  # noqa: PLC0415
    from distributed import LocalCluster  # noqa: PLC0415

    stack.enter_context(
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
                "distributed.scheduler.worker-saturation": ONE_JOB_EACH,
                **UNWATCHED,
            }
        )
    )
    if isinstance(engine, EngineFile):
        return _of_class(engine)
    count = int(engine.partition(":")[2] or os.cpu_count() or 1)
    stack.enter_context(dask.config.set({f"distributed.{of}.http.routes": [] for of in ("scheduler", "worker")}))
    # Dask would warn of another port for its dashboard, though there is no dashboard.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=stack.enter_context(tempfile.TemporaryDirectory(prefix="minigts-workers-")),
            silence_logs=logging.CRITICAL,
            memory_limit=0,
            preload=[dask_preload.__name__] if count > 1 else [],
            # Without keys other users of this machine could let the scheduler run any program.
            security=True,
        )


def _of_class(engine: EngineFile) -> Cluster:
    from distributed.deploy import Cluster  # noqa: PLC0415

    module, _, name = engine.cluster.rpartition(".")
    try:
        wanted = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise EnvironmentLacks(
            f"engine {engine.cluster}: {error}; install its package in minigts' environment"
        ) from error
    # SSHCluster is a function that makes a cluster.
    if not callable(wanted):
        raise InputError(f"engine {engine.cluster}: {module} has no such class")
    try:
        made = wanted(**engine.options)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise InputError(f"engine {engine.cluster}: cannot be started with these options: {error}") from error
    if not isinstance(made, Cluster):
        raise InputError(f"engine {engine.cluster}: is no Dask cluster")
    return made
