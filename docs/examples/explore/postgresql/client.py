"""client.py SECONDS PRIMARY STANDBY [cancel]: adds a value to a table and moves money from one account to another at
the primary, and reads all accounts at the standby, every 0.1 s. With `cancel` it cancels what takes longer than 0.5 s,
and takes the answer to that, as drivers with a time limit do."""

import select
import sys
import time
from contextlib import suppress

import psycopg2
from history import Refused, ask, values
from psycopg2 import extensions

CANCEL_S, PATIENCE_S = 0.5, 2.0
CANCELS = sys.argv[4:] == ["cancel"]


def wait(connection: extensions.connection) -> None:
    """Wait for an answer. Raises TimeoutError after PATIENCE_S."""
    begin_s, cancelled = time.monotonic(), not CANCELS
    while (state := connection.poll()) != extensions.POLL_OK:
        until_s = begin_s + (PATIENCE_S if cancelled else CANCEL_S)
        files = [connection.fileno()]
        reads, writes = (files, []) if state == extensions.POLL_READ else ([], files)
        if any(select.select(reads, writes, [], max(0.0, until_s - time.monotonic()))):
            continue
        if cancelled:
            raise TimeoutError("it does not answer")
        connection.cancel()
        cancelled = True


class Server:
    """A server, over one connection as long as it lasts."""

    def __init__(self, host: str) -> None:
        self._connected_by = f"host={host} user=postgres dbname=postgres"
        self._connection: extensions.connection | None = None

    def ask(self, statement: str, *arguments: object) -> list[tuple[object, ...]]:
        """The rows of its answer. Raises Refused where nothing was done, OSError where nobody knows."""
        if self._connection is None:
            try:
                self._connection = psycopg2.connect(self._connected_by)
            except (psycopg2.Error, OSError) as error:
                raise Refused(str(error)) from error
            self._connection.autocommit = True
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement, arguments)
                return cursor.fetchall() if cursor.description else []
        except (psycopg2.Error, OSError) as error:
            with suppress(psycopg2.Error):
                self._connection.close()
            self._connection = None
            if isinstance(error, extensions.QueryCanceledError):
                raise Refused(str(error)) from error
            raise OSError(str(error)) from error


ADD = "insert into written values (%s)"
MOVE = "update account set balance = balance + case name when %s then -1 else 1 end where name in (%s, %s)"
READ = "select name, balance from account"


def main() -> None:
    seconds, primary, standby = sys.argv[1:4]
    there, copy = Server(primary), Server(standby)

    def done(statement: str, *arguments: object) -> dict[str, object]:
        there.ask(statement, *arguments)
        return {}

    for number, value in enumerate(values(float(seconds))):
        ask(lambda value=value: done(ADD, value), op="add", value=value)
        giver, taker = ("x", "y") if number % 2 else ("y", "x")
        ask(lambda giver=giver, taker=taker: done(MOVE, giver, giver, taker), op="move")
        ask(lambda: {"balances": dict(copy.ask(READ))}, op="read")


extensions.set_wait_callback(wait)
main()
