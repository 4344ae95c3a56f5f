"""What a link does to packets, a file for each key of it: its value, `tc`'s words and the clock's field, what a host shows
of it, and its part of the page.

What holds between several keys is in `topology.link_rules`. `lab.links` sets them on a running lab, by `dataplane.shaping` or
`dataplane.wire`, and `lab.shown_links` reads them back. `cli.views.plan` and `fidelity.explanation` show them, and
`fidelity.round_trips`, `losses` and `rates` measure what they do.
"""
