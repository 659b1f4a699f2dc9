"""Requests to the service: credentials, retries with polite waits, errors with a remedy, bodies read as they arrive."""

from __future__ import annotations

import http.client
import json
import random
import re
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit

T = TypeVar("T")
# Written by `npm run docs -- python` from the tables of the service.
CONTRACT: Mapping[str, Any] = json.loads(files("grandlivre").joinpath("contract.json").read_text("utf-8"))
# What a transfer that breaks off raises.
LOST = (OSError, http.client.HTTPException, zlib.error)
_PIECE = 1 << 20
_LINE_MAX = _WHOLE_MAX = 1 << 26
_RETRY_AFTER_MAX = 600
# Until the service has answered once, its address is more likely wrong than the service away.
_FIRST_ATTEMPTS_MAX = 3
# A host has labels of at most 63 characters: others raise what is no OSError.
_LABEL = "[A-Za-z0-9_-]{1,63}"
_ADDRESS = re.compile(rf"(?i:https?)://(\[[0-9a-fA-F:.]+\]|{_LABEL}(\.{_LABEL})*\.?)(:[0-9]{{1,5}})?([/?][!-~]*)?")
# Characters that would steer a terminal, or turn the direction of a line.
_STEERING = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
CURSOR, ID, SHA256 = re.compile(r"[A-Za-z0-9._-]{1,64}"), re.compile(r"[0-9]{1,16}"), re.compile(r"[0-9a-f]{64}")


class GrandlivreError(Exception):
    """Every error of this package but WebhookRefused, and OSError where `export` cannot write its file.

    `code` is one of the service (`ERR-...`, docs/errors.md) or of this package: compare it, not the message. `remedy` says what
    to do. `status` is that of the answer, 0 without one; `retry_after` is in seconds. `details` are those of the service.
    `refusals` has an error for each ledger that was asked for and not given.
    """

    def __init__(self, code: str, message: str, **facts: Any) -> None:
        self.details: Mapping[str, Any] = facts.get("details") or {}
        self.issues: Sequence[Mapping[str, str]] = self.details.get("issues") or []
        named = (f"{each['parameter']}: {each['message']}" for each in self.issues)
        super().__init__(_readable("; ".join([message, *named])))
        self.code, self.status = _readable(code), int(facts.get("status", 0))
        self.request_id: str | None = facts.get("request_id") and _readable(facts["request_id"])
        self.retry_after: int | None = facts.get("retry_after")
        self.refusals: Sequence[GrandlivreError] = facts.get("refusals", ())
        unknown = "This version does not know the code: see the documentation of the service."
        self.remedy: str = CONTRACT["remedies"].get(code, unknown)

    def __str__(self) -> str:
        return f"{self.code}: {self.args[0]}"


def _readable(text: str) -> str:
    """What others say, safe for a terminal."""
    return _STEERING.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def is_address(url: object) -> bool:
    try:
        return isinstance(url, str) and _ADDRESS.fullmatch(url) is not None and urlsplit(url).port != 0
    except ValueError:  # A port beyond 65535, or no IPv6 between the brackets.
        return False


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
        self._response, self.status = response, response.status

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "") or ""

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def error(self, code: str, message: str, **facts: Any) -> GrandlivreError:
        request_id = self.header("X-Request-Id") or None
        return GrandlivreError(code, message, status=self.status, request_id=request_id, **facts)

    def pieces(self) -> Iterator[bytes]:
        """The body without its compression. Raises one of LOST if it is cut."""
        unpack = zlib.decompressobj(31) if self.header("Content-Encoding").lower() == "gzip" else None
        # Packed pieces are smaller, since each may become a thousand times as long.
        while piece := self._response.read(_PIECE >> 5 if unpack else _PIECE):
            yield unpack.decompress(piece) if unpack else piece
        if self._response.length or (unpack and not unpack.eof):
            raise ConnectionError("the body was cut")

    def lines(self) -> Iterator[bytes]:
        """Whole lines with their line feeds."""
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in whole)
            if len(rest) > _LINE_MAX:
                raise self.error("NOT-PROVEN", f"A line has more than {_LINE_MAX} bytes")
        if rest:
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


