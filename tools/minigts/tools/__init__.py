"""Measuring tools, one file each: its options, its command line, how its output is read, what the plan predicts for it,
and the columns it fills, with label and unit. Pure: nothing is started here.

Which of them is run, how often and over which paths is an experiment's business. CONTRIBUTING.md says how to add one.
"""

from collections.abc import Mapping

from minigts.tools import command, iperf3_tcp, iperf3_udp, netperf_rr, netperf_stream, ping
from minigts.tools.base import Tool
from minigts.tools.columns import BESIDE, SHARED, Column

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        netperf_rr.TOOL,
        ping.TOOL,
        iperf3_tcp.TOOL,
        iperf3_udp.TOOL,
        netperf_stream.TOOL,
    )
}
"""By the names that experiments know them by, in the order in which messages and tables list them."""

OPEN: Mapping[str, Tool] = {command.TOOL.name: command.TOOL}
"""Those that are what a measurement's options make of them."""

COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (*SHARED, *(column for tool in TOOLS.values() for column in tool.columns), *BESIDE)
}
"""What samples.csv may hold beside a sample's value, by name, in its order there."""

QUANTITIES: Mapping[str, Column] = {
    column.quantity: column
    for column in (*COLUMNS.values(), *(tool.value for tool in (*TOOLS.values(), *OPEN.values())))
    if column.quantity
}
"""What a claim, or a topology's `expect:`, may speak of, by what it calls it."""
