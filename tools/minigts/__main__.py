"""`python -m minigts`: what the launcher `./minigts` becomes. In an installed package `main` is the command."""

# The built-in half of `signal`: the other takes milliseconds to load.
import _signal  # type: ignore[import-not-found]
import gc

# While the program is loaded nobody can explain an interruption: it just ends it. One that is ignored stays so.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

# Nothing of what is loaded is garbage: to look for some takes a tenth of the start.
gc.disable()
from minigts.cli import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()
