"""Builds the site from the project's pages, and fails where a link leads nowhere. docs/site/build starts it.

The pages stay where they are: they are copied into a directory of their own, beside those that reference.py makes, and
Sphinx reads them there. A page that no part of the site lists is a fault, too.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from docs.site import reference
from minigts import paths
from minigts.experiments import run_folders

PROJECT = reference.PROJECT
SETTINGS = PROJECT / "docs" / "site"
SITE = PROJECT / paths.SITE
MAN = "man"
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
OUTSIDE += ("bench/README.md", "provision/kernel/README.md")
"""Pages that lie elsewhere than in docs/."""
PARTS = {
    "Learn": ("README docs/install docs/lessons/README docs/class docs/assignments/README docs/own-programs"),
    "Do": (
        "docs/README docs/lab docs/serve docs/experiments docs/classics docs/testing docs/python docs/results "
        "docs/campaigns docs/explore docs/suites docs/agents docs/arena docs/kubernetes docs/policy "
        "docs/which-network-for-my-cluster docs/routing-protocols docs/internet docs/satellites docs/kernels "
        "docs/netlab docs/imports docs/gts docs/light-hosts docs/vagrant"
    ),
    "Look up": (
        "reference/verbs docs/topology-language reference/topology docs/experiment-language reference/experiment "
        "reference/policy reference/python docs/overlays docs/providers docs/glossary CHANGELOG"
    ),
    "Understand": (
        "docs/virtual-time docs/evidence/README docs/methods docs/decisions/README CONTRIBUTING SECURITY "
        "CODE_OF_CONDUCT bench/README provision/kernel/README"
    ),
}
"""The four parts of the site, each with its pages in their order."""
BELOW = {
    "docs/lessons/README": "docs/lessons/[0-9]-* docs/lessons/[0-9][0-9]-*",
    "docs/class": "docs/examples/own-lesson/*",
    "docs/assignments/README": "docs/assignments/*/README",
    "docs/suites": "docs/reports/*",
    "docs/evidence/README": (
        "docs/evidence/trust docs/evidence/trust-measured docs/evidence/virtual-time docs/evidence/validation "
        "docs/evidence/faults docs/evidence/documents docs/evidence/figure-16 docs/evidence/corrections "
        "docs/evidence/reach docs/evidence/safety docs/evidence/effects docs/evidence/performance"
    ),
}
"""Pages that stand below another one in the bar at the side."""
FRONT = SETTINGS / "front.md"
"""The site's first page, with links from where it lies."""
LISTED = ("reference/verbs/*", "docs/decisions/[a-z0-9]*", "provision/overlays/*/README")
"""Pages that another page lists, and the bar at the side does not."""
TITLES = {"README": "What minigts is", "docs/README": "By your task"}
"""Pages whose titles say too little in a list."""

LINK = re.compile(r"\]\((?P<file>[^)#:\s]+)(?:#[^)\s]*)?\)")


def pages() -> list[Path]:
    """All pages that are parts of the site, but for those that are made."""
    found = {PROJECT / name for name in OUTSIDE} | {*(PROJECT / "docs").rglob("*.md")} - {FRONT}
    return sorted(found | {*(PROJECT / "provision" / "overlays").glob("*/README.md")})


def linked(page: Path) -> set[Path]:
    """The project's files that a page links to or shows."""
    targets = ((page.parent / link["file"]).resolve() for link in LINK.finditer(page.read_text(encoding="utf-8")))
    return {target for target in targets if target.is_file() and target.is_relative_to(PROJECT)}


def without_folders(text: str, page: Path) -> str:
    """The text with links to folders as words: a site has none."""

    def said(link: re.Match[str]) -> str:
        return link["words"] if (page.parent / link["file"]).is_dir() else link[0]

    return re.sub(r"\[(?P<words>[^\]]*)\]\((?P<file>[^)#:\s]+)\)", said, text)


