"""Bringing labs up and running campaigns, for the command line, pytest, lessons, serve and `minigts.api` alike.

`bring_up` makes all checks before it starts anything, then brings up hosts, certificate and overlay. `campaign` reads
experiments, takes their samples lab by lab or by an engine's workers, and writes every table. This room prints and
draws nothing: the caller is told of the progress. Users' programs call `minigts.api`.
"""
