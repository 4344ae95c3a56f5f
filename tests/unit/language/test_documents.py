"""JSON from elsewhere, within bounds of size, of entries and of memory: alone, and through what reads it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from minigts.errors import InputError
from minigts.foreign import Foreign
from minigts.language import documents
from minigts.language.documents import Bounds, Unreadable
from minigts.providers.agent import protocol
from minigts.results import bundle, crate
from minigts.results.folder import line_of, read_json

PACKAGE = Path(documents.__file__).parents[1]
FEW = Bounds(elements=5, bytes=1000)
MB = 1 << 20


@pytest.mark.parametrize(
    "text",
    [
        "[1,2,3]",
        '{"a": [1, 2], "b": 3}',
        '["a,b,c,[[[,{{{,,,,,,", "\\",,,,,,"]',
        '{"a,,,,,,,,": "[[[[[[[[["}',
    ],
)
def test_what_is_in_strings_is_not_counted(text: str) -> None:
    assert documents.document(text, FEW) == json.loads(text)
    assert documents.document(text.encode(), FEW) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1,2,3,4,5]", "holds more than 5 entries"),
        ("[{},{},{}]", "entries"),
        ("[[[[[", "entries"),
        ('"' + 1000 * "a" + '"', "larger than"),
        ("[NaN]", "NaN is no number"),
        ("[Infinity]", "Infinity is no number"),
        ("[1,]", "is not JSON"),
        ("", "is not JSON"),
        ("[" + 5000 * "1" + "]", "larger"),
    ],
)
def test_more_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        documents.document(text, FEW)


@pytest.mark.parametrize("deep", [100_000, 1_000_000])
def test_what_is_nested_too_deep_is_refused(deep: int) -> None:
    with pytest.raises(Unreadable, match=r"nested too deep|is not JSON"):
        documents.document("[" * deep, Bounds(elements=10_000_000))


def test_what_is_no_text_is_told_with_its_line() -> None:
    with pytest.raises(Unreadable, match="UTF-8") as refused:
        documents.document(b"[1,\n\xff]")
    assert refused.value.line == 2


def test_a_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(Unreadable):
        documents.document(f"[{5000 * '1'}]")


@pytest.mark.parametrize("text", ["1e999", '{"rows": -1e400}', "[0, 123456789e305]"])
def test_a_number_that_would_be_infinite_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="is too large a number"):
        documents.document(text)


def test_a_strangers_document_is_read_as_any_other() -> None:
    assert documents.document(Foreign('{"a": [1, 2.5]}')) == {"a": [1, 2.5]}
    with pytest.raises(Unreadable, match="is larger than"):
        documents.document(Foreign("[" * 2000), FEW)


def test_one_wide_character_does_not_double_what_a_text_takes() -> None:
    text = '["' + "a" * 900 + "\N{GRINNING FACE}" + '"]'
    with pytest.raises(Unreadable, match="memory"):
        documents.document(text.encode(), Bounds(bytes=950))


class Names(BaseModel):
    names: dict[str, int]


def test_a_model_is_read_within_them() -> None:
    assert documents.model('{"names": {"a": 1}}', Names, FEW).names == {"a": 1}
    with pytest.raises(Unreadable):
        documents.model('{"names": {"a": 1, "b": 2, "c": 3, "d": 4}}', Names, FEW)
    with pytest.raises(ValueError, match="names"):
        documents.model("{}", Names, FEW)


MEASURED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from minigts.language import documents
text = Path(sys.argv[2]).read_bytes()
Path("/proc/self/clear_refs").write_text("5")
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
began = time.process_time()
try:
    documents.document(text, documents.Bounds(elements=10_000, bytes=64 << 20))
except documents.Unreadable:
    pass
print((peak() - before) // 1024, time.process_time() - began)
"""


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("{},", 2_000_000),
        ('{"a":[]},', 3_300),
        ('"\\\\",', 1_200_000),
        ('\\"', 3_000_000),
        ('"', 6_000_000),
        ("[", 6_000_000),
        ("1.5,", 9_990),
    ],
)
def test_no_document_takes_more_than_a_multiple_of_its_size(unit: str, times: int, tmp_path: Path) -> None:
    """6 MB at most: three times its size, and for 10,000 entries some MB. Before, 30 MB of `{},` took 1.5 GB."""
    file = tmp_path / "bomb.json"
    file.write_text("[" + unit * times + "0]")
    argv = [sys.executable, "-c", MEASURED, str(PACKAGE.parent), str(file)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    peak_mb, took_s = map(float, said.stdout.split())
    assert peak_mb <= 3 * file.stat().st_size / MB + 8
    assert took_s < 10


@pytest.mark.parametrize("body", ["{}," * 9_000_000, '{"@id":"a"},' * 2_000_000], ids=["nothing", "names"])
def test_a_bundle_s_list_that_unfolds_is_refused(body: str, tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        made.writestr(crate.METADATA, '{"@graph":[],"x":[' + body + "0]}")
    assert file.stat().st_size < 400_000
    with pytest.raises(InputError, match=r"entries|larger|more than"), bundle.unpack(file, tmp_path):
        pass


def test_a_results_file_says_how_many_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" + "1," * 1_000_001 + "1]")
    with pytest.raises(InputError, match=r"a\.json: cannot be read: it holds more than 1000000 entries"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[]",
        b"7",
        b'{"code": "0"}',
        b'{"code": 256}',
        b'{"code": -1}',
        b'{"code": 1e99}',
        b'{"code": true}',
        b'{"code": 0, "timeout": 1}',
        b"\xff",
        b"[" * 100_000,
        b'{"code": ' + b"1" * 5000 + b"}",
    ],
)
def test_a_host_that_lies_about_how_a_command_ended_is_not_believed(payload: bytes) -> None:
    with pytest.raises(protocol.Malformed, match="it said that a command has ended"):
        protocol.parse_end(payload)


