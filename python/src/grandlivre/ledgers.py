"""Reads one answer with many ledgers: what proves itself comes out a ledger at a time, anything else is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import pyarrow as pa

from .errors import GrandlivreError
from .service import CURSOR, ID, SHA256, misfit
from .tables import EVERY_ID, LAST_ENTRY, SCHEMAS, Ranges, TableCheck, merged, tuples_of

WHOLE_TABLES = tuple(name for name in SCHEMAS if name != "movements")
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
        return tuples_of(self.tables[table])

    def dicts(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table that came, by the names of its columns."""
        return (dict(zip(self.tables[table].column_names, row, strict=True)) for row in self.rows(table))

    def onto(self, tables: Mapping[str, pa.Table] | None) -> dict[str, pa.Table]:
        """The copy after this change. `tables` is the one before it, None if there is none."""
        if tables is None:
            return dict(self.tables)
        return {**tables, **self.tables, "movements": merged(tables["movements"], self.ranges, self.tables["movements"])}


@dataclass
class Wanted:
    """A ledger to ask for. What of it has come before its stream broke off is in `begun`."""

    society: str
    known: Known
    begun: Change | None = None

    def request(self) -> dict[str, object]:
        if "cursor" not in self.known:
            return {"society": self.society}
        entries = [[str(place) for place in each] for each in self.entries()]
        since = {"since": self.known["cursor"], "tables": self.known.get("tables", {})}
        return {"society": self.society, **since, **({"entries": entries} if entries else {})}

    def entries(self) -> Ranges:
        """The last of too many ranges holds what lies between, too."""
        ranges = [(first, last) for first, last in self.known.get("entries", ())]
        return ranges if len(ranges) <= _RANGES_MAX else [*ranges[: _RANGES_MAX - 1], (ranges[_RANGES_MAX - 1][0], ranges[-1][1])]


def union(ranges: Ranges) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def rest_of(ranges: Ranges) -> list[tuple[int, int]]:
    """All entries that are in none of the ranges."""
    ends = [-1, *(place for each in union(ranges) for place in each), LAST_ENTRY + 1]
    return [(last + 1, first - 1) for last, first in zip(ends[::2], ends[1::2], strict=True) if first - last > 1]


def read_ranges(pairs: Sequence[Any], fail: Callable[[str], Exception]) -> list[tuple[int, int]]:
    """Pairs of ids as texts, ascending and disjoint."""
    ranges, before = [], -1
    for pair in pairs:
        texts = pair if isinstance(pair, list) and len(pair) == 2 else [None, None]
        first, last = (int(each) if isinstance(each, str) and ID.fullmatch(each) else -1 for each in texts)
        if not before < first <= last <= LAST_ENTRY:
            raise fail(f"the ranges of entries are not ascending and disjoint at {str(pair)[:99]}")
        ranges.append((first, last))
        before = last
    return ranges


def frames(pieces: Iterator[bytes], fail: Callable[[str], Exception]) -> Iterator[tuple[bytes, bytes]]:
    """Each line of JSON, and before it the rows since the one before. Raises where more comes than either may hold."""
    held, scanned = b"", 0
    for piece in pieces:
        held, start = held + piece, 0
        while True:
            is_json = held.startswith(b"{", start)
            at = start if is_json else held.find(b"\n{", max(start, scanned - 1)) + 1 or len(held)
            end = held.find(b"\n", at) + 1
            if at - start > _MEBIBYTE and (at - start > _ROW_MAX + 1 or -1 < held.find(b"\n", start) < at - 1):
                raise fail("more than 1 MiB of rows came without a proof, or a row of more than 16 MiB")
            if (end or len(held)) - at > _MEBIBYTE + 1:
                raise fail("a line of JSON has more than 1 MiB")
            if not end:
                break
            yield held[start:at], held[at:end]
            start = scanned = end
        held, scanned = held[start:], at - start
    if held:
        raise ConnectionError("the body ended within a line, or before the proof of its rows")