def lay_out(source: Path) -> None:
    """Copy all pages into `source`, with what they link to, and write the pages that are made."""
    for page in pages():
        for target in {page, *linked(page)}:
            at = source / target.relative_to(PROJECT)
            at.parent.mkdir(parents=True, exist_ok=True)
            if target.suffix == ".md":
                at.write_text(without_folders(target.read_text(encoding="utf-8"), target), encoding="utf-8")
            else:
                shutil.copyfile(target, at)
    made = source / "reference"
    (made / "verbs").mkdir(parents=True)
    for name, text in reference.verb_pages():
        (made / "verbs" / f"{name}.md").write_text(text, encoding="utf-8")
    (made / "verbs.md").write_text(reference.verb_index(), encoding="utf-8")
    for language in reference.LANGUAGES:
        (made / f"{language}.md").write_text(reference.keys_page(language), encoding="utf-8")
    (made / "python.md").write_text(reference.python_page(), encoding="utf-8")
    for page in (page for pattern in LISTED for page in source.glob(f"{pattern}.md")):
        page.write_text(f"---\norphan: true\n---\n{page.read_text(encoding='utf-8')}", encoding="utf-8")
    for page, patterns in BELOW.items():
        with (source / f"{page}.md").open("a", encoding="utf-8") as file:
            file.write("\n".join(["", *toctree([f"/{each}" for each in matching(patterns, source)]), ""]))
    (source / "index.md").write_text(index(source), encoding="utf-8")


def matching(patterns: str, source: Path) -> list[str]:
    """The pages that fit the patterns, without `.md`, in the order of the patterns."""
    names = []
    for pattern in patterns.split():
        found = sorted(source.glob(f"{pattern}.md"))
        if not found:
            raise SystemExit(f"docs/site/build_site.py: there is no page {pattern}")
        names += [str(page.relative_to(source).with_suffix("")) for page in found]
    return list(dict.fromkeys(names))


def pages_of(part: str, source: Path) -> list[str]:
    """The pages of a part, each followed by those below it, without `.md`."""
    return [name for page in matching(PARTS[part], source) for name in (page, *matching(BELOW.get(page, ""), source))]


def toctree(listed: Iterable[str], caption: str = "") -> list[str]:
    """The lines by which Sphinx takes pages into the bar at the side; the page itself does not show them."""
    options = [":hidden:", ":titlesonly:", *([f":caption: {caption}"] if caption else [])]
    return ["```{toctree}", *options, "", *listed, "```"]


def front() -> str:
    """The first page's text, with links from the project's directory."""
    text = FRONT.read_text(encoding="utf-8")
    return re.sub(r"\]\((\.\.[^)#]+)\)", lambda link: f"]({_from_project(link[1])})", text)


def _from_project(file: str) -> Path:
    return (SETTINGS / file).resolve().relative_to(PROJECT)


def index(source: Path) -> str:
    lines = front().splitlines()
    for part, patterns in PARTS.items():
        listed = matching(patterns, source)
        lines += ["", *toctree((f"{TITLES[page]} <{page}>" if page in TITLES else page for page in listed), part)]
    return "\n".join([*lines, ""])


def build(source: Path, built: Path, builder: str) -> int:
    """Sphinx's exit code. Every warning is an error."""
    from sphinx.cmd.build import build_main  # noqa: PLC0415 -- tests look at this file without it

    argv = ["-b", builder, "-W", "--keep-going", "-q", "-c", str(SETTINGS), "-j", "auto"]
    return build_main([*argv, "-d", str(source.parent / "doctrees"), str(source), str(built)])


def main(words: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(prog="docs/site/build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="follow all links, and write nothing")
    given = parser.parse_args(list(words))
    with tempfile.TemporaryDirectory(prefix="minigts-site-") as place:
        source, site = Path(place).resolve() / "source", Path(place).resolve() / "site"
        source.mkdir()
        lay_out(source)
        if given.check:
            return build(source, site, "dummy")
        if code := build(source, site, "html"):
            return code
        (source / "reference" / "verbs.md").write_text(reference.verb_index(linked=False), encoding="utf-8")
        if code := build(source, site / MAN, "man"):
            return code
        (site / paths.SITE_OF).write_text(f"{run_folders.commit()}\n", encoding="utf-8")
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.copytree(site, SITE, ignore=shutil.ignore_patterns(".buildinfo", ".doctrees", "objects.inv"))
    print(SITE / "index.html")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
