"""`minigts serve`: a lab in the browser. Who may ask, what the page is told, terminals and echo requests, experiments,
lessons' pages.

`page/` has what the browser gets; its terminal is xterm.js, as the package nicegui brings it. What is done to a lab is
done by `lab`, and an experiment by `minigts run`: nothing is set, judged or measured here.
"""