def test_a_host_that_does_not_lie_is_believed() -> None:
    assert protocol.parse_end(b'{"code": 7, "timeout": true}') == (7, True)


@pytest.mark.parametrize("module", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_else_parses_json(module: Path) -> None:
    """But for two that look for a place in a text that has been read already, one of 4096 bytes, the word of 200 at the
    end of a command, which a guest's image reads, too, and a process that has bounds of its own."""
    allowed: dict[str, set[str]] = {
        "language/documents.py": {"json.loads", "kind.model_validate_json", "kind.validate_json"},
        "results/folder.py": {"json.JSONDecoder", "_Holder.model_validate_json"},
        "fidelity/shown_settings.py": {"json.JSONDecoder"},
        "machine/searching.py": {"json.loads"},
        "providers/agent/protocol.py": {"json.loads"},
    }
    tree = ast.parse(module.read_text(encoding="utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    words = ("json.loads", "json.load", "json.JSONDecoder", "from_json")
    parsing: set[Any] = {each for each in called if each in words or each.endswith("validate_json")}
    assert parsing <= allowed.get(str(module.relative_to(PACKAGE)), set())


NESTED = """{
 "a": [1,
  2,
  {"b": "c",
   "d": 4}
 ],
 "e": [
 ],
 "f": {"a": 0
  , "g": null}
}
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ((), 1),
        (("a",), 2),
        (("a", 0), 2),
        (("a", 1), 3),
        (("a", 2), 4),
        (("a", 2, "b"), 4),
        (("a", 2, "d"), 5),
        (("e",), 7),
        (("e", 0), 7),
        (("f", "a"), 9),
        (("f", "g"), 10),
        (("a", 7), 2),
        (("nobody",), 1),
        (("a", "b"), 2),
        (("f", 0), 9),
    ],
)
def test_what_stands_in_a_document_is_found_with_its_line(where: tuple[int | str, ...], line: int) -> None:
    assert line_of(NESTED, where) == line


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a": [1,', "[1 2]", "[" * 5000])
def test_half_a_document_has_the_line_that_is_nearest(text: str) -> None:
    assert line_of(text, ("a", 1)) == 1
