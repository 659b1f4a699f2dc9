"""Rows of a ledger as tables of Arrow: whole blocks are parsed by columns, and written back as the lines that came."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import lt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from .errors import CONTRACT, GrandlivreError

LAST_ENTRY = 9007199254740991
EVERY_ID = (0, LAST_ENTRY)
# Ids of entries, both ends included, ascending and disjoint.
Ranges = Sequence[tuple[int, int]]
_TYPES = {
    "bigint": pa.int64(),
    "date": pa.date32(),
    "timestamptz": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
    "numeric(18,2)": pa.decimal128(18, 2),
    "numeric(18,6)": pa.decimal128(18, 6),
    "text": pa.string(),
    "json": pa.string(),
}
# Of each table, in the order of the service.
SCHEMAS: Mapping[str, Any] = {
    table: pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()]) for table, columns in CONTRACT["tables"].items()
}
# What COPY writes as a backslash and a letter. The backslash comes first.
_ESCAPES = {"\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# None comes as it is. The parser would end a row at a carriage return.
_NEVER = (b"\0", b"\b", b"\v", b"\f", b"\r")
# In one mebibyte at a time, two fifths of the time would go into calls.
_PARSED_AT_ONCE = 4 << 20
_PARSING = csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False, ignore_empty_lines=False)


class TableCheck:
    """Looks through rows of one table as they arrive: their values, their order, and what movements add up to."""

    def __init__(self, table: str, society: str, ranges: Ranges, fail: Callable[[str], Exception]) -> None:
        self._table, self._society, self._ranges, self._fail = table, society, ranges, fail
        self._held: list[bytes] = []
        self._batches: list[Any] = []
        self._parsed = 0
        names = SCHEMAS[table].names
        self._keys = [names[0], "movement_id"] if table == "movements" else [names[0]]
        texts = dict.fromkeys(names, pa.string())
        self._converting = csv.ConvertOptions(column_types=texts, null_values=[r"\N"], strings_can_be_null=True)
        self.count = 0
        # The ids of the last row: entry and movement, or its own.
        self.last: tuple[int, ...] = (-1,)
        self.debit = self.credit = Decimal("0.00")

    def take(self, block: bytes) -> int:
        """Whole lines. Returns how many. Raises, maybe later, if one is not what COPY writes, or not in its place."""
        self._held.append(block)
        rows = block.count(b"\n")
        self.count += rows
        if sum(map(len, self._held)) >= _PARSED_AT_ONCE:
            self._parse()
        return rows

    def result(self) -> pa.Table:
        """All rows, every one of them checked."""
        self._parse()
        return pa.Table.from_batches(self._batches, SCHEMAS[self._table])

    def _parse(self) -> None:
        block, self._held = b"".join(self._held), []
        if not block:
            return
        names = SCHEMAS[self._table].names
        reading = csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1)
        try:
            if any(sign in block for sign in _NEVER):
                raise pa.ArrowInvalid("a character came that COPY escapes")
            texts = csv.read_csv(pa.BufferReader(block), reading, _PARSING, self._converting)
        except pa.ArrowInvalid as error:
            raise self._wrong(f"or one after it is no row: {error}") from None
        columns = [self._column(field, texts[field.name].combine_chunks()) for field in SCHEMAS[self._table]]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMAS[self._table])
        self._take_ids([_integers(batch[key]) for key in self._keys])
        if self._table == "movements":
            self.debit += pc.sum(batch["debit"]).as_py()
            self.credit += pc.sum(batch["credit"]).as_py()
        self._batches.append(batch)
        self._parsed += batch.num_rows
        if self._parsed != self.count:
            raise self._wrong("or one before it is an empty line")

    def _wrong(self, what: str, row: int = 0) -> Exception:
        return self._fail(f"row {self._parsed + row + 1} of {self._table} {what}")

    def _column(self, field: Any, texts: Any) -> Any:
        """The values of a column. Written back they have to be the same texts: a copy would give other lines otherwise."""
        if field.type == pa.string():
            return self._unescaped(field.name, texts)
        try:
            values = pc.equal(texts, "t") if field.type == pa.bool_() else texts.cast(field.type)
        except pa.ArrowInvalid as error:
            raise self._wrong(f"or one after it has as {field.name} what COPY does not write: {error}") from None
        is_needed = field.name in (*self._keys, "debit", "credit")
        if not (written := _written(values)).equals(texts) or (texts.null_count and is_needed):
            row = pc.index(pc.coalesce(pc.equal(written, texts), texts.is_null() if texts.null_count else False), False)
            raise self._wrong(f"has as {field.name} what COPY does not write", row.as_py())
        return values

    def _unescaped(self, name: str, texts: Any) -> Any:
        if not _has(texts, "\\"):
            return texts
        is_escaped = pc.match_substring(texts, "\\")
        try:
            # No text has a NUL, which joins them: one pass costs a third of one for each.
            plain = re.sub(r"\\(.?)", lambda sign: _ESCAPES[sign[1]], "\0".join(texts.filter(is_escaped).to_pylist()))
        except KeyError as error:
            raise self._wrong(f"or one after it has as {name} what COPY does not write: an escaped {error}") from None
        return pc.replace_with_mask(texts, is_escaped, pa.array(plain.split("\0"), pa.string()))

    def _take_ids(self, columns: Sequence[Sequence[int]]) -> None:
        places = list(zip(*columns, strict=True))
        before = [self.last, *places[:-1]]
        if not all(map(lt, before, places)):
            row = next(row for row, place in enumerate(places) if place <= before[row])
            raise self._wrong(f"has the id {places[row]} after {before[row]}", row)
        if min(map(min, columns)) < 0 or max(map(max, columns)) > LAST_ENTRY:
            raise self._wrong("or one after it has an id beyond all")
        is_part = self._table == "movements" and list(self._ranges) != [EVERY_ID]
        if outside := [entry for entry in set(columns[0]) if is_part and not holds(self._ranges, entry)]:
            raise self._wrong(f"or one after it is of entry {outside[0]}, which was not announced")
        if self._table == "folders" and columns[0] != [int(self._society)]:
            raise self._wrong("is not the row of the folder")
        self.last = places[-1]


def holds(ranges: Ranges, entry: int) -> bool:
    at = bisect_right(ranges, entry, key=lambda each: each[0]) - 1
    return at >= 0 and entry <= ranges[at][1]


def lines_of(name: str, table: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Each row as the line that it came as, with the id in its first column. A table that went through a file or a
    DataFrame may have other types: the values count."""
    for batch in _ordered(name, table).to_batches(max_chunksize=50_000):
        texts = [_written(column) for column in batch.columns]
        for sign, meant in _ESCAPES.items():
            texts = [pc.replace_substring(each, meant, "\\" + sign) if _has(each, meant) else each for each in texts]
        lines = pc.binary_join_element_wise(*texts, "\t", null_handling="replace", null_replacement=r"\N")
        yield from zip(_integers(batch.column(0)), (line.encode() + b"\n" for line in lines.to_pylist()), strict=True)


