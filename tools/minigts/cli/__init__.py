"""The command line. `verbs` has a file for each verb, `options` the options and arguments that several have, `console`
how it speaks on the terminal, `views` what is drawn there, `completion` the words that a shell completes; `app` starts
and ends it. Nothing else prints; what a verb does is done elsewhere.
"""

from minigts.cli.app import main

__all__ = ["main"]
