"""An incident as a lesson: a student's folder with a page, a topology and a file for answers; what a check says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from minigts import paths
from minigts.arena import boards
from minigts.arena.families import FAMILIES, Incident
from minigts.arena.scores import ArenaAnswer, ArenaScore, NamedFault
from minigts.arena.transcript import Transcript
from minigts.errors import InputError
from minigts.language.fields import Strict, text
from minigts.language.problems import Finding
from minigts.language.source import read_text
from minigts.language.tree import read_tree
from minigts.language.validation import read_model
from minigts.lessons.folder import ANSWERS, LANGUAGE, PAGE, TOPOLOGY, make

_MOST_FAULTS = 10
_PAGE = """\
# Incident {name}: {about}

Something may be wrong in the lab of `topology.yaml`: a user will complain. There may be one fault, several, or none.

1. Bring the lab up: `minigts up topology.yaml`. Have a look at it as it should be.
2. Hear the complaint: `minigts lesson {name} break`. `minigts arena ticket` tells it again, with the kinds of faults
   that there are.
3. Find out what it is and on which host: `minigts arena call look host=HOST what=routes`,
   `minigts arena call ping source=HOST target=HOST`, `minigts arena call run host=HOST command='ip rule'`.
4. Mend it on that host, by such a call of `run`, and break nothing else. Your transcript has these calls alone; your
   teacher can play them again, so what you do by `minigts exec` is not seen there.
5. Write what it was into `answers.yaml`, and see what is right: `minigts lesson {name} check`. Once all is, your
   transcript is in this folder, for your teacher. Then `minigts down`.
"""
_ASKED = """\
# Each fault as KIND@HOST, such as no-route@bra, in a line of its own after a dash; [] says that nothing is wrong.
answers:
"""


class _IncidentAnswers(Strict):
    answers: list[Annotated[str, text("a fault", 80, one_line=True)]] | None


def start(incident: Incident, folder: Path) -> tuple[str, ...]:
    """Make a student's folder, which must not exist; the names of its files. Raises InputError."""
    content = {
        PAGE: _PAGE.format(name=incident.name, about=FAMILIES[incident.family].about),
        TOPOLOGY: boards.topology_of(incident.board, incident.lab),
        ANSWERS: _ASKED,
    }
    make(folder, content)
    return tuple(content)


def find(incident: Incident, given: Path | None) -> Path:
    """The folder of an incident: `given`; None: the working directory, or that of the lab's name in it. Raises
    InputError."""
    candidates = [given] if given is not None else [Path(), Path(incident.lab)]
    wanted = boards.topology_of(incident.board, incident.lab)
    for folder in candidates:
        with suppress(OSError, UnicodeDecodeError):
            if paths.read_whole(folder / TOPOLOGY, LANGUAGE.largest_bytes).decode() == wanted:
                return folder
    begin = f"begin with: minigts lesson {incident.name} start"
    raise InputError(f"{candidates[-1]}: no folder of incident {incident.name} as it was handed out; {begin}")


def read_answer(folder: Path) -> ArenaAnswer:
    """The answer of a student's folder. Raises InputError where there is none yet."""
    file = folder / ANSWERS

    def check(found: _IncidentAnswers) -> Iterator[Finding]:
        for number, each in enumerate(found.answers or []):
            what, sign, where = each.partition("@")
            if not (what and sign and where):
                yield ("answers", number), f"{each[:60]!r} is no fault: write KIND@HOST, as no-route@bra"
        if len(found.answers or []) > _MOST_FAULTS:
            yield ("answers",), f"an answer has at most {_MOST_FAULTS} faults"

    read = read_model(read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE), str(file), _IncidentAnswers, check)
    if read.answers is None:
        raise InputError(f"{file}: no answer is there yet; [] says that nothing is wrong")
    return ArenaAnswer(faults=tuple(map(parse_fault, read.answers)))


def parse_fault(written: str) -> NamedFault:
    """The fault of `no-route@bra`. Raises InputError."""
    what, sign, where = written.partition("@")
    if not (what and sign and where):
        raise InputError(f"{written[:60]!r} is no fault: write KIND@HOST, as no-route@bra")
    return NamedFault(what=what, where=where)


def keep(folder: Path, whole: Transcript, incident: Incident) -> str:
    """Write the transcript of a solved incident into the student's folder; the file's name."""
    name = f"{incident.lab}.jsonl"
    paths.write_for_user(folder / name, whole.text)
    return name


def verdict_lines(found: ArenaScore) -> list[str]:
    """What a score says, a line for each share, one for complaints, and one for all."""
    shares = (
        ("wrong at all", found.detected),
        ("where", found.located),
        ("what", found.named),
        ("mended", found.mended),
    )
    return [
        *(f"{'ok  ' if share == 1 else 'no  '}{name}: {share:g}" for name, share in shares),
        f"{'no  ' if found.left or found.broken else 'ok  '}complaints: {found.left} left, {found.broken} new",
        f"points: {found.points:g}, by {found.calls} calls and {found.lab_s:g} s of the lab: "
        f"{'solved' if found.solved else 'not solved'}",
    ]
