"""`python -m minigts`: what the launcher `./minigts` becomes."""

from minigts.cli import main

main()
