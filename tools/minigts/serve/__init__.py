"""`minigts serve`: a lab in the browser. `access` checks requests, `watch` reads the lab, `lines` has terminals and
echo requests, `runs` experiments, `lessons` the lessons' pages, `server` puts them together.

`page/` has the files for the browser; its terminal is xterm.js from the package nicegui. This room sets, judges and
measures nothing itself: room `lab` changes labs, and `minigts run` runs experiments.
"""
