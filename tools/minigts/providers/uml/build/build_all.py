"""The parts that are built once for labs in virtual time: the hosts' image, their full kernel, and the clock.

Labs in real time need only the image.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from minigts.artifacts import builders
from minigts.artifacts.build import WORK_DIRECTORY, Product, compiling, one_at_a_time
from minigts.artifacts.sources import Wanted
from minigts.errors import EnvironmentLacks, InputError
from minigts.machine import times_seen
from minigts.machine.progress import Progress
from minigts.providers.uml.build import clock_build, image, kernel_build
from minigts.providers.uml.build.clock_build import ClockBuild
from minigts.providers.uml.build.image import Image, Room
from minigts.providers.uml.build.kernel_build import FullKernel

T = TypeVar("T")

DURATION = "some ten minutes on two processors"
"""How long the build takes: the kernel takes longest, and the others are built meanwhile."""
ALL = 2
"""The number of compiled products."""
MEMORY_MB = 1600
"""The most memory that the compilers and the host that finishes the image need together on two processors."""
REAL_TIME = "in real time they can: --time real"


@dataclass(frozen=True)
class Parts:
    """The built parts for a lab in virtual time."""

    image: Image
    kernel: FullKernel
    clock: ClockBuild


def uncompiled_products() -> tuple[Product, ...]:
    """The products that are not compiled yet."""
    return tuple(each for each in (kernel_build.product(), clock_build.product()) if each.present() is None)


def room() -> tuple[Room, ...]:
    """The room that the missing products need together, one entry for each file system; none when nothing is missing.

    It includes the image's room if the image is missing, too.
    """
    products = uncompiled_products()
    if not products:
        return ()
    names = [each.name for each in products]
    needed_mb = {WORK_DIRECTORY: sum(each.work_mb for each in products)}
    if image.present() is None:
        names.append(image.NAME)
        for each in image.room():
            place = next((one for one in needed_mb if _is_one_disk(one, each.directory)), each.directory)
            needed_mb[place] = needed_mb.get(place, 0) + each.needed_mb
    return tuple(
        Room(place, needed, shutil.disk_usage(image.existing(place)).free >> 20, product_names(names))
        for place, needed in needed_mb.items()
    )


def missing() -> list[str]:
    """What this machine lacks to compile the missing products, one sentence each, without what it lacks for the image,
    which `image.missing` says."""
    if not uncompiled_products():
        return []
    if image.present() is None:
        if not all(each.enough for each in image.room()):
            return []
        return [str(each) for each in room() if not each.enough]
    return [*(str(each) for each in room() if not each.enough), *image.missing_to_build()]


def lack_in_words(lacks: Sequence[str]) -> str:
    """The message for a machine that cannot build the parts for virtual time."""
    return f"labs cannot be in virtual time here: {'; '.join(lacks)}\n{REAL_TIME}"


def product_names(names: Sequence[str]) -> str:
    """The names as a phrase such as `the full kernel and the clock of virtual time`."""
    *others, last = (f"the {name}" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def ensure(progress: Progress, meanwhile: Callable[[], object] | None = None) -> Parts:
    """All parts; missing ones are built now, in parallel. Raises EnvironmentLacks and HostFailed.

    Where the kernel is among them, `meanwhile` is called in this thread once the image is there: labs in real time can
    be brought up then, and the kernel takes minutes more. If only the image can be built, the error points to real
    time.
    """
    say, products = one_at_a_time(progress), uncompiled_products()
    whole, began = len(products) == ALL and image.present() is None, time.monotonic()
    if products and image.present() is None:
        say(
            f"building {product_names([*(each.name for each in products), image.NAME])}, once, side by side: {DURATION}"
        )
        say("labs in real time need only the image: minigts up TOPOLOGY --time real, in a minute or two")

    def image_first() -> Image:
        made = image.ensure(say)
        if meanwhile is not None and kernel_build.present() is None:
            meanwhile()
        return made

    ready = _compile(products, say, image_first)
    if whole:
        times_seen.add(builders.BUILDING, builders.PARTS, time.monotonic() - began)
    return Parts(ready, kernel_build.ensure(say), clock_build.ensure(say))


def compile_all(progress: Progress, wanted: Wanted | None = None) -> FullKernel:
    """Compile the full kernel, from `wanted` if that is given, and the clock, without the image; return the kernel.
    Raises EnvironmentLacks, and InputError when a kernel from another source is built already."""
    say = one_at_a_time(progress)
    products = uncompiled_products()
    if wanted is not None:
        _require_fit(kernel_build.present(), wanted)
        kernel = kernel_build.product()
        products = tuple(
            replace(each, settings=wanted.settings) if each.store == kernel.store else each for each in products
        )
    _compile(products, say, lambda: None)
    return kernel_build.ensure(say)


def _require_fit(present: FullKernel | None, wanted: Wanted) -> None:
    if present is not None and present.version != wanted.version:
        raise InputError(
            f"the full kernel in the cache is of {present.version}\n"
            f"to build one of {wanted.source}: minigts kernel remove, and then this again"
        )


def _compile(products: Sequence[Product], say: Progress, meanwhile: Callable[[], T]) -> T:
    """Compile the products while `meanwhile` runs, and return its result."""
    lacks = missing()
    if lacks:
        raise EnvironmentLacks(lack_in_words(lacks))
    with compiling(products, say) as failures:
        result = meanwhile()
    if failures and isinstance(failures[0], EnvironmentLacks):
        raise EnvironmentLacks(lack_in_words([str(failures[0])])) from failures[0]
    if failures:
        raise failures[0]
    return result


def _is_one_disk(one: Path, other: Path) -> bool:
    return image.existing(one).stat().st_dev == image.existing(other).stat().st_dev
