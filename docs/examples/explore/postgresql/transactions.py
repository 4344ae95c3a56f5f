"""transactions.py SECONDS SERVER LEVEL: transactions over three lists in a PostgreSQL's table, at that isolation level.
Each reads and appends one to three times, with a pause between, and is tried once."""

import random
import sys
import time
from contextlib import suppress

import psycopg2
from history import Refused, ask, values

KEYS = "xyz"
READ = "select items from list where key = %s"
APPEND = "update list set items = items || %s::text where key = %s"


def main() -> None:
    seconds, server, level = sys.argv[1:]
    connection = psycopg2.connect(f"host={server} user=postgres dbname=postgres")
    connection.set_session(isolation_level=level)

    def do(steps: list[list[object]]) -> dict[str, object]:
        try:
            with connection.cursor() as cursor:
                for step in steps:
                    word, key, value = step
                    if word == "append":
                        cursor.execute(APPEND, (value, key))
                    else:
                        cursor.execute(READ, (key,))
                        step[2] = cursor.fetchall()[0][0]
                    time.sleep(random.uniform(0, 0.01))
        except psycopg2.Error as error:
            with suppress(psycopg2.Error):
                connection.rollback()
            raise Refused(str(error)) from error
        try:
            connection.commit()
        except (psycopg2.errors.SerializationFailure, psycopg2.errors.DeadlockDetected) as error:
            raise Refused(str(error)) from error
        except psycopg2.Error as error:
            raise OSError(str(error)) from error
        return {"value": steps}

    for value in values(float(seconds), 0.01):
        steps = []
        for number in range(random.randint(1, 3)):
            key = random.choice(KEYS)
            steps.append(random.choice((["r", key, None], ["append", key, f"{value}-{number}"])))
        ask(lambda steps=steps: do(steps), op="txn", value=steps)


main()
