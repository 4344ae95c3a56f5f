"""visitor.py URL SECONDS: puts an order there ten times a second, and prints what it asks and what it is answered."""

import json
import sys
import time
import urllib.error
import urllib.request

url, seconds = sys.argv[1], float(sys.argv[2])


def say(**told: object) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), **told}) + "\n")
    sys.stdout.flush()


end, number = time.monotonic() + seconds, 0
while time.monotonic() < end:
    number += 1
    say(op="add", value=str(number))
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/orders/{number}", method="PUT"), timeout=3):
            say(answer="ok")
    except OSError:
        say(answer="info")  # nobody knows whether it was taken
    time.sleep(0.1)
