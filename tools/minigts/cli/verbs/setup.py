"""`minigts setup`: set up a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.verbs import PROJECT, Verb
from minigts.errors import EnvironmentLacks, InputError

if TYPE_CHECKING:
    from minigts.providers.base import Exports

verb = Verb(PROJECT, 460)


@verb.command()
def setup(
    provider: Annotated[
        str,
        typer.Argument(
            metavar="PROVIDER", help="The provider's name, such as vagrant.", autocompletion=completion.providers
        ),
    ],
    built: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE|URL",
            help="Take what is built from a file of a release or of `minigts image export`, or from its address.",
        ),
    ] = None,
    sha256: Annotated[
        str | None,
        typer.Option(
            metavar="SUM", help="The SHA-256 sum that this file must have; an address needs it, or --public-key."
        ),
    ] = None,
    public_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="A public key of minisign, or its file: the sum is taken from SHA256SUMS beside the file, which that "
            "key must have signed.",
        ),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Put what is built into the cache that all users of this machine share, MINIGTS_SHARED_CACHE, and let "
            "them read all that is there. Default of that variable: /var/cache/minigts.",
        ),
    ] = False,
    key: Annotated[
        bool,
        typer.Option(
            "--key",
            help="Set nothing up; print a word that is another one once other parts would be built: a cache's key.",
        ),
    ] = False,
) -> None:
    """Set up a provider: install its system packages, build what its hosts start from, check this machine.

    With --from nothing is built: each file's sum is checked, and the parts must be of this minigts' own recipes. They
    run on this machine, so take them from people whom you trust.

    Example:  minigts setup vagrant

    Example:  minigts setup uml --from minigts-1.0.0-parts-x86_64.tar.gz

    Example:  minigts setup uml --shared
    """
    from minigts import paths
    from minigts.artifacts import shared_cache
    from minigts.providers import DEFAULT, registry, system_packages
    from minigts.providers.base import Exports, Prepares

    chosen = registry.make(provider, paths.state_root(), registry.best_time(provider))
    _require_options_that_fit(built, sha256, public_key, key=key, shared=shared)
    if key:
        if not isinstance(chosen, Exports):
            raise InputError(f"--key: provider {provider} has no built parts; provider {DEFAULT} has")
        typer.echo(chosen.parts_key())
        return
    if shared:
        shared_cache.choose()
    if built is not None:
        if not isinstance(chosen, Exports):
            raise InputError(f"--from: provider {provider} takes no built parts from a file; provider {DEFAULT} does")
        _unpack(chosen, built, sha256, public_key)
    packages = system_packages.lacking((DEFAULT, provider))
    needs = built is None and not (isinstance(chosen, Exports) and chosen.is_built())
    if packages and paths.is_installed() and needs:  # a checkout's launcher has done so
        system_packages.install(packages)
    lacking = chosen.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    if isinstance(chosen, Prepares):
        with console.progress() as say:
            chosen.prepare(say)
    if shared:
        with console.progress() as say:
            shared_cache.open_to_all(say)
        console.note(f"all users of this machine can read {paths.cache_root()}")
    console.note(f"provider {provider} can run here")


def _require_options_that_fit(
    built: str | None, sha256: str | None, public_key: str | None, *, key: bool, shared: bool
) -> None:
    if built is None and (sha256 is not None or public_key is not None):
        option = "--public-key" if sha256 is None else "--sha256"
        raise InputError(f"{option} is about the file that --from names; add --from FILE")
    if sha256 is not None and public_key is not None:
        raise InputError("--sha256 and --public-key both say which sum the file must have; leave one out")
    if key and (built is not None or shared):
        raise InputError("--key sets nothing up, so --from and --shared do not go with it")


def _unpack(chosen: Exports, built: str, sha256: str | None, public_key: str | None) -> None:
    if public_key is not None:
        from minigts.release import signature

        sha256 = signature.sum_beside(built, public_key)
    with console.progress() as say:
        taken = chosen.unpack(built, sha256, say)
    console.note(f"imported {', '.join(taken)}" if taken else "everything in it is here already")
