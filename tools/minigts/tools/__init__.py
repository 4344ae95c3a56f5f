"""Measuring tools. The file of each has its options, its command line, how its output is read, what the plan predicts
for it, and the columns it fills, with label and unit. All of it is pure: nothing is started here.

An experiment says which tool is run, how often and over which paths. CONTRIBUTING.md says how to add a tool.
"""

from collections.abc import Mapping

from minigts.tools import command, flows, iperf3_tcp, iperf3_udp, netperf_rr, netperf_stream, ping, traffic
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
"""The tools by the names that experiments use, in the order in which messages and tables list them."""

OPEN: Mapping[str, Tool] = {tool.name: tool for tool in (traffic.TOOL, flows.TOOL, command.TOOL)}
"""The tools whose label, unit and output depend on a measurement's options."""

COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (*SHARED, *(column for tool in TOOLS.values() for column in tool.columns), *BESIDE)
}
"""The columns that samples.csv may have beside a sample's value, by name, in their order in the file."""

QUANTITIES: Mapping[str, Column] = {
    column.quantity: column
    for column in (*COLUMNS.values(), *(tool.value for tool in (*TOOLS.values(), *OPEN.values())))
    if column.quantity
}
"""The quantities that a claim, or a topology's `expect:`, may name."""
