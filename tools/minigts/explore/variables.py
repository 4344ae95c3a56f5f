"""The environment of a test that is explored. The pytest plugin, which pytest always loads, reads these names."""

COURSE = "MINIGTS_COURSE"
"""The folder of the test's own files, which are kept when it fails."""
SEED = "MINIGTS_SEED"
LAB = "MINIGTS_LAB"
"""The name of the lab to test, also for tests that are not explored, when several labs are up."""
TAIL = "MINIGTS_TAIL"
"""The number of the tail of its seed, in a test that has gone on as one."""
WITHOUT = "MINIGTS_WITHOUT"
"""The numbers, with commas between, of the test's own acts that it has to leave out."""
FAILURES = "failures.jsonl"
"""The file in the folder COURSE with a line of JSON for each test of pytest's that failed: `test`, `why`, and `vacuous`
where what the test needs has not come about."""
