"""`run`: what a command is given, what it gives back, and how it is ended. The same for every provider."""

from __future__ import annotations

import hashlib
import random
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from live.program import until
from minigts.errors import CommandFailed, CommandTimeout, MinigtsError
from minigts.foreign import user_text
from minigts.providers.base import Provider

LIMIT_S = 60.0
HOSTS = ("h1", "h2", "h3")


def sh(lab: Provider, script: str, host: str = "h1", timeout_s: float = LIMIT_S) -> str:
    return user_text(lab.run(host, ["sh", "-c", script], timeout_s=timeout_s).stdout)


@pytest.mark.parametrize("code", [0, 1, 2, 126, 255])
def test_the_exit_code_is_the_commands(lab: Provider, code: int) -> None:
    assert lab.run("h1", ["sh", "-c", f"exit {code}"], timeout_s=LIMIT_S, check=False).code == code


def test_a_command_ended_by_a_signal_has_128_and_its_number(lab: Provider) -> None:
    assert lab.run("h1", ["sh", "-c", "kill -TERM $$"], timeout_s=LIMIT_S, check=False).code == 143


def test_a_command_has_no_signal_blocked(lab: Provider) -> None:
    """A shell that waits for what it started would wait for ever."""
    said = lab.run("h1", ["grep", "SigBlk", "/proc/self/status"], timeout_s=LIMIT_S).stdout
    assert said.split() == ["SigBlk:", "0" * 16]


def test_no_such_program_is_127_and_named(lab: Provider) -> None:
    result = lab.run("h1", ["no-such-program", "x"], timeout_s=LIMIT_S, check=False)
    assert result.code == 127
    assert "no-such-program" in result.stderr


def test_a_failure_carries_host_command_code_and_output(lab: Provider) -> None:
    with pytest.raises(CommandFailed) as failed:
        lab.run("h2", ["sh", "-c", "echo said; echo why >&2; exit 3"], timeout_s=LIMIT_S)
    error = failed.value
    assert (error.host, error.code, error.out, error.err) == ("h2", 3, "said\n", "why\n")
    assert "on h2: `sh -c" in str(error)


def test_the_result_names_host_command_and_time(lab: Provider) -> None:
    result = lab.run("h3", ["sleep", "0.3"], timeout_s=LIMIT_S)
    assert (result.host, result.argv) == ("h3", ("sleep", "0.3"))
    assert 0.3 <= result.seconds < LIMIT_S


def test_stdout_and_stderr_are_told_apart(lab: Provider) -> None:
    result = lab.run("h1", ["sh", "-c", "echo out; echo err >&2; echo out"], timeout_s=LIMIT_S)
    assert (result.stdout, result.stderr) == ("out\nout\n", "err\n")


@pytest.mark.parametrize("word", ["", " ", "a b", "'", '"', "$HOME", "*", "\\", "ä–\U0001f600", "-n", "a\nb"])
def test_an_argument_arrives_as_it_is(lab: Provider, word: str) -> None:
    assert lab.run("h1", ["printf", "%s|", word, "end"], timeout_s=LIMIT_S).stdout == f"{word}|end|"


def test_a_long_argument_arrives_whole(lab: Provider) -> None:
    word = "x" * 100_000
    assert lab.run("h1", ["sh", "-c", 'echo "${#1}"', "sh", word], timeout_s=LIMIT_S).stdout == "100000\n"


def test_without_input_standard_input_is_at_its_end(lab: Provider) -> None:
    assert lab.run("h1", ["cat"], timeout_s=LIMIT_S).stdout == ""


def test_a_megabyte_of_input_arrives_unchanged(lab: Provider) -> None:
    data = random.Random(1).randbytes(1 << 20)
    said = lab.run("h1", ["sha256sum"], timeout_s=LIMIT_S, stdin=data).stdout
    assert said.split()[0] == hashlib.sha256(data).hexdigest()


def test_input_that_comes_back_while_it_is_sent_does_not_block(lab: Provider) -> None:
    data = b"0123456789abcde\n" * (1 << 16)
    assert user_text(lab.run("h1", ["cat"], timeout_s=LIMIT_S, stdin=data).stdout).encode() == data


def test_a_command_that_does_not_read_its_input_ends_all_the_same(lab: Provider) -> None:
    assert lab.run("h1", ["true"], timeout_s=LIMIT_S, stdin=bytes(1 << 20)).code == 0
    assert sh(lab, "echo still here") == "still here\n"


def test_twenty_megabytes_of_output_arrive_whole(lab: Provider) -> None:
    size = 20 << 20
    said = sh(lab, f"yes 0123456789abcde | head -c {size}")
    assert len(said) == size
    assert said == "0123456789abcde\n" * (size // 16)


def test_bytes_that_are_no_text_do_not_break_the_output(lab: Provider) -> None:
    arrived = bytearray()
    argv = ["printf", r"\377\000\200ok"]
    result = lab.run("h1", argv, timeout_s=LIMIT_S, on_output=arrived.extend)
    assert bytes(arrived) == b"\xff\x00\x80ok"
    assert result.stdout == "\ufffd\0\ufffdok"


def test_a_character_split_between_two_pieces_is_whole(lab: Provider) -> None:
    assert sh(lab, r"printf '\303'; sleep 0.3; printf '\244'") == "ä"


WAITS_FOR = "until [ -e /tmp/{0} ]; do sleep 0.1; done; rm /tmp/{0}"
"""Nothing ends such a command but another one, which makes the file, or its time limit."""
PATIENCE_S = 600.0


def test_output_arrives_before_the_command_ends(lab: Provider) -> None:
    """Else it would never end: it goes on when its first words have been heard."""
    heard, arrived = Event(), []

    def hear(data: bytes) -> None:
        arrived.append(data)
        heard.set()

    script = f"echo first; {WAITS_FOR.format('heard')}; echo second"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lab.run, "h1", ["sh", "-c", script], timeout_s=PATIENCE_S, on_output=hear)
        assert heard.wait(LIMIT_S)
        assert not running.done()
        sh(lab, "touch /tmp/heard")
        assert running.result().stdout == "first\nsecond\n"
    assert arrived == [b"first\n", b"second\n"]


