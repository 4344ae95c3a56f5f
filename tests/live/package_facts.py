"""What a package of minigts says of itself: printed by an installed one, computed by the checkout's beside it."""

from __future__ import annotations

import json
import sys

from minigts import paths
from minigts.artifacts import built
from minigts.overlays import catalogue
from minigts.providers.uml import clock, full_kernel, image
from minigts.providers.vagrant import box


def cache_keys() -> dict[str, str]:
    """What the cache knows each thing by that is built from `provision/`."""
    kernel, virtual_clock = full_kernel.product(), clock.product()
    programs = sorted((paths.project_root() / "provision" / "overlays").glob("*/build"))
    return {
        "image": image.key(),
        "kernel": built.key(kernel.folder, kernel.parts),
        "clock": built.key(virtual_clock.folder, virtual_clock.parts),
        "box": box.key(),
        **{f"programs of {recipe.parent.name}": built.key(recipe) for recipe in programs},
    }


if __name__ == "__main__":
    facts = {"root": str(paths.project_root()), "overlays": catalogue.known(), "keys": cache_keys()}
    json.dump(facts, sys.stdout)
