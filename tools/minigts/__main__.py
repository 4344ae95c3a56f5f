"""`python -m minigts`, which the launcher `./minigts` becomes. An installed package's command calls `main` itself."""

# The built-in part of `signal`: the other part takes milliseconds to load.
import _signal  # type: ignore[import-not-found]
import gc

# While the program is loaded nothing can report an interruption, which just ends it; an ignored one stays ignored.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

# Loaded modules are no garbage: the search for some takes a tenth of the start.
gc.disable()
from minigts.cli import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()
