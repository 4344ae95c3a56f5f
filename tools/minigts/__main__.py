"""`python -m minigts`: what the launcher `./minigts` becomes."""

import signal

# While the program is loaded nobody can explain an interruption: it just ends it. One that is ignored stays so.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from minigts.cli import main

main()
