"""Variables in containerlab files: what each form gives, what notes say, and what is refused."""

from __future__ import annotations

import pytest

from minigts.errors import InputError
from minigts.formats.detect import read
from minigts.formats.variables import TooLong, Unclosed, substitution

ENVIRONMENT = {"SET": "value", "EMPTY": "", "OTHER": "a b"}
FORMS = {
    "$SET ${SET} x": "value value x",
    "$NONE ${NONE} $EMPTY": "$NONE $NONE $EMPTY",
    "${NONE:-text} ${EMPTY:-text} ${SET:-text}": "text text value",
    "${NONE:=3} ${EMPTY:=3} ${SET:=3}": "3 3 value",
    "${NONE-text} ${EMPTY-text} ${SET-text}": "text $EMPTY value",
    "${NONE=text} ${SET=text}": "text value",
    "${NONE+text}|${EMPTY+text}|${SET+text}|${SET:+text}|${NONE:+text}": "|text|text|text|",
    "${NONE:-$SET} ${NONE:-a$SET} ${NONE:-$SET/b}": "value a$SET /b",
    "${NONE:-} ${NONE:-a-b=c} ${NONE:--a}": "$NONE a-b=c a",
    "${NONE:-${SET}} ${NONE:-/a/b:c}": "{SET} /a/b:c",
    "P4$$w0rd $$SET $1 ${1} ${} $ $.": "P4$w0rd $SET $1 ${1} ${} $ $.",
    "${SET}${NONE:-é}": "valueé",
}
"""What the library that containerlab uses makes of each, as it was run (github.com/hellt/envsubst 0.2,
`StringNoReplace(…, false, false, true, true)`)."""
CLAB = """name: t
topology:
  nodes:
    a: {{kind: linux, image: "debian:${{TAG:=3}}", env: {{WORD: {word}}}}}
    b: {{kind: linux}}
  links: [{{endpoints: ["a:eth1", "b:eth1"], mtu: 1500}}]
"""


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_what_it_gives_in_containerlab(form: str) -> None:
    assert substitution(form, ENVIRONMENT, 1000).text == FORMS[form]


@pytest.mark.parametrize("text", ["a\n${X", "a\n${X:-b\n}", "\n${X:}\n"])
def test_what_is_not_closed_in_its_line_is_an_error_there(text: str) -> None:
    with pytest.raises(Unclosed) as caught:
        substitution(text, ENVIRONMENT, 1000)
    assert caught.value.line == 2


def test_values_make_no_file_without_end() -> None:
    with pytest.raises(TooLong, match="more than 1000 characters"):
        substitution("$BIG" * 100, {"BIG": "b" * 100}, 1000)


def test_an_import_says_what_it_has_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAG", raising=False)
    monkeypatch.setenv("MINIGTS_TEST_WORD", "secret")
    network = read(CLAB.format(word="${MINIGTS_TEST_WORD:-plain}"), "t.clab.yml")
    assert network.machines[0].environment == (("WORD", "secret"),)
    notes = [note for note in network.notes if note.startswith("$")]
    assert notes == [
        "$MINIGTS_TEST_WORD of the file: what your environment has is filled in, as by containerlab",
        "$TAG of the file: your environment has none, so the file's own text is filled in: '3'",
    ]
    monkeypatch.delenv("MINIGTS_TEST_WORD")
    network = read(CLAB.format(word="${MINIGTS_TEST_WORD:-plain}"), "t.clab.yml")
    assert network.machines[0].environment == (("WORD", "plain"),)


def test_a_variable_without_value_and_default_is_named() -> None:
    says = r"t\.clab\.yml:4: .*env WORD .*: \$MINIGTS_TEST_NONE has no value in your environment"
    with pytest.raises(InputError, match=says):
        read(CLAB.format(word="${MINIGTS_TEST_NONE}"), "t.clab.yml")


def test_one_that_is_not_closed_is_named_with_its_line() -> None:
    with pytest.raises(InputError, match=r"t\.clab\.yml:2: `\$\{` has no `\}` in its line"):
        read(f"# what\n# costs ${{TAG\n{CLAB.format(word='x')}", "t.clab.yml")


def test_other_files_have_no_variables() -> None:
    text = "defaults: {device: linux}\nnodes: [a, b]\nlinks: [a-b]\nmessage: costs 5$ ${SET\n"
    assert [machine.name for machine in read(text, "t.yml").machines] == ["a", "b"]
