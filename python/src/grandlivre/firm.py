"""A firm: every ledger that a token opens, what changed in them, and the proof that a copy is right."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from .ledgers import WHOLE_TABLES, Change, Known, LedgersAnswer, Wanted, frames, read_ranges, rest_of
from .service import CURSOR, ID, SHA256, Answer, GrandlivreError, Service, misfit
from .tables import EVERY_ID, Ranges, lines_of

# What the service takes in one request.
_LEDGERS_MAX = 10_000
_NOTHING = (0, hashlib.sha256().hexdigest())
_FOLDER = {"society": ID, "firm": dict, "name": str, "cursor": CURSOR, "employees": bool}
_DIGESTS = {"society": ID, "cursor": CURSOR, "rows": int, "digest": SHA256, "tables": dict, "blocks": list}
_BLOCK = {"from": ID, "to": ID, "rows": int, "sha256": SHA256}
Blocks = Mapping[tuple[int, int], tuple[int, str]]


@dataclass(frozen=True)
class Digests:
    """The SHA-256 of a ledger's rows at the state `cursor`: by table but movements, and of these by ranges of entries, with
    the number of rows in each."""

    society: str
    cursor: str
    tables: Mapping[str, str]
    blocks: Blocks

    def named(self) -> dict[str, str]:
        """The blocks as `Known` has them."""
        return {f"{first}-{last}": sha256 for (first, last), (_, sha256) in self.blocks.items()}


@dataclass(frozen=True)
class Proof:
    """Where a copy differs from the ledger: in these `tables`, and in movements of these `entries`. If it does, `changes`
    with `known` brings what differs; if not, `known` is that of the copy."""

    society: str
    tables: Sequence[str]
    entries: Ranges
    known: Known

    @property
    def is_equal(self) -> bool:
        return not self.tables and not self.entries


class Firm:
    """All folders of a firm token, or the one of a company token.

    `url` is that of the service, `society` the id of a folder that alone is wanted. `encoding` is how answers travel: gzip,
    or identity on the same machine. What may pass later is tried `attempts` times, and so is a stream on which nothing
    comes for `timeout` seconds.
    """

    def __init__(
        self, url: str, token: str, secret: str, society: str | None = None, *, encoding: Literal["gzip", "identity"] = "gzip",
        attempts: int = 10, timeout: float = 60, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        credentials = {"token": token, "secret": secret, "society": society}
        self._service = Service(url, credentials, encoding=encoding, attempts=attempts, timeout=timeout, sleep=sleep)

    def ledgers(self) -> list[dict[str, Any]]:
        """The folders, ascending by id: `society`, `firm`, `name`, `reference`, `cursor` and `employees` of each
        (docs/spec/ledgers.md#the-list). Another cursor is a ledger that changed."""
        folders = self._service.whole("mad/ledgers", {})
        is_list = isinstance(folders, list) and not any(misfit(each, _FOLDER) for each in folders)
        places = [int(each["society"]) for each in folders] if is_list else [0, 0]
        if places != sorted(set(places)):
            raise GrandlivreError("NOT-PROVEN", "The list of ledgers is not ascending, or says too little of one")
        return list(folders)

    def changes(self, known: Mapping[str, Known] | None = None) -> Iterator[Change]:
        """What changed in each ledger since the copy of it that `known` names by folder; of any other folder, everything. A
        ledger comes once it is proven to its end; one that has not changed, or that the token no longer opens, does not come.

        A cursor that is refused, as after a failover, costs what differs from its `blocks`, or the ledger once more. Raises
        at the end if ledgers were refused, with an error for each in `refusals`.
        """
        wanted, had = [], dict(known or {})
        for folder in self.ledgers():
            copy = had.setdefault(folder["society"], {})
            is_same = (copy.get("cursor"), copy.get("employees")) == (folder["cursor"], folder["employees"])
            if not is_same or "entries" in copy:
                wanted.append(Wanted(folder["society"], {**copy, "employees": folder["employees"]}))
        refusals: list[tuple[Wanted, GrandlivreError]] = []
        yield from self._read(wanted, refusals)
        refused = [error for _, error in refusals if error.code != "ERR-CURSOR-EXPIRED"]
        expired = {asked.society: asked.known["employees"] for asked, error in refusals if error.code == "ERR-CURSOR-EXPIRED"}
        wanted, refusals = [], []
        for digests in self._digests(list(expired), refused):
            copy, society = had[digests.society], digests.society
            kept = copy.get("blocks", {}).items()
            right = [place for place, named in zip(digests.blocks, digests.named().items(), strict=True) if named in kept]
            level: Known = {"cursor": digests.cursor, "entries": rest_of(right), "employees": expired[society]}
            wanted.append(Wanted(society, {"tables": copy.get("tables", {}), **level}))
        yield from self._read(wanted, refusals)
        _raise_refused([*refused, *(error for _, error in refusals)])

    def digests(self, societies: Sequence[str]) -> Iterator[Digests]:
        """Those of these ledgers, in their order. Raises at the end if ledgers were refused."""
        refused: list[GrandlivreError] = []
        yield from self._digests(societies, refused)
        _raise_refused(refused)

    def verify(self, books: Mapping[str, Mapping[str, pa.Table]]) -> Iterator[Proof]:
        """Compares copies, by folder and table, with the ledgers as they are now. Each row is written as the line that it
        came as, and hashed: a value that was changed, a row that was added or is missing shows."""
        # Read before the digests: a token that gains or loses the group later differs from it at the next `changes`.
        employees = {folder["society"]: folder["employees"] for folder in self.ledgers()}
        for digests in self.digests(list(books)):
            book, blocks = books[digests.society], digests.blocks
            if missing := [name for name in (*WHOLE_TABLES, "movements") if name not in book]:
                raise GrandlivreError("INVALID-OPTION", f"The copy of {digests.society} lacks the tables {', '.join(missing)}")
            tables = {name: _by_places(lines_of(name, book[name]), [EVERY_ID])[EVERY_ID][1] for name in WHOLE_TABLES}
            found = _by_places(lines_of("movements", book["movements"]), sorted([*blocks, *rest_of(list(blocks))]))
            entries = [place for place in found if found[place] != blocks.get(place, _NOTHING)]
            differing = [name for name in WHOLE_TABLES if tables[name] != digests.tables[name]]
            known: Known = {"cursor": digests.cursor, "tables": tables, "blocks": digests.named()}
            known["employees"] = employees.get(digests.society, False)
            if entries or differing:
                known["entries"] = entries
            yield Proof(digests.society, differing, entries, known)

    def _read(self, wanted: Sequence[Wanted], refusals: list[tuple[Wanted, GrandlivreError]]) -> Iterator[Change]:
        left = list(wanted)

        def connection() -> Iterator[Change]:
            while asked := left[:_LEDGERS_MAX]:
                body = {"ledgers": [each.request() for each in asked]}
                with self._service.ask("mad/ledgers/changes", {}, "application/vnd.grandlivre.ledgers", body) as answer:
                    reader = LedgersAnswer(asked, answer)
                    try:
                        for rows, line in frames(answer.pieces(), reader.fail):
                            if change := reader.take(rows, line):
                                yield change
                        if not reader.is_whole:
                            raise ConnectionError("the answer ended before its last line")
                    finally:
                        refusals.extend(reader.refusals)
                        del left[: reader.answered]

        yield from self._service.through_losses(connection, "The ledgers")

    def _digests(self, societies: Sequence[str], refused: list[GrandlivreError]) -> Iterator[Digests]:
        left = list(societies)

        def connection() -> Iterator[Digests | None]:
            while asked := left[:_LEDGERS_MAX]:
                body = {"ledgers": [{"society": society} for society in asked]}
                with self._service.ask("mad/ledgers/blocks", {}, "application/x-ndjson", body) as answer:
                    for text, society in zip(answer.lines(), asked, strict=False):
                        digests = _read_digests(text, society, answer, refused)
                        del left[0]
                        yield digests
                    if len(left) > len(societies) - len(asked):
                        raise ConnectionError("the answer ended before the last ledger")

        yield from filter(None, self._service.through_losses(connection, "The digests"))


def _read_digests(text: bytes, society: str, answer: Answer, refused: list[GrandlivreError]) -> Digests | None:
    def fail(what: str) -> GrandlivreError:
        return answer.error("NOT-PROVEN", f"The digests of ledger {society}: {what}")

    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        raise fail("a line is no JSON") from None
    if not misfit(line, {"refused": ID, "code": str, "message": str}) and line["refused"] == society:
        refused.append(answer.error(line["code"], f"Ledger {society}: {line['message']}"))
        return None
    wrong = misfit(line, _DIGESTS) or misfit(line["tables"], dict.fromkeys(WHOLE_TABLES, SHA256))
    if wrong or line["society"] != society:
        raise fail(f"{wrong or 'society'} is not what it has to be")
    blocks = read_blocks(line["blocks"], line["digest"], fail)
    if sum(rows for rows, _ in blocks.values()) != line["rows"]:
        raise fail("the blocks have other rows than the ledger")
    return Digests(society, line["cursor"], line["tables"], blocks)


def read_blocks(blocks: Sequence[Any], digest: str, fail: Callable[[str], Exception]) -> Blocks:
    """Number and SHA-256 of movements by ranges of entries. `digest` is that of all their digests."""
    if not isinstance(blocks, list) or any(misfit(block, _BLOCK) for block in blocks):
        raise fail("a block is none")
    ranges = read_ranges([[block["from"], block["to"]] for block in blocks], fail)
    if hashlib.sha256(b"".join(bytes.fromhex(block["sha256"]) for block in blocks)).hexdigest() != digest:
        raise fail("the blocks are not those of their digest")
    return {place: (block["rows"], block["sha256"]) for place, block in zip(ranges, blocks, strict=True)}


def _by_places(lines: Iterator[tuple[int, bytes]], places: Ranges) -> Blocks:
    """Number and SHA-256 of the lines in each of these ranges, which lie side by side."""
    found, line = dict[tuple[int, int], tuple[int, str]](), next(lines, None)
    for place in places:
        count, sum_ = 0, hashlib.sha256()
        while line and (line[0] <= place[1] or place == places[-1]):
            sum_.update(line[1])
            count, line = count + 1, next(lines, None)
        found[place] = (count, sum_.hexdigest())
    return found


def _raise_refused(refused: Sequence[GrandlivreError]) -> None:
    if refused:
        names = "; ".join(error.args[0] for error in refused[:10])
        raise GrandlivreError(refused[0].code, f"{len(refused)} ledgers were refused: {names}", refusals=refused)
