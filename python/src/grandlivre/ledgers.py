"""Reads one answer with many ledgers: what proves itself comes out a ledger at a time, anything else is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import pyarrow as pa

from .service import CURSOR, ID, SHA256, Answer, GrandlivreError, misfit
from .tables import EVERY_ID, LAST_ENTRY, SCHEMAS, Ranges, TableCheck, merged

TABLES = list(SCHEMAS)
WHOLE_TABLES = TABLES[:-1]
_MEBIBYTE = 1 << 20
_ROW_MAX = 16 * _MEBIBYTE
_RANGES_MAX = 1000
# The kinds of lines, by their first member, and what each has to have.
_LINES: Mapping[str, Mapping[str, Any]] = {
    "ledger": {"ledger": ID, "cursor": CURSOR, "entries": list},
    "table": {"table": str, "columns": list},
    "end": {"end": ID, "rows": int, "debit": str, "credit": str, "tables": dict},
    "refused": {"refused": ID, "code": str, "message": str},
    "whole": {"whole": int, "refusals": int},
    "rows": {"rows": int, "sha256": SHA256},
}


class Known(TypedDict, total=False):
    """What a copy of a ledger is: keep it with the rows, as JSON for example, and `changes` goes on from there.

    `cursor` names the state of the copy, `tables` has the SHA-256 of the rows of each table but movements, `employees` says
    whether accounts of employees came with their personal data. With `blocks`, the SHA-256 of movements by ranges of entries
    (`0-8191`), a refused cursor costs only what differs. `entries` are wanted whether they changed or not.
    """

    cursor: str
    tables: Mapping[str, str]
    employees: bool
    blocks: Mapping[str, str]
    entries: Ranges


@dataclass(frozen=True)
class Change:
    """A ledger as it is now, or what changed in it since `since`, proven to its end.

    Drop the movements of entries in `ranges`, put those of `tables` in their places, replace every other table that is in
    `tables`, and keep it all together with `known`. `onto` does this.
    """

    society: str
    since: str | None
    ranges: Ranges
    tables: Mapping[str, pa.Table]
    known: Known

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table that came, as tuples in the order of its columns."""
        return zip(*(column.to_pylist() for column in self.tables[table].columns), strict=True)

    def dicts(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table that came, by the names of its columns."""
        return (row for batch in self.tables[table].to_batches(10_000) for row in batch.to_pylist())

    def onto(self, tables: Mapping[str, pa.Table] | None) -> dict[str, pa.Table]:
        """The copy after this change. `tables` is the one before it, None if there is none: a change since a cursor raises."""
        if tables is None and self.since is not None:
            raise GrandlivreError("INVALID-OPTION", f"tables: ledger {self.society} came since {self.since}: its copy is needed")
        if tables is None:
            return dict(self.tables)
        return {**tables, **self.tables, "movements": merged(tables["movements"], self.ranges, self.tables["movements"])}


@dataclass
class Wanted:
    """A ledger to ask for."""

    society: str
    known: Known

    def entries(self) -> Ranges:
        """The last of too many ranges holds what lies between, too."""
        ranges = [(first, last) for first, last in self.known.get("entries", ())]
        return ranges if len(ranges) <= _RANGES_MAX else [*ranges[: _RANGES_MAX - 1], (ranges[_RANGES_MAX - 1][0], ranges[-1][1])]

    def request(self) -> dict[str, object]:
        entries = [[str(first), str(last)] for first, last in self.entries()]
        given = {"since": self.known.get("cursor"), "tables": self.known.get("tables"), "entries": entries}
        return {"society": self.society, **{name: value for name, value in given.items() if value and given["since"]}}


def union(ranges: Ranges) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        is_next = joined and first <= joined[-1][1] + 1
        before = joined.pop() if is_next else (first, last)
        joined.append((before[0], max(last, before[1])))
    return joined


def rest_of(ranges: Ranges) -> list[tuple[int, int]]:
    """All entries that are in none of the ranges."""
    ends = [-1, *(place for each in union(ranges) for place in each), LAST_ENTRY + 1]
    return [(last + 1, first - 1) for last, first in zip(ends[::2], ends[1::2], strict=True) if first - last > 1]


def read_ranges(pairs: Sequence[Any], fail: Callable[[str], Exception]) -> list[tuple[int, int]]:
    """Pairs of ids as texts, ascending and disjoint."""
    places = [place for pair in pairs for place in (pair if isinstance(pair, list) and len(pair) == 2 else [None])]
    ids = [int(place) if isinstance(place, str) and ID.fullmatch(place) else -1 for place in places]
    ends = [-1, *ids, LAST_ENTRY + 1]
    is_right = -1 not in ids and all(first <= last for first, last in zip(ids[::2], ids[1::2], strict=True))
    if not is_right or any(last >= first for last, first in zip(ends[::2], ends[1::2], strict=True)):
        raise fail("the ranges of entries are not ascending and disjoint")
    return list(zip(ids[::2], ids[1::2], strict=True))


def frames(pieces: Iterator[bytes], fail: Callable[[str], Exception]) -> Iterator[tuple[bytes, bytes]]:
    """Each line of JSON, and before it the rows since the one before. Raises where more comes than either may hold."""
    held, scanned = b"", 0
    for piece in pieces:
        held, start, end = held + piece, 0, 1
        while end:
            is_json = held.startswith(b"{", start)
            at = start if is_json else held.find(b"\n{", max(start, scanned - 1)) + 1 or len(held)
            end = held.find(b"\n", at) + 1
            if at - start > _MEBIBYTE and (at - start > _ROW_MAX + 1 or -1 < held.find(b"\n", start) < at - 1):
                raise fail("more than 1 MiB of rows came without a proof, or a row of more than 16 MiB")
            if (end or len(held)) - at > _MEBIBYTE + 1:
                raise fail("a line of JSON has more than 1 MiB")
            if end:
                yield held[start:at], held[at:end]
                start = scanned = end
        held, scanned = held[start:], at - start
    if held:
        raise ConnectionError("the body ended within a line, or before the proof of its rows")


class LedgersAnswer:
    """Takes the frames of one answer. `answered` counts the ledgers that ended or are refused."""

    def __init__(self, asked: Sequence[Wanted], answer: Answer) -> None:
        self._asked, self._answer = asked, answer
        self.answered, self.is_whole = 0, False
        self.refusals: list[tuple[Wanted, GrandlivreError]] = []
        self._ledger: Wanted | None = None

    def fail(self, what: str, code: str = "NOT-PROVEN") -> GrandlivreError:
        return self._answer.error(code, f"{f'Ledger {self._ledger.society}' if self._ledger else 'The ledgers'}: {what}")

    def _require(self, holds: object, what: str) -> None:
        if not holds:
            raise self.fail(what)

    def take(self, rows: bytes, text: bytes) -> Change | None:
        """The change that ended with this line, if one did."""
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            raise self.fail("a line that begins as JSON is none") from None
        kind = next((each for each in _LINES if each in line), "")
        due = ("table", "rows", "end", "refused") if self._ledger else ("ledger", "refused", "whole")
        self._require(kind in due and not self.is_whole, f"no line was due that is {text[:99]!r}")
        self._require(not rows or kind == "rows" or (kind == "refused" and self._ledger), f'rows came before the line "{kind}"')
        self._require((wrong := misfit(line, _LINES[kind])) is None, f'{wrong} of the line "{kind}" is not what it has to be')
        if kind == "end":
            return self._end(self._next(line["end"]), line)
        if kind == "ledger":
            self._begin(self._next(line["ledger"]), line)
        elif kind == "table":
            self._begin_table(line["table"], line["columns"])
        elif kind == "rows":
            self._prove(rows, line["rows"], line["sha256"])
        elif kind == "refused":
            asked = self._next(line["refused"])
            error = self._answer.error(line["code"], f"Ledger {asked.society}: {line['message']}")
            self.refusals.append((asked, error))
            self.answered, self._ledger = self.answered + 1, None
        else:
            ended = {"whole": self.answered - len(self.refusals), "refusals": len(self.refusals)}
            self._require(line == ended and self.answered == len(self._asked), f"{ended} came, not {text[:99]!r}")
            self.is_whole = True
        return None

    def _next(self, society: str) -> Wanted:
        asked = self._ledger or (self._asked[self.answered] if self.answered < len(self._asked) else None)
        if asked is None or asked.society != society:
            raise self.fail(f"ledger {society} came where {asked.society if asked else 'none'} was asked for")
        return asked

    def _begin(self, asked: Wanted, line: Mapping[str, Any]) -> None:
        self._ledger, self._cursor, since = asked, line["cursor"], asked.known.get("cursor")
        self._require(line.get("since", "") == since, f"it came since {str(line.get('since'))[:99]}, not since {since}")
        self._ranges = read_ranges(line["entries"], self.fail)
        wanted = asked.entries() if since else [EVERY_ID]
        is_in = union([*self._ranges, *wanted]) == union(self._ranges)
        self._require(is_in, "entries that were asked for are in none of its ranges")
        self._table, self._tables, self._digests = "", dict[str, Any](), dict(asked.known.get("tables", {}))

    def _begin_table(self, name: str, columns: list[object]) -> None:
        if name not in SCHEMAS or columns != SCHEMAS[name].names:
            raise self.fail(f"the table {name[:99]} has other columns than this version knows", "UNEXPECTED-ANSWER")
        self._close_table()
        place, before = TABLES.index(name), TABLES.index(self._table) if self._table else -1
        missing = [each for each in TABLES[before + 1 : place] if each not in self._digests]
        self._require(place > before and not missing, f"the table {name} came after {self._table}, and {missing} did not")
        self._check = TableCheck(name, self._ledger.society if self._ledger else "", self._ranges, self.fail)
        self._table, self._hash, self._proofs = name, hashlib.sha256(), list[int]()

    def _close_table(self) -> None:
        if self._table:
            self._require(self._proofs, f"the table {self._table} ended without a proof")
            self._require(self._table != "folders" or self._check.count == 1, "the table folders has more or less than a row")
            self._tables[self._table] = self._check.result()
            self._digests |= {self._table: self._hash.hexdigest()} if self._table != "movements" else {}

    def _prove(self, rows: bytes, count: int, sha256: str) -> None:
        self._require(self._table, "rows came before a table")
        self._require(hashlib.sha256(rows).hexdigest() == sha256, f"rows of {self._table} differ from their SHA-256")
        came = self._check.take(rows)
        self._require(came == count, f"{came} rows of {self._table} came, and their proof says {count}")
        self._require(not self._proofs or (came and self._proofs[-1]), f"{self._table} went on after its last proof")
        self._proofs.append(came)
        self._hash.update(rows if self._table != "movements" else b"")

    def _end(self, asked: Wanted, line: Mapping[str, Any]) -> Change:
        self._require(self._table == "movements", "it ended before its movements")
        self._close_table()
        came = {"rows": self._check.count, "debit": f"{self._check.debit:.2f}", "credit": f"{self._check.credit:.2f}"}
        came |= {name: self._digests.get(name, "") for name in WHOLE_TABLES}
        for name, value in came.items():
            said = {**line["tables"], **line}.get(name)
            self._require(said == value, f"{name} is {value}, and its end says {str(said)[:99]}")
        self.answered, self._ledger = self.answered + 1, None
        employees = asked.known.get("employees", False)
        known: Known = {"cursor": self._cursor, "tables": self._digests, "employees": employees}
        return Change(asked.society, asked.known.get("cursor"), self._ranges, self._tables, known)