def merged(before: pa.Table, ranges: Ranges, new: pa.Table) -> pa.Table:
    """Movements without those of entries in the ranges, and with the new ones in their places."""
    before, pieces, place = _ordered("movements", before), [], 0
    for first, last in ranges:
        pieces += [_between(before, place, first - 1), _between(new, first, last)]
        place = last + 1
    return pa.concat_tables([*pieces, _between(before, place, LAST_ENTRY)])


def joined(books: Mapping[str, Mapping[str, pa.Table]], name: str) -> pa.Table:
    """The tables of this name of all folders as one, with the id of the folder in the first column, `society_id`."""
    tables = []
    for society, book in books.items():
        ids = pa.repeat(pa.scalar(int(society), pa.int64()), book[name].num_rows)
        tables.append(book[name] if name == "folders" else book[name].add_column(0, "society_id", ids))
    return pa.concat_tables(tables)


def tuples_of(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows in the order of the columns: int, Decimal, date, datetime, bool, str, or None."""
    for batch in table.to_batches(max_chunksize=10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _written(column: Any) -> Any:
    """Values as texts, as COPY writes them, but for escapes."""
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "t", "f")
    if not pa.types.is_timestamp(column.type):
        return column.cast(pa.string())
    try:  # Whole seconds, as almost all are: an expression for each value takes ten times as long.
        texts = column.cast(pa.timestamp("s")).cast(pa.string())
    except pa.ArrowInvalid:
        texts = pc.replace_substring_regex(column.cast(pa.timestamp("us")).cast(pa.string()), r"\.?0*$", "")
    return pc.binary_join_element_wise(texts, "+00", "")


def _has(texts: Any, sign: str) -> bool:
    """Looks at the bytes of all texts: a function for each value would cost more than parsing them."""
    data = texts.buffers()[2]
    return data is not None and re.search(re.escape(sign.encode()), data) is not None


def _integers(column: Any) -> list[int]:
    """Of a column without nulls: ten times as fast as its `to_pylist`."""
    return memoryview(column.buffers()[1]).cast("q")[column.offset : column.offset + len(column)].tolist()


def _between(movements: pa.Table, first: int, last: int) -> pa.Table:
    entries = movements["entry_id"]
    start = bisect_left(entries, first, key=lambda entry: entry.as_py())
    return movements.slice(start, bisect_left(entries, last + 1, lo=start, key=lambda entry: entry.as_py()) - start)


def _ordered(name: str, table: pa.Table) -> pa.Table:
    """By entry and movement, or by the id in the first column."""
    keys = ["entry_id", "movement_id"] if name == "movements" else SCHEMAS[name].names[:1]
    try:
        table = table.select(SCHEMAS[name].names).cast(SCHEMAS[name])
    except (KeyError, pa.ArrowException) as error:
        raise GrandlivreError("INVALID-OPTION", f"The table {name} is not one of a ledger: {error}") from error
    places = list(zip(*(table[key].to_pylist() for key in keys), strict=True))
    return table if places == sorted(places) else table.sort_by([(key, "ascending") for key in keys])
