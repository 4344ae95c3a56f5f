"""One test under many seeds: each seed has its own lab, and draws what chance may and which faults come when.

`faults` reads a plan of faults and draws a seed's; `player` plays them on a lab. `program` runs the test; `course`
is one seed from the lab's start to the test's end, `timeline` what happened in it. `work` is a seed as a worker of
`cluster` takes it. `folder` keeps results as they come, `exploration` runs the seeds, `shrinking` leaves faults out,
`replaying` takes a seed again, `bundling` makes one file of a folder, and `host_files` are the hosts' in it.
`host_logs` and `stamps` read what hosts said. `histories` judges what clients were answered.
"""