class Service:
    """The service at an address. It follows no redirect: the secret would go with it."""

    def __init__(self, url: str, credentials: Mapping[str, str | None], **options: Any) -> None:
        attempts, timeout, encoding = (options[name] for name in ("attempts", "timeout", "encoding"))
        is_right = is_address(url) and not re.search("[?#]", url)
        right: dict[str, object] = {"url": is_right, "encoding": encoding in ("gzip", "identity")}
        right |= {name: isinstance(value, str) and re.fullmatch("[!-~]+", value) for name, value in credentials.items()}
        right["society"] = credentials["society"] is None or right["society"]
        right["attempts"] = isinstance(attempts, int) and attempts > 0
        right["timeout"] = isinstance(timeout, (int, float)) and 0 < timeout < 1e9
        if wrong := [name for name, holds in right.items() if not holds]:
            raise GrandlivreError("INVALID-OPTION", f"{', '.join(wrong)}: not what it has to be (see Firm)")
        self._url = re.sub(r"/+(api/v1/*)?$", "", url + "/")
        headers = {"Authorization": f"Bearer {credentials['token']}", "X-Third-Party-Secret": credentials["secret"]}
        headers |= {"society-id": credentials["society"], "Accept-Encoding": encoding}
        self._headers = {name: value for name, value in headers.items() if value is not None}
        self.attempts: int = attempts
        self.sleep: Callable[[float], None] = options["sleep"]
        self._timeout, self._has_answered = timeout, False
        self._opener = urllib.request.OpenerDirector()
        for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
            self._opener.add_handler(handler())

    def ask(self, path: str, query: Mapping[str, object], accept: str, body: object = None) -> Answer:
        """A request that only reads: it is sent again where an answer is lost."""
        words = {name: ",".join(map(str, v)) if isinstance(v, (list, tuple)) else v for name, v in query.items() if v is not None}
        address = f"{self._url}/api/v1/{path}?{urlencode({'version': '1.0.0', **words})}"
        headers = {"Accept": accept, "Content-Type": "application/json", **self._headers}
        answer = self.fetch(address, headers, None if body is None else json.dumps(body).encode())
        media_type = answer.header("Content-Type").partition(";")[0].strip().lower()
        if media_type != accept:
            with answer:
                raise answer.error("UNEXPECTED-ANSWER", f"{path} came as {media_type or 'no media type'}, and not {accept}")
        return answer

    def whole(self, path: str, query: Mapping[str, object]) -> Any:
        """A short answer in JSON."""

        def connection() -> Iterator[Any]:
            with self.ask(path, query, "application/json") as answer:
                yield answer.json()

        return next(self.through_losses(connection, path))

    def fetch(self, address: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """Whatever is at an address. It gets no credentials but those in `headers`."""
        if not is_address(address):
            raise GrandlivreError("UNEXPECTED-ANSWER", f"{address[:99]} is no address of HTTP")
        request = urllib.request.Request(address, body, {"User-Agent": "grandlivre-python", **headers})
        for attempt in range(1, self.attempts + 1):
            try:
                return self._fetch_once(request)
            except GrandlivreError as error:
                most = self.attempts if self._has_answered else min(_FIRST_ATTEMPTS_MAX, self.attempts)
                wait = error.retry_after or 0
                may_pass = error.code == "CONNECTION-FAILED" or error.status in (429, 502, 503, 504)
                if not may_pass or attempt >= most or wait > _RETRY_AFTER_MAX:
                    raise
                self._pause(attempt, wait)
        raise AssertionError("the last attempt returns or raises")

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
                    raise GrandlivreError("CONNECTION-FAILED", f"{what} stopped coming: {error}") from None
                self._pause(attempt, 0)

    def _pause(self, attempt: int, at_least: float) -> None:
        """Longer after each failed attempt, and not the same for all clients."""
        self.sleep(at_least + random.random() * min(30.0, 0.5 * 2 ** (attempt - 1)))

    def _fetch_once(self, request: urllib.request.Request) -> Answer:
        named = f"{request.get_method()} {request.type}://{request.host}{urlsplit(request.full_url).path}"
        try:
            answer = Answer(self._opener.open(request, timeout=self._timeout))
        except LOST as error:
            why = error.reason if isinstance(error, URLError) else error or type(error).__name__
            raise GrandlivreError("CONNECTION-FAILED", f"{named}: {why}") from None
        self._has_answered = True
        if answer.status in (200, 206):
            return answer
        wait = answer.header("Retry-After")
        facts: dict[str, Any] = {"retry_after": int(wait) if re.fullmatch("[0-9]{1,9}", wait) else None}
        with answer:
            try:
                said = answer.json()["error"]
                raise answer.error(str(said["code"]), str(said["message"]), details=said.get("details"), **facts)
            except (*LOST, KeyError, TypeError, AttributeError):
                raise answer.error("UNEXPECTED-ANSWER", f"{named} was answered with status {answer.status}", **facts) from None
