"""`minigts arena`: incidents to be found and mended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName
from minigts.cli.verbs import CLASSROOM, Verb
from minigts.cli.views import tables
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.arena.transcript import Transcript

verb = Verb(CLASSROOM, 437, help="Incidents in labs, for agents and people to find and mend, with scores.")

IncidentName = Annotated[
    str, typer.Argument(metavar="FAMILY/SEED", help="The incident, as routes/7; `minigts arena list` has the families.")
]


@verb.command("list")
def arena_list() -> None:
    """List the families of incidents.

    An incident is FAMILY/SEED: the same seed is the same incident everywhere. Seeds 1 to 30 of each family are those
    that a bench proves: each has its effect, and is mended by undoing it.

    Example:  minigts arena list
    """
    from minigts.arena.boards import BOARDS
    from minigts.arena.families import FAMILIES, PROVEN

    rows = (
        (name, f"{name}/1 to {name}/{PROVEN}", family.about, ", ".join(each for each in BOARDS if each in family.kinds))
        for name, family in FAMILIES.items()
    )
    tables.show_table("families of incidents", ("family", "incidents", "about", "boards"), rows)
    console.note("begin with: minigts arena start routes/7")


@verb.command("start")
def arena_start(
    incident: IncidentName,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="Who plays, for the transcript.")] = "somebody",
) -> None:
    """Bring a lab up, break it, and print the ticket: what a user complains of. The lab has the incident's name.

    Work in it by any verb, or by the tools of `minigts mcp --role repair`, whose calls are counted and noted, as those
    of `minigts arena call` are. Then answer.

    Example:  minigts arena start routes/7
    """
    from minigts.arena import families, stage, tournament

    if not agent.isprintable() or not 0 < len(agent) <= 60:
        raise InputError("--agent: write a name of at most 60 printable characters")
    drawn = families.draw(*families.parse(incident))
    with console.progress() as say:
        lab = tournament.new_lab(drawn, drawn.lab, say)
        try:
            record = stage.make(lab, drawn, agent, say)
        except BaseException:
            from minigts import lab as labs

            labs.down(lab)
            raise
    typer.echo(record.ticket)
    console.note(f"lab {lab.name} is up. Look, find what it is and on which host, mend it, and answer:")
    console.note(f"  minigts arena call --lab {lab.name} ping source={drawn.plan.hosts[0].name} target=HOST")
    console.note(f"  minigts mcp {lab.name} --role repair")
    console.note(f"  minigts arena answer --lab {lab.name} --fault KIND@HOST, or --nothing")


@verb.command("ticket")
def arena_ticket(lab: LabName = None) -> None:
    """Print the ticket again, and the kinds of faults that an answer may name.

    Example:  minigts arena ticket
    """
    from minigts import lab as labs
    from minigts.arena.play import Play

    play = Play(labs.open_lab(lab))
    typer.echo(play.record.ticket)
    tables.show_table("kinds of faults", ("kind", "what is wrong"), play.kinds.items())
    console.note(f"{len(play.calls)} calls so far, {play.lab_s:g} s of the lab")


@verb.command("call")
def arena_call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool of `minigts mcp`, such as ping, look or run.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE...]", help="Its arguments, as source=ams.")
    ] = None,
    lab: LabName = None,
) -> None:
    """Call a tool in an incident's lab. The call is counted and noted, and the lab stands still before and after it.

    Example:  minigts arena call look host=ams what=routes

    Example:  minigts arena call run host=ams command='ip route'
    """
    from minigts import lab as labs
    from minigts.arena.play import Play

    parts = [each.partition("=") for each in arguments or []]
    if wrong := [name for name, sign, _ in parts if not sign or not name]:
        raise InputError(f"arena call: {wrong[0][:60]!r}: write an argument as NAME=VALUE, such as source=ams")
    typer.echo(Play(labs.open_lab(lab)).call(tool, {name: value for name, _, value in parts}))


@verb.command("answer")
def arena_answer(
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="KIND@HOST", help="A fault, as no-route@bra; may be repeated."),
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="Nothing is wrong.")] = False,
    lab: LabName = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the transcript there, as JSON lines.")
    ] = None,
) -> None:
    """Answer an incident: it is judged by the lab as it is now, once. Exit 1 unless it is solved.

    Solved is an incident when all its faults are named with their hosts and have no effect any more, and nothing else
    is broken. Then it is said what it was; the lab stays up.

    Example:  minigts arena answer --fault no-route@bra

    Example:  minigts arena answer --nothing -o odd-6.jsonl
    """
    from minigts import lab as labs
    from minigts import paths
    from minigts.arena import exercise
    from minigts.arena.play import Play
    from minigts.arena.scores import ArenaAnswer

    if bool(fault) == nothing:
        raise InputError("arena answer: write --fault KIND@HOST for each fault, or --nothing")
    if output is not None and (output.exists() or not output.parent.is_dir()):
        raise InputError(f"{output}: name a file that there is not yet, in a folder that there is")
    given = ArenaAnswer(faults=tuple(map(exercise.parse_fault, fault or [])))
    play = Play(labs.open_lab(lab))
    with console.progress() as say:
        say("asking what users would complain of")
        whole = play.answer(given)
    if output is not None:
        paths.write_for_user(output, whole.text)
    for line in exercise.verdict_lines(whole.end.score):
        typer.echo(line)
    it_was = ", ".join(f"{each.kind.name} on {each.hosts[0]}" for each in play.record.incident.faults)
    odd = ", ".join(f"{each.kind.name} on {each.place.host}" for each in play.record.incident.oddities)
    console.note(f"it was: {it_was or 'nothing'}" + (f"; odd and harmless: {odd}" if odd else ""))
    raise typer.Exit(0 if whole.end.score.solved else 1)


@verb.command("transcript")
def arena_transcript(lab: LabName = None) -> None:
    """Print the transcript of the incident that was answered last in a lab: a line of JSON for the ticket, for each
    call, and for the answer with its score.

    Example:  minigts arena transcript >routes-7.jsonl
    """
    from minigts import lab as labs
    from minigts.arena import stage, transcript

    opened = labs.open_lab(lab)
    file = opened.rundir / stage.TRANSCRIPT
    if not file.exists():
        raise InputError(f"no incident of lab {opened.name} has its answer yet: minigts arena answer")
    typer.echo(transcript.read(file).text, nl=False)


@verb.command("run")
def arena_run(
    chosen: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FAMILY...]", help="Families, or incidents as routes/7. Default: all twelve families."),
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="`scripted`, a list of decisions, or `nothing`.")
    ] = "scripted",
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="A-B", help="The seeds of each family that is named, both included.")
    ] = "1-30",
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="The folder for transcripts and the page; it may be there.")
    ] = Path("arena"),
) -> None:
    """Have a player that is built in play incidents, each in a new lab; print its points, and write a page.

    A transcript that is in the folder already is not played again, so an interrupted run goes on with the same command.

    Example:  minigts arena run routes mtu --seeds 1-3

    Example:  minigts arena run --agent nothing --into scores
    """
    from minigts.arena import families, players, tournament
    from minigts.results.folder import make

    player = players.find_player(agent)
    names = [name for each in chosen or families.FAMILIES for name in _names(each, seeds)]
    make(into)
    played: list[Transcript] = []
    with console.progress() as say:

        def take(whole: Transcript) -> None:
            played.append(whole)
            found = whole.end.score
            say(f"{len(played)} of {len(names)}: {whole.ticket.incident} {'solved' if found.solved else 'not solved'}")

        tournament.play_all(names, agent, player, into, say, take)
    _show(played, into)


def _names(chosen: str, seeds: str) -> list[str]:
    from minigts.arena import families

    if "/" in chosen:
        families.parse(chosen)
        return [chosen]
    first, _, last = seeds.partition("-")
    found = [families.parse(f"{chosen}/{each}") for each in (first, last or first)]
    if found[0][1] > found[1][1]:
        raise InputError(f"--seeds {seeds[:40]}: write the lower seed first, as 1-30")
    return [f"{chosen}/{seed}" for seed in range(found[0][1], found[1][1] + 1)]


@verb.command("replay")
def arena_replay(
    file: Annotated[Path, typer.Argument(metavar="TRANSCRIPT", help="A transcript of `arena run` or `arena answer`.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the transcript of the replay there.")
    ] = None,
) -> None:
    """Play the calls of a transcript again in a new lab, and compare all answers, byte for byte. Exit 1 if they differ.

    The commands of a transcript run on hosts of the lab alone, whoever wrote it.

    Example:  minigts arena replay arena/routes-7-scripted.jsonl
    """
    from minigts import paths
    from minigts.arena import tournament, transcript

    before = transcript.read(file)
    with console.progress() as say:
        now, difference = tournament.replay(before, say)
    if output is not None:
        paths.write_for_user(output, now.text)
    if difference is None:
        typer.echo(f"the same: {len(now.calls)} calls and the score, byte for byte")
        return
    typer.echo(f"line {difference.line} differs")
    typer.echo(f"  before: {difference.before[:300]}")
    typer.echo(f"  now:    {difference.now[:300]}")
    raise typer.Exit(1)


@verb.command("report")
def arena_report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with transcripts, *.jsonl.")],
) -> None:
    """Print the points of the transcripts in a folder, and write its page, report.md.

    Example:  minigts arena report arena
    """
    from minigts.arena import transcript

    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise InputError(f"{folder}: no transcript is there; one is a file *.jsonl of arena run or arena answer")
    _show([transcript.read(file) for file in files], folder)


def _show(played: list[Transcript], folder: Path) -> None:
    from minigts.arena import page
    from minigts.results.folder import write

    write(folder / "report.md", page.page(played))
    for agent in dict.fromkeys(each.ticket.agent for each in played):
        typer.echo(agent)
        for line in page.table([each for each in played if each.ticket.agent == agent]):
            typer.echo(line)
    typer.echo(folder / "report.md")
