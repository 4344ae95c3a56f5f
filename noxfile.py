"""The developer's one command, `nox`: lint, types, unit, live. Each session uses the locked tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "unit", "live"]
nox.options.reuse_existing_virtualenvs = True

UNIT = ("tests/unit", "tests/contract", "tests/topologies", "tests/browser")
LIVE = ("tests/lab", "tests/live", "--all-tests", "--require=uml", "--require=mininet")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
VAGRANT = ("tests/live/test_vagrant.py", "tests/live/test_vagrantfile.py", "--require=vagrant")


def install(session: nox.Session) -> None:
    """The locked packages, with their hashes checked."""
    session.install("--require-hashes", "-r", "requirements-dev.lock")


def shell_files() -> list[str]:
    """Every shell script of the project, told by its first line."""
    places = [Path("minigts"), *Path(".ci").rglob("*"), *Path("provision").rglob("*"), *Path("bench").rglob("*")]
    return sorted(str(place) for place in places if place.is_file() and is_shell(place))


def is_shell(file: Path) -> bool:
    """Whether it starts with `#!/usr/bin/env bash`, `#!/bin/sh` or the like, or names a dialect for shellcheck."""
    with file.open("rb") as opened:
        first = opened.readline()
    return (first.startswith(b"#!") and first.rstrip().endswith(b"sh")) or first.startswith(b"# shellcheck shell=")


@nox.session
def lint(session: nox.Session) -> None:
    """Style of Python and shell, and every file's licence. Needs the system packages shellcheck and shfmt."""
    install(session)
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    session.run("shellcheck", *shell_files(), external=True)
    session.run("shfmt", "-i", "2", "-d", *shell_files(), external=True)
    session.run("reuse", "lint", "--lines")


@nox.session
def types(session: nox.Session) -> None:
    """Static types, strictly."""
    install(session)
    session.run("mypy")


@nox.session
def unit(session: nox.Session) -> None:
    """Tests that need no root and no hosts, and the contract of every provider."""
    install(session)
    session.run("pytest", *(session.posargs or UNIT))


@nox.session
def live(session: nox.Session) -> None:
    """Tests on real hosts; a machine that cannot run them fails here instead of skipping."""
    install(session)
    session.run("pytest", *(session.posargs or LIVE))


@nox.session(python=PYTHONS)
def plans(session: nox.Session) -> None:
    """`nox -s plans`: every Python that is here makes the same plans, byte for byte, as the first of them."""
    session.install("--require-hashes", "-r", "requirements.lock")
    made = Path(session.cache_dir) / "plans"
    made.mkdir(parents=True, exist_ok=True)
    for topology in sorted(Path("topologies").glob("*.yaml")):
        argv = ("python", "-P", "-m", "minigts", "plan", "--json", str(topology))
        said = session.run(*argv, silent=True, env={"PYTHONPATH": "tools"})
        first = made / f"{topology.stem}.json"
        if session.python == PYTHONS[0] or not first.exists():
            first.write_text(str(said), encoding="utf-8")
        elif first.read_text(encoding="utf-8") != said:
            session.error(f"{topology}: Python {session.python} makes another plan than {first}")


@nox.session
def audit(session: nox.Session) -> None:
    """`nox -s audit`: known vulnerabilities of what is locked, by pip-audit and cargo audit. It fails where no database
    answers. For a machine without a network, MINIGTS_ADVISORIES names a directory with checkouts of
    pypa/advisory-database and rustsec/advisory-db.
    """
    folder = Path(os.environ["MINIGTS_ADVISORIES"]) if "MINIGTS_ADVISORIES" in os.environ else None
    session.install("pip-audit==2.10.1", "packaging", "pyyaml")
    audited = ("pip-audit", "--strict", "--disable-pip", "--require-hashes", "-r", "requirements.lock")
    audited += ("-r", "requirements-dev.lock", "-r", "requirements-agents.lock")
    if folder is None:
        session.run(*audited)
    else:
        own = ("python", "tests/advisories.py", str(folder / "advisory-database"))
        session.run(*own, *audited, "-s", "osv", "--osv-url", "URL")
    if shutil.which("cargo-audit") is None:
        session.error("cargo-audit is not installed: cargo install --locked cargo-audit, or Debian's package of it")
    offline = () if folder is None else ("--db", str(folder / "advisory-db"), "--no-fetch", "--stale")
    for lock in sorted(Path("provision").glob("*/Cargo.lock")):
        session.run("cargo-audit", "audit", "--deny", "warnings", "--file", str(lock), *offline, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """`nox -s docs`: the documentation as a site, in site/; a link that leads nowhere fails."""
    session.run("docs/site/build", *session.posargs, external=True)


@nox.session
def vagrant(session: nox.Session) -> None:
    """Tests on virtual machines; as root, they get a libvirt of their own. Slow without KVM, so only when asked for."""
    install(session)
    session.run("./minigts", "libvirt", "start", external=True)
    try:
        session.run("pytest", *(session.posargs or VAGRANT))
    finally:
        session.run("./minigts", "libvirt", "stop", external=True)
