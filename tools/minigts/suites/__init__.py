"""Suites of tests that other people wrote, such as Linux's packetdrill scripts, in labs of one host.

A suite is one file, named in `registry`: how its tests are found, what runs one on a host, how its end is read, with
`parts` where it has said several verdicts. `work` is what a worker takes at a time, `performance` runs it, `suite_run`
all of them, `folder` keeps what came of them, `comparison` compares several times, `junit` and `table` write it down.
Faults and seeds are in `explore`.
"""
