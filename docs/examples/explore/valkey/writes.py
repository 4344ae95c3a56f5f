"""writes.py SECONDS: adds a value to a set every 0.1 s."""

import sys

from history import ask, values
from valkey import Client

client = Client()
for value in values(float(sys.argv[1])):
    ask(lambda value=value: client.done("SADD", "writes", value), op="add", value=value)
