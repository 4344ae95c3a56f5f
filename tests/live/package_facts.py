"""What a package of minigts says of itself: printed by an installed one, computed by the checkout's beside it."""

from __future__ import annotations

import json
import sys

from minigts import paths
from minigts.artifacts import overlay_programs
from minigts.overlays import catalogue
from minigts.providers.uml.build import clock_build, image, kernel_build
from minigts.providers.vagrant import box


def cache_keys() -> dict[str, str]:
    """What the cache knows each thing by that is built from `provision/`."""
    kernel, virtual_clock = kernel_build.product(), clock_build.product()
    programs = sorted((paths.project_root() / "provision" / "overlays").glob("*/build"))
    return {
        "image": image.key(),
        "kernel": overlay_programs.key(kernel.folder, kernel.parts),
        "clock": overlay_programs.key(virtual_clock.folder, virtual_clock.parts),
        "box": box.key(),
        **{f"programs of {recipe.parent.name}": overlay_programs.key(recipe) for recipe in programs},
    }


if __name__ == "__main__":
    facts = {"root": str(paths.project_root()), "overlays": catalogue.known_names(), "keys": cache_keys()}
    json.dump(facts, sys.stdout)
