"""Requests to the service: credentials, retries with polite waits, and bodies that are read as they arrive."""

from __future__ import annotations

import http.client
import json
import random
import re
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit

from .errors import GrandlivreError

T = TypeVar("T")
# What a transfer that breaks off raises.
LOST = (OSError, http.client.HTTPException, zlib.error)
_PIECE = 1 << 20
_WHOLE_MAX = 1 << 26
_RETRY_AFTER_MAX = 600
# Until the service has answered once, its address is more likely wrong than the service away.
_FIRST_ATTEMPTS_MAX = 3

CURSOR, ID, SHA256 = re.compile(r"[A-Za-z0-9._-]{1,64}"), re.compile(r"[0-9]{1,16}"), re.compile(r"[0-9a-f]{64}")


def misfit(item: object, shape: Mapping[str, Any]) -> str | None:
    """The first member that is not of its type, or does not match its expression; None if all do."""
    for name, wanted in shape.items():
        value = item.get(name) if isinstance(item, dict) else None
        if not (type(value) is wanted if isinstance(wanted, type) else isinstance(value, str) and wanted.fullmatch(value)):
            return name
    return None


class Answer:
    """An answer of status 200 or 206. Used in a `with`, so that its connection ends with it."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.request_id = self.header("X-Request-Id") or None

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "") or ""

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def pieces(self) -> Iterator[bytes]:
        """The body without its compression. Raises one of LOST if it is cut."""
        unpack = zlib.decompressobj(31) if self.header("Content-Encoding").lower() == "gzip" else None
        # Packed pieces are smaller, since each of them may become a thousand times as long.
        while piece := self._response.read(_PIECE >> 3 if unpack else _PIECE):
            yield unpack.decompress(piece) if unpack else piece
        if self._response.length or (unpack and not unpack.eof):
            raise ConnectionError("the body was cut")

    def lines(self, most: int) -> Iterator[bytes]:
        """Whole lines with their line feeds, of at most so many bytes."""
        rest: list[bytes] = []
        for piece in self.pieces():
            *whole, last = piece.split(b"\n")
            for line in whole:
                yield b"".join([*rest, line, b"\n"])
                rest = []
            rest.append(last)
            if sum(map(len, rest)) > most:
                raise self.error("NOT-PROVEN", f"A line has more than {most} bytes")
        if any(rest):
            raise ConnectionError("the body ended within a line")

    def json(self) -> Any:
        """The whole body, which is a short one."""
        body = b""
        for piece in self.pieces():
            body += piece
            if len(body) > _WHOLE_MAX:
                raise self.error("UNEXPECTED-ANSWER", f"An answer has more than {_WHOLE_MAX} bytes")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise ConnectionError("the body is no JSON: it was cut") from None

    def error(self, code: str, message: str, **facts: Any) -> GrandlivreError:
        return GrandlivreError(code, message, status=self.status, request_id=self.request_id, **facts)


class Service:
    """The service at an address. It follows no redirect: the secret would go with it."""

    def __init__(self, url: str, credentials: Mapping[str, str | None], **options: Any) -> None:
        for name, value in credentials.items():
            if value is not None and not re.fullmatch(r"[\x21-\x7e]+", value):
                raise GrandlivreError("INVALID-OPTION", f"{name} is empty, or has a character that no header can hold")
        parsed = urlsplit(url)
        if parsed.scheme not in ("http", "https") or not parsed.hostname or parsed.query or "@" in parsed.netloc:
            raise GrandlivreError("INVALID-OPTION", "url is not an address such as https://ledger.example.com")
        if options["encoding"] not in ("gzip", "identity") or options["attempts"] < 1 or options["timeout"] <= 0:
            raise GrandlivreError("INVALID-OPTION", "encoding is gzip or identity, attempts and timeout are above 0")
        self.url = re.sub(r"/+(api/v1/*)?$", "", url + "/")
        headers = {"Authorization": f"Bearer {credentials['token']}", "X-Third-Party-Secret": credentials["secret"]}
        headers["society-id"] = credentials["society"]
        self._headers = {name: value for name, value in headers.items() if value is not None}
        self.attempts: int = options["attempts"]
        self.sleep: Callable[[float], None] = options["sleep"]
        self._options = options
        self._has_answered = False
        self._opener = urllib.request.OpenerDirector()
        for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
            self._opener.add_handler(handler())

    def ask(
        self, path: str, query: Mapping[str, object], accept: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A request that only reads: it is sent again where an answer is lost. An empty list in `query` is sent as such."""
        given = {name: value for name, value in query.items() if value not in (None, False)}
        words = {n: ",".join(map(str, v)) if isinstance(v, (list, tuple)) else v for n, v in given.items()}
        sent = {"Accept": accept, "Accept-Encoding": self._options["encoding"], **self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        address = f"{self.url}/api/v1/{path}?{urlencode({'version': '1.0.0', **words})}"
        answer = self.fetch(address, sent, None if body is None else json.dumps(body).encode())
        media_type = answer.header("Content-Type").partition(";")[0].strip().lower()
        if media_type != accept:
            with answer:
                raise answer.error("UNEXPECTED-ANSWER", f"{path} came as {media_type or 'no media type'}, and not {accept}")
        return answer

    def fetch(self, address: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """Whatever is at an address: without credentials in `headers`, it gets none."""
        request = urllib.request.Request(address, body, {"User-Agent": "grandlivre-python", **headers})
        attempt = 1
        while True:
            try:
                return self._fetch_once(request)
            except GrandlivreError as error:
                most = self.attempts if self._has_answered else min(_FIRST_ATTEMPTS_MAX, self.attempts)
                wait = error.retry_after or 0
                may_pass = error.code == "CONNECTION-FAILED" or error.status in (429, 502, 503, 504)
                if not may_pass or attempt >= most or wait > _RETRY_AFTER_MAX:
                    raise
                self._pause(attempt, wait)
                attempt += 1

    def whole(self, path: str, query: Mapping[str, object]) -> Any:
        """A short answer in JSON."""

        def connection() -> Iterator[Any]:
            with self.ask(path, query, "application/json") as answer:
                yield answer.json()

        return next(self.through_losses(connection, path))

    def through_losses(self, connection: Callable[[], Iterator[T]], what: str) -> Iterator[T]:
        """What comes over as many connections as it takes. Each goes on where the one before was lost; one that returns has
        brought the end. Attempts count as long as nothing comes."""
        attempt = 0
        while True:
            try:
                for each in connection():
                    yield each
                    attempt = 0
                return
            except LOST as error:
                attempt += 1
                if attempt >= self.attempts:
                    raise GrandlivreError("CONNECTION-FAILED", f"{what} stopped coming: {error}") from error
                self._pause(attempt, 0)

    def _pause(self, attempt: int, at_least: float) -> None:
        """Longer after each attempt in vain, and not all clients at the same moment."""
        self.sleep(at_least + random.random() * min(30.0, 0.5 * 2 ** (attempt - 1)))

    def _fetch_once(self, request: urllib.request.Request) -> Answer:
        named = f"{request.get_method()} {request.type}://{request.host}{urlsplit(request.full_url).path}"
        try:
            answer = Answer(self._opener.open(request, timeout=self._options["timeout"]))
        except LOST as error:
            why = error.reason if isinstance(error, URLError) else error or type(error).__name__
            raise GrandlivreError("CONNECTION-FAILED", f"{named}: {why}") from error
        self._has_answered = True
        if answer.status in (200, 206):
            return answer
        wait = answer.header("Retry-After")
        facts: dict[str, Any] = {"retry_after": int(wait) if re.fullmatch("[0-9]{1,9}", wait) else None}
        with answer:
            try:
                said = answer.json()["error"]
                details = said.get("details")
                facts["details"] = details if isinstance(details, dict) else {}
                raise answer.error(str(said["code"]), str(said["message"]), **facts)
            except (*LOST, KeyError, TypeError, AttributeError):
                message = f"{named} was answered with status {answer.status}"
                raise answer.error("UNEXPECTED-ANSWER", message, **facts) from None
