"""The command line. `verbs` has a file for each verb, `options` the options and arguments that several verbs share;
`console` prints results and notes, `views` draws tables, `completion` completes words in a shell; `app` starts and ends
the program. Nothing else prints; the work of a verb is done in other packages."""

from minigts.cli.app import main

__all__ = ["main"]
