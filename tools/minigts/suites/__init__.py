"""Suites of tests that other people wrote, such as Linux's packetdrill scripts: each test runs in a lab of its own.

A suite is one file, named in `registry`: how its tests are found, what runs one on a host, how its end is read. `work`
is one test as a worker takes it, `performance` runs it, `suite_run` all of them, `folder` keeps what came of them,
`comparison` compares several times, `junit` and `table` write it down. Faults and seeds are in `explore`.
"""
