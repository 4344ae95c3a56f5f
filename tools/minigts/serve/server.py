"""The server for pages' requests and websockets; `access` checks each of them first."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
import signal
import socket
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.foreign import printable
from minigts.lab import Lab, metrics, set_links_up, update_settings
from minigts.lab.usage import Reading
from minigts.language import documents
from minigts.machine.progress import Progress
from minigts.serve import lessons, runs, state, terminals
from minigts.serve.auth import HEADERS, PROTOCOL, REPORT_HEADERS, Access, is_open, said_token
from minigts.topology import link_settings
from minigts.topology.outage import Outage
from minigts.topology.plan.link_names import link_named

PAGE = Path(__file__).parent / "page"
REPORT = "report"
LIMIT_BYTES = 1 << 16
OF_A_REQUEST = documents.Bounds(elements=1000, bytes=LIMIT_BYTES)
TAKES_S = 2.0
MOST_REPORTS = 20
Asked = TypeVar("Asked", bound=BaseModel)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SetLink(link_settings.Amounts):
    """The request of a slider: a link, and by their fields any settings that can be set under traffic. None sets a
    field as declared, a missing field stays."""

    model_config = ConfigDict(allow_inf_nan=False, strict=True)
    link: str
    trace: None = None
    """Only a schedule has one."""

    @field_validator("*")
    @classmethod
    def _require_limits(cls, amount: Any, of: ValidationInfo) -> Any:
        """Values have the limits that they have in a file."""
        setting = link_settings.BY_FIELD.get(of.field_name or "")
        limits = None if setting is None or amount is None else setting.limits
        if limits is not None and not limits[0] <= amount <= limits[1]:
            raise ValueError(f"from {limits[0]:.10g} to {limits[1]:.10g}")
        return amount


class CutLink(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    link: str
    up: bool
    silent: bool = True
    """Whether the ends of a link that goes down keep their carrier."""


class Run(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    experiment: str


def terminal_files() -> Path:
    """The folder with xterm.js in the package nicegui. Raises EnvironmentLacks without it."""
    found = importlib.util.find_spec("nicegui")
    for place in (found.submodule_search_locations or []) if found is not None else []:
        folder = Path(place) / "elements" / "xterm" / "dist"
        if (folder / "index.js").is_file():
            return folder
    raise EnvironmentLacks("xterm.js is not installed: pip install 'minigts[serve]'")


class Server:
    """Serves one lab to any number of pages. While `hides` says so, no page shows a round trip of the plan."""

    def __init__(
        self, lab: Lab, access: Access, results: Path, interval_s: float, hides: Callable[[], bool] = lambda: False
    ) -> None:
        self.lab, self.access, self.interval_s, self.hides = lab, access, interval_s, hides
        self.runs = runs.Runs(results)
        self._pages: weakref.WeakSet[web.WebSocketResponse] = weakref.WeakSet()
        self._sockets: weakref.WeakSet[web.WebSocketResponse] = weakref.WeakSet()
        self._latest: dict[str, Any] | None = None

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard], client_max_size=LIMIT_BYTES)
        application.add_routes(
            [
                web.get("/", self._page),
                web.get("/live", self._live),
                web.get("/terminal/{host}", self._terminal),
                web.get("/echoes/{source}/{target}", self._echoes),
                web.get("/report/{name}", self._report, name=REPORT),
                web.get("/lesson/{name}", self._lesson),
                web.get("/metrics", self._metrics),
                web.post("/set", self._set),
                web.post("/cut", self._cut),
                web.post("/run", self._run),
                web.post("/stop", self._stop),
                web.static("/page", PAGE),
                web.static("/xterm", terminal_files()),
            ]
        )
        return application

    def runner(self, say: Progress) -> web.AppRunner:
        """The runner that answers requests. `say` gets a line for each fault of the server; faults of requests are not
        reported."""
        return web.AppRunner(self.application(), shutdown_timeout=2.0, access_log=None, logger=_faults(say))

    async def serve(self, listening: socket.socket, begun: Callable[[], None], say: Progress) -> None:
        """Serve until SIGINT or SIGTERM."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: say(str(context.get("exception") or context["message"])))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        async with self.serving(listening, say):
            begun()
            await ended.wait()

    @asynccontextmanager
    async def serving(self, listening: socket.socket, say: Progress) -> AsyncIterator[None]:
        """Serve meanwhile. Then every connection is closed, with its programs on hosts; an experiment is interrupted,
        and takes its lab down.
        """
        runner = self.runner(say)
        await runner.setup()
        watching = asyncio.create_task(self._watch())
        try:
            await web.SockSite(runner, listening).start()
            yield
        finally:
            watching.cancel()
            for each in list(self._sockets):
                with suppress(ConnectionError, TimeoutError):
                    await asyncio.wait_for(each.close(code=WSCloseCode.GOING_AWAY), 1.0)
            await runner.cleanup()
            await self.runs.end()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        refusal = self.access.refusal(
            host=request.headers.get("Host"),
            origin=request.headers.get("Origin"),
            changes=is_socket or request.method not in ("GET", "HEAD"),
            allowed=self._is_allowed(request),
        )
        if refusal is not None:
            return web.Response(status=403, text=refusal + "\n", headers=HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            allowed = {name: value for name, value in error.headers.items() if name == "Allow"}
            response = web.Response(status=error.status, text=f"{error.status} {error.reason}\n", headers=allowed)
        except InputError as error:
            response = web.Response(status=400, text=f"{error}\n")
        except MinigtsError as error:
            response = web.Response(status=503, text=f"{error}\n")
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    def _is_allowed(self, request: web.Request) -> bool:
        if is_open(request.path):
            return True
        said = said_token(request.headers.get("Authorization"), request.headers.get("Sec-WebSocket-Protocol"))
        if said is not None or request.match_info.route.name != REPORT:
            return self.access.is_token(said)
        return self.access.is_ticket(request.match_info["name"], request.query.get("ticket"))

    async def _page(self, _request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html")

    async def _opened(self, request: web.Request) -> web.WebSocketResponse:
        opened = web.WebSocketResponse(heartbeat=20.0, max_msg_size=LIMIT_BYTES, protocols=(PROTOCOL,))
        await opened.prepare(request)
        self._sockets.add(opened)
        return opened

    async def _live(self, request: web.Request) -> web.StreamResponse:
        first = (state.topology(self.lab), self._runs(), self._latest, lessons.state(self.lab.plan.name))
        page = await self._opened(request)
        for told in first:
            if told is not None:
                await page.send_json(told)
        self._pages.add(page)
        async for message in page:
            if message.type == WSMsgType.ERROR:
                break
        self._pages.discard(page)
        return page

    def _runs(self) -> dict[str, Any]:
        """The message on experiments, with a link to each report."""
        state = self.runs.state()
        reports = [
            {"name": name, "path": f"/report/{quote(name, safe='')}?ticket={self.access.ticket(name)}"}
            for name in state["reports"][:MOST_REPORTS]
        ]
        return {**state, "reports": reports}

    async def _watch(self) -> None:
        """Read the lab every `interval_s` while a page is open, and send all pages the result. Frames are counted since
        the reading at the beginning."""
        before, plan = None, self.lab.read_record().plan_sha256
        first: Reading | None = None
        with suppress(MinigtsError):
            first = await asyncio.to_thread(state.read, self.lab)
        while True:
            if self._pages:
                try:
                    if (now := self.lab.read_record().plan_sha256) != plan:
                        before, plan, self.lab = None, now, self.lab.reopened
                        await self._tell(state.topology(self.lab))
                    after = await asyncio.to_thread(state.read, self.lab)
                    first = after if first is None else state.reading_with_links(first, after)
                    if before is not None:
                        hidden = self.hides()
                        self._latest = await asyncio.to_thread(state.now, self.lab, first, before, after, hidden=hidden)
                    before = after
                except MinigtsError as error:
                    before, self._latest = None, {"kind": "problem", "text": str(error)}
                await self._tell(self._latest, self._runs())
            else:
                before = None
            await asyncio.sleep(self.interval_s)

    async def _tell(self, *all_told: dict[str, Any] | None) -> None:
        await asyncio.gather(*(self._tell_one(page, all_told) for page in list(self._pages)))

    async def _tell_one(self, page: web.WebSocketResponse, all_told: Sequence[dict[str, Any] | None]) -> None:
        """Send messages to a page. One that accepts none within TAKES_S, such as on a sleeping laptop, is disconnected;
        it connects again later."""
        try:
            async with asyncio.timeout(TAKES_S):
                for told in all_told:
                    if told is not None:
                        await page.send_json(told)
        except (ConnectionError, RuntimeError, TimeoutError):
            self._pages.discard(page)
            with suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(page.close(code=WSCloseCode.TRY_AGAIN_LATER), TAKES_S)

    async def _terminal(self, request: web.Request) -> web.StreamResponse:
        host = self._host(request.match_info["host"])
        opened = await self._opened(request)
        await self._explained(opened, terminals.terminal(opened, self.lab, host))
        return opened

    async def _echoes(self, request: web.Request) -> web.StreamResponse:
        source, target = (self._host(request.match_info[end]) for end in ("source", "target"))
        asked = request.query.get("seconds", "20")
        if not re.fullmatch("[0-9]{1,3}", asked, re.ASCII) or not 1 <= int(asked) <= terminals.MOST_S:
            raise InputError(f"seconds: 1 to {terminals.MOST_S}")
        terminals.address_from(self.lab, source, target)
        opened = await self._opened(request)
        await self._explained(opened, terminals.echoes(opened, self.lab, source, target, int(asked)))
        return opened

    async def _explained(self, opened: web.WebSocketResponse, work: Awaitable[None]) -> None:
        """Do `work`, and close the websocket with an error's message as the reason (at most 123 bytes, RFC 6455)."""
        try:
            await work
        except MinigtsError as error:
            await opened.close(code=WSCloseCode.INTERNAL_ERROR, message=str(error).encode()[:120])
        except ConnectionError:
            pass
        finally:
            await opened.close()

    def _host(self, name: str) -> str:
        if name not in {host.name for host in self.lab.plan.hosts}:
            raise InputError("there is no such host")
        return name

    async def _set(self, request: web.Request) -> web.StreamResponse:
        asked = await _asked(request, SetLink)
        update = {name: getattr(asked, name) for name in asked.model_fields_set - {"link", "trace"}}
        await asyncio.to_thread(update_settings, self.lab, asked.link, update)
        return web.Response(status=204)

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        asked = await _asked(request, CutLink)
        first, second = link_named(self.lab.plan, asked.link).ends
        await asyncio.to_thread(set_links_up, self.lab, first, second, up=asked.up, how=Outage(silent=asked.silent))
        return web.Response(status=204)

    async def _run(self, request: web.Request) -> web.StreamResponse:
        self.runs.begin((await _asked(request, Run)).experiment)
        await self._tell(self._runs())
        return web.Response(status=204)

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        await self.runs.end()
        return web.Response(status=204)

    async def _report(self, request: web.Request) -> web.StreamResponse:
        file = await asyncio.to_thread(runs.report, self.runs.results, request.match_info["name"])
        return web.FileResponse(file, headers=REPORT_HEADERS)

    async def _lesson(self, request: web.Request) -> web.StreamResponse:
        text = await asyncio.to_thread(lessons.page, request.match_info["name"])
        return web.Response(text=text, content_type="text/html")

    async def _metrics(self, _request: web.Request) -> web.StreamResponse:
        """The lab's metrics. Reading them lets no virtual time pass, as `_watch` does not, either."""
        lab = self.lab.reopened
        found = await asyncio.to_thread(lambda: metrics.text(metrics.families(lab, state.read(lab))))
        return web.Response(body=found.encode(), headers={"Content-Type": metrics.CONTENT_TYPE})


def _faults(say: Progress) -> logging.Logger:
    """A logger for aiohttp that passes faults of the server to `say`, but not malformed requests."""

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
                told = f"{type(error).__name__}: {error}" if error else record.getMessage()
                say(printable(f"a request was not answered: {told}"))

    logger = logging.Logger("minigts.serve", logging.WARNING)
    logger.addHandler(Told())
    return logger


async def _asked(request: web.Request, model: type[Asked]) -> Asked:
    if "Content-Encoding" in request.headers:
        raise InputError("the request has a Content-Encoding, which this server does not accept")
    try:
        return documents.model(await request.read(), model, OF_A_REQUEST)
    except documents.Unreadable as error:
        raise InputError(f"the request {error}") from error
    except (HttpProcessingError, web.RequestPayloadError) as error:
        raise InputError(f"the request's body is incomplete: {type(error).__name__}") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InputError(f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg']}") from error