def test_commands_on_one_host_run_at_the_same_time(lab: Provider) -> None:
    """Each waits until all have begun."""
    all_there = "until [ $(ls /tmp/meet | wc -l) = 8 ]; do sleep 0.1; done"

    def work(number: int) -> str:
        script = f"mkdir -p /tmp/meet; touch /tmp/meet/{number}; {all_there}; yes {number} | head -c 300000"
        return sh(lab, script, timeout_s=PATIENCE_S)

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(work, range(8)))
    sh(lab, "rm -r /tmp/meet")
    assert said == [f"{number}\n" * 150_000 for number in range(8)]


def test_commands_on_all_hosts_run_at_the_same_time(lab: Provider) -> None:
    """None goes on before all have begun."""
    begun = Semaphore(0)

    def work(host: str) -> str:
        argv = ["sh", "-c", f"echo {host}; {WAITS_FOR.format(host)}"]
        return user_text(lab.run(host, argv, timeout_s=PATIENCE_S, on_output=lambda _: begun.release()).stdout)

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(work, host) for host in HOSTS]
        together = [begun.acquire(timeout=LIMIT_S) for _ in HOSTS]
        for host in HOSTS:
            sh(lab, f"touch /tmp/{host}", host)
    assert together == [True] * len(HOSTS)
    assert [each.result() for each in running] == [f"{host}\n" for host in HOSTS]


def test_a_command_may_end_while_another_speaks(lab: Provider) -> None:
    """Ends of commands and output of others share a line."""
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(sh, lab, "yes | head -c 5000000 | sha256sum")
        for _ in range(20):
            assert sh(lab, "echo x") == "x\n"
        assert long.result().split()[0] == hashlib.sha256(b"y\n" * 2_500_000).hexdigest()


def test_time_over_says_so_and_keeps_what_was_said(lab: Provider) -> None:
    started_s = lab.now_s()
    with pytest.raises(CommandTimeout, match="was ended after 1 s") as failed:
        lab.run("h1", ["sh", "-c", "echo begun; sleep 3600"], timeout_s=1)
    assert lab.now_s() - started_s < PATIENCE_S
    assert (failed.value.out, failed.value.code, failed.value.host) == ("begun\n", 124, "h1")


CHILDREN = {
    "a child": "sleep {0} & sleep {0}",
    "a grandchild": "sh -c 'sleep {0} & wait' & wait",
    "a session of its own": "setsid sleep {0} & wait",
    "a deaf one": "trap '' TERM INT HUP; sh -c 'sleep {0}; true' & while :; do sleep {0}; done",
    "an orphan": "(sleep {0} >/dev/null 2>&1 </dev/null &); sleep {0}",
}


@pytest.mark.parametrize("script", CHILDREN.values(), ids=CHILDREN.keys())
def test_time_over_ends_the_command_and_all_it_started(lab: Provider, script: str) -> None:
    seconds = f"10{random.Random(script).randrange(10**6):06}"
    with pytest.raises(CommandTimeout):
        lab.run("h1", ["sh", "-c", script.format(seconds)], timeout_s=0.7)
    assert until(lambda: not running(lab, seconds))
    assert sh(lab, "echo still here") == "still here\n"


def running(lab: Provider, word: str, host: str = "h1") -> bool:
    """Whether a process on the host has `word` for an argument. Looks in /proc, for pgrep may not be there."""
    look = ["sh", "-c", "grep -qsxzF -f - /proc/[0-9]*/cmdline"]
    return lab.run(host, look, timeout_s=LIMIT_S, check=False, stdin=word.encode()).code == 0


def test_a_daemon_outlives_the_command_that_started_it(lab: Provider) -> None:
    """Which would else end by its time limit."""
    sh(lab, "setsid sleep 5000077 >/dev/null 2>&1 </dev/null &")
    try:
        time.sleep(0.5)
        assert running(lab, "5000077")
    finally:
        sh(lab, "pid=$(pgrep -f '^sleep 5000077$') && kill $pid")


def test_a_daemon_that_holds_the_output_does_not_hold_the_command(lab: Provider) -> None:
    """Else it would end by the time limit, an hour before the daemon does."""
    result = lab.run("h1", ["sh", "-c", "echo said; sleep 3600.25 & echo $! >/tmp/holds"], timeout_s=LIMIT_S)
    try:
        assert (result.code, result.stdout) == (0, "said\n")
        assert running(lab, "3600.25")
    finally:
        sh(lab, "kill $(cat /tmp/holds)")


@pytest.mark.parametrize("host", ["h9", "H1", "", "h1/", "../h1"])
def test_an_unknown_host_is_an_error_that_names_it(lab: Provider, host: str) -> None:
    with pytest.raises(MinigtsError, match=f"no host {host!r}|no host {host}"):
        lab.run(host, ["true"], timeout_s=LIMIT_S)


def test_many_short_commands_leave_nothing_behind(lab: Provider) -> None:
    """Neither descriptors nor zombies: 200 commands, after which a host still answers at once."""
    with ThreadPoolExecutor(4) as pool:
        assert all(r.code == 0 for r in pool.map(lambda _: lab.run("h2", ["true"], timeout_s=LIMIT_S), range(200)))
    zombies = sh(lab, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ' (true) Z ' || true", "h2")
    assert int(zombies) == 0