class LedgersAnswer:
    """Takes the frames of one answer. `answered` counts the ledgers that ended or are refused."""

    def __init__(self, asked: Sequence[Wanted], request_id: str | None) -> None:
        self._asked, self._request_id = asked, request_id
        self.answered = 0
        self.refusals: list[tuple[Wanted, GrandlivreError]] = []
        self.is_whole = False
        self._ledger: Wanted | None = None
        self._table = ""

    def fail(self, what: str) -> GrandlivreError:
        where = f"Ledger {self._ledger.society}" if self._ledger else "The ledgers"
        return GrandlivreError("NOT-PROVEN", f"{where}: {what}", request_id=self._request_id)

    def _require(self, holds: object, what: str) -> None:
        if not holds:
            raise self.fail(what)

    def take(self, rows: bytes, text: bytes) -> Change | None:
        """The change that ended with this line, if one did."""
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            raise self.fail("a line that begins as JSON is none") from None
        kind = next((each for each in _LINES if each in line), None)
        due = ("table", "rows", "end", "refused") if self._ledger else ("ledger", "refused", "whole")
        if kind is None or kind not in due or self.is_whole:
            raise self.fail(f"no line was due that is {text[:99]!r}")
        self._require(not rows or kind == "rows" or (kind == "refused" and self._ledger), f'rows came before the line "{kind}"')
        self._require((wrong := misfit(line, _LINES[kind])) is None, f'{wrong} of the line "{kind}" is not what it has to be')
        if kind == "ledger":
            self._begin(line)
        elif kind == "table":
            self._begin_table(line["table"], line["columns"])
        elif kind == "rows":
            self._prove(rows, line["rows"], line["sha256"])
        elif kind == "end":
            return self._end(line)
        elif kind == "refused":
            asked = self._next(line["refused"])
            message = f"Ledger {asked.society}: {line['message']}"
            self.refusals.append((asked, GrandlivreError(line["code"], message, request_id=self._request_id)))
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

    def _begin(self, line: Mapping[str, Any]) -> None:
        self._ledger = asked = self._next(line["ledger"])
        since = asked.known.get("cursor")
        self._require(line.get("since", "") == since, f"it came since {str(line.get('since'))[:99]}, not since {since}")
        self._cursor: str = line["cursor"]
        self._ranges = read_ranges(line["entries"], self.fail)
        wanted = asked.entries() if since else [EVERY_ID]
        all_ = union(self._ranges)
        self._require(union([*all_, *wanted]) == all_, "entries that were asked for are in none of its ranges")
        self._table, self._tables, self._digests = "", dict[str, Any](), dict(asked.known.get("tables", {}))

    def _begin_table(self, name: str, columns: list[object]) -> None:
        asked, names = self._next(self._ledger.society if self._ledger else ""), list(SCHEMAS)
        if name not in SCHEMAS or columns != SCHEMAS[name].names:
            message = f"Ledger {asked.society}: the table {name[:99]} has other columns than this version of the package knows"
            raise GrandlivreError("UNEXPECTED-ANSWER", message, request_id=self._request_id)
        self._close_table()
        place, before = names.index(name), names.index(self._table) if self._table else -1
        self._require(place > before, f"the table {name} came after {self._table}")
        missing = [each for each in names[before + 1 : place] if each not in asked.known.get("tables", {})]
        self._require(not missing, f"the tables {', '.join(missing)} did not come")
        self._check = TableCheck(name, asked.society, self._ranges, self.fail)
        self._table, self._hash, self._proofs = name, hashlib.sha256(), list[int]()

    def _close_table(self) -> None:
        if not self._table:
            return
        self._require(self._proofs, f"the table {self._table} ended without a proof")
        self._require(self._table != "folders" or self._check.count == 1, "the table folders has more or less than a row")
        self._tables[self._table] = self._check.result()
        if self._table != "movements":
            self._digests[self._table] = self._hash.hexdigest()

    def _prove(self, rows: bytes, count: int, sha256: str) -> None:
        self._require(self._table, "rows came before a table")
        self._require(hashlib.sha256(rows).hexdigest() == sha256, f"rows of {self._table} differ from their SHA-256")
        came = self._check.take(rows)
        self._require(came == count, f"{came} rows of {self._table} came, and their proof says {count}")
        self._require(not self._proofs or (came and self._proofs[-1]), f"{self._table} went on after its last proof")
        self._proofs.append(came)
        self._hash.update(rows if self._table != "movements" else b"")

    def _end(self, line: Mapping[str, Any]) -> Change:
        asked = self._next(line["end"])
        self._require(self._table == "movements", "it ended before its movements")
        self._close_table()
        sums = {"rows": self._check.count, "debit": f"{self._check.debit:.2f}", "credit": f"{self._check.credit:.2f}"}
        for name, came in sums.items():
            self._require(line[name] == came, f"{name} of its movements are {came}, and its end says {str(line[name])[:99]}")
        for name in WHOLE_TABLES:
            is_same = name in line["tables"] and line["tables"][name] == self._digests.get(name)
            self._require(is_same, f"the table {name} differs from its SHA-256 at the end")
        self.answered, self._ledger = self.answered + 1, None
        return self._change(asked, {})

    def _change(self, asked: Wanted, more: Known) -> Change:
        known: Known = {"cursor": self._cursor, "tables": self._digests, "employees": asked.known.get("employees", False), **more}
        change = Change(asked.society, asked.known.get("cursor"), self._ranges, self._tables, known)
        if begun := asked.begun:
            ranges = union([*begun.ranges, *self._ranges])
            return replace(change, since=begun.since, ranges=ranges, tables=change.onto(begun.tables))
        return change

    def begun(self) -> Wanted | None:
        """After a break: the ledger under way, asked for from the last entry of which movements came."""
        asked = self._ledger
        if asked is None or self._table != "movements" or not self._check.count:
            return None
        if asked.begun and self._check.last[0] <= asked.entries()[0][0]:
            return None  # It is no further than before.
        self._tables["movements"], entry = self._check.result(), self._check.last[0]
        change = self._change(asked, {"entries": [(max(first, entry), last) for first, last in self._ranges if last >= entry]})
        return Wanted(asked.society, change.known, change)
