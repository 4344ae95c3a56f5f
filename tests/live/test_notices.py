"""What Debian says of its packages for a release: the sources of three, and their copyright files."""

from __future__ import annotations

import pytest

from minigts.providers.uml.build import image
from minigts.providers.uml.build.package_lock import read
from minigts.release import notices
from minigts.release.notices import DebianPackage

pytestmark = [pytest.mark.nightly, pytest.mark.touched("provision/notices", "tools/minigts/release/notices.py")]


@pytest.mark.timeout(1200)
def test_debian_says_sources_and_copyrights() -> None:
    built = image.present()
    if built is None:
        pytest.skip("no image is built here")
    versions = read(built.lock).versions
    packages = [DebianPackage("image", name, versions[name]) for name in ("bash", "libc6", "user-mode-linux")]
    said = notices.ask_debian(packages, lambda _text: None)
    sources = {name: [source for source, _ in found] for (name, _), found in said.sources.items()}
    assert sources["bash"] == ["bash"] and sources["libc6"] == ["glibc"]
    assert set(sources["user-mode-linux"]) == {"user-mode-linux", "linux"}, "Linux is built into it"
    assert "Free Software Foundation" in said.copyrights["bash"]
    text = notices.notices_text(packages, said)
    assert "GNU GENERAL PUBLIC LICENSE" in text and "user-mode-linux" in text
