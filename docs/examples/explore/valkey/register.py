"""register.py SECONDS: writes and reads a register in turn, every 0.1 s."""

import sys
import time

from history import ask, values
from valkey import Client

EVERY_S = 0.1

client = Client()
for value in values(float(sys.argv[1]), EVERY_S):
    ask(lambda value=value: client.done("SET", "x", value), op="write", key="x", value=value)
    time.sleep(EVERY_S)
    ask(lambda: {"value": client.ask("GET", "x")}, op="read", key="x")
