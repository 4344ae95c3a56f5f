"""A network as a drawing in the words of Graphviz (dot) and of Mermaid. Such files are written, and not read."""

from __future__ import annotations

from minigts.formats.network import Network, NetworkLink, NetworkMachine, Written, number


def dot(network: Network) -> Written:
    """The network for `dot -Tsvg`, `neato` and similar programs."""
    lines = [f"graph {_quoted(network.name)} {{"]
    for machine in network.machines:
        shape = ", shape=box" if machine.is_switch else ""
        lines.append(f"  {_quoted(machine.name)} [label={_quoted(_machine(machine))}{shape}];")
    for link in network.links:
        first, second = map(_quoted, link.ends)
        lines.append(f"  {first} -- {second} [label={_quoted(_link(link))}];")
    return Written("\n".join([*lines, "}"]) + "\n")


def mermaid(network: Network) -> Written:
    """The network for Markdown pages. Its nodes are numbered, since some names, such as `end`, are words of Mermaid."""
    numbers = {machine.name: f"n{index}" for index, machine in enumerate(network.machines)}
    lines = ["graph LR"]
    for machine in network.machines:
        opened, closed = ("[", "]") if machine.is_switch else ("(", ")")
        lines.append(f'  {numbers[machine.name]}{opened}"{_harmless(_machine(machine))}"{closed}')
    for link in network.links:
        first, second = (numbers[end] for end in link.ends)
        words = _harmless(_link(link))
        lines.append(f'  {first} ---|"{words}"| {second}' if words else f"  {first} --- {second}")
    return Written("\n".join(lines) + "\n")


def _machine(machine: NetworkMachine) -> str:
    return machine.name if machine.location is None else f"{machine.name}\n{machine.location}"


def _link(link: NetworkLink) -> str:
    words = []
    if link.delay_ms is not None:
        words.append(f"{number(sum(link.delay_ms))} ms")
    if link.rate_mbit is not None:
        to, back = (f"{number(rate)} Mbit/s" for rate in link.rate_mbit)
        words.append(to if to == back else f"{to}, back {back}")
    if link.loss_percent is not None:
        to, back = (f"{number(loss)} %" for loss in link.loss_percent)
        words.append(f"{to} lost" if to == back else f"{to} lost, back {back}")
    return "\n".join(words)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _harmless(text: str) -> str:
    """Text for a label of Mermaid, which is HTML with `#` for escapes."""
    for sign, put in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("\n", "<br/>")):
        text = text.replace(sign, put)
    return text
