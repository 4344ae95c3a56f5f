"""What links do over time."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.schedule import Step

Schedule: TypeAlias = Annotated[
    tuple[Step, ...] | None,
    LabSetting(
        planned=None,
        elsewhere=Elsewhere(what="schedule", why=NOWHERE, has=lambda plan: plan.schedule, lost=True),
        page="""\
optional · list · default: none · `schedule: [{at: 10s, link: ams-bra, set: {delay: 40ms}}]`

Changes of links over time. A schedule does not start by itself: [`minigts play`](lab.md#play) plays it, and so does an
experiment's measurement with [`play: topology`](experiment-language.md#measurementsplay). Times count from that start.

```yaml
name: fading
chain: {hosts: [ams, bra, lju, mil], link: {rtt: 20ms, rate: 50mbit}}
schedule:
  - {at: 10s, link: ams-bra, set: {delay: 40ms, loss: 1%}}
  - {at: 20s, link: ams-bra, from: ams, set: {delay: declared, loss: declared}}
  - {every: 5s, until: 60s, link: bra-lju, set: [{rate: 5mbit}, {rate: 50mbit}]}
  - {at: 30s, link: bra-lju, cut: 2s}
  - {at: 40s, link: bra-lju, down: 500ms, end: bra}
  - {link: lju-mil, trace: traces/fading.csv, until: 60s}
```

Each step has one of `set`, `cut`, `down` and `trace`. Changes at the same moment are made in the order of the file. A
schedule has at most 20 000 changes; a trace of mahimahi that a link plays by itself is two.

In virtual time a change acts at its moment on all that has not left the link: the frame that is being sent keeps the
bits that have left, and the others leave at the new rate. Frames that have left have the delay that they left with;
none overtakes those before it, unless [`order: free`](#linksjitterorder) says so. A queue that becomes smaller keeps
what it has. A link that is cut loses what waited there, as it leaves ([why](decisions/wires.md)).

### `schedule[].at`
required, optional with `every` or a trace · moment, `0s` or later · `at: 10s`

The moment of the change. With `every` it is the first time, by default one interval after the start. A trace begins at
this moment, by default at `0s`.

### `schedule[].every`
optional, with `until`, not with a trace · moment above 0 s · `every: 5s`

The interval of repetition.

### `schedule[].until`
optional, with `every` or a trace · moment · `until: 60s`

The end of the repetition by `every`, or of a trace, which is repeated until then. Without it a trace is played once.

### `schedule[].link`
required · name of a link · `link: ams-bra`

### `schedule[].from`
optional, not with `cut` or `down` · an end of the link · default: both directions · `from: ams`

Only the direction in which this end sends is changed.

### `schedule[].set`
optional · mapping, or with `every` also a list of mappings, taken in turn · `set: {delay: 40ms}`

The settings of [`minigts set`](lab.md#set-and-partition); `declared` is the file's value. Settings that are not named
stay as they are.

### `schedule[].cut`
optional · moment · `cut: 2s`

For this time everything sent over the link is lost, in both directions, and its ends keep their carrier: nobody is
told.

### `schedule[].down`
optional · moment · `down: 500ms`

For this time everything sent over the link is lost, in both directions, and its ends lose their carrier ([what a link
that is down is](lab.md#link)). In virtual time both happen at these exact moments, and `down: 100us` is a flap. In real
time the carriers follow by the time of a command on a host, which `play` shows; Mininet's ends keep their carriers, and
it refuses the file.

### `schedule[].end`
optional, with `down` · an end of the link · default: both · `end: bra`

Only this end loses its carrier.

### `schedule[].trace`
optional · path, relative to the topology's directory · `trace: traces/fading.csv`

A file of rates or delays. A file whose name ends in `.csv` begins with the line `seconds,rate` or `seconds,delay`. Each
further line has a moment, in seconds and later than the one before, and the value set then, as in `0.5,10mbit`.

Any other file is a trace of mahimahi (mm-link): each line is a millisecond in which a packet of 1500 bytes may be
delivered, several equal lines are several packets, and the last line says when the trace begins again. In virtual time
the link delivers in these opportunities and at no other moment, byte for byte as mahimahi does: an opportunity has 1504
bytes, a packet takes those of its IP packet and 4 more, small packets share one, a large one takes several, and what
nobody uses is lost. The link's rate, burst and peak do not hold meanwhile; its queue, delay and loss do. A queue that
is sized by the rate is sized by the trace's mean.

`topologies/radio.yaml` has three such traces: like a cellular network, a busy wireless LAN, and satellites in low
orbits. They are made up by `topologies/traces/generate.py`, which says what each imitates.

In real time, and where the link has another [queue discipline](#queue-disciplines) than `fifo`, such a trace is the
mean rate of each of equally long intervals of up to 100 ms; an interval without packets has 8 kbit/s, the lowest rate
of a link.
""",
    ),
    Field(description="What links do over time, when `minigts play` or a measurement plays it. Default: nothing."),
]
