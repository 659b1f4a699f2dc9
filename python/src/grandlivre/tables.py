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

from .service import CONTRACT, GrandlivreError

LAST_ENTRY = 9007199254740991
EVERY_ID = (0, LAST_ENTRY)
# Ids of entries, both ends included, ascending and disjoint.
Ranges = Sequence[tuple[int, int]]
_TYPES = {"bigint": pa.int64(), "date": pa.date32(), "timestamptz": pa.timestamp("us", "UTC"), "boolean": pa.bool_()}
_TYPES |= {"text": pa.string(), "json": pa.string()}
_TYPES |= {"numeric(18,2)": pa.decimal128(18, 2), "numeric(18,6)": pa.decimal128(18, 6)}
# Of each table, in the order of the service.
SCHEMAS: Mapping[str, Any] = {
    table: pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()]) for table, columns in CONTRACT["tables"].items()
}
# What COPY writes as a backslash and a letter. The backslash comes first.
_ESCAPES = {"\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# None comes as it is. The parser would end a row at a carriage return.
_NEVER = (b"\0", b"\b", b"\v", b"\f", b"\r")
_PARSING = csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False, ignore_empty_lines=False)


class TableCheck:
    """Looks through rows of one table as they arrive: their values, their order, and what movements add up to."""

    def __init__(self, table: str, society: str, ranges: Ranges, fail: Callable[[str], Exception]) -> None:
        self._table, self._society, self._ranges, self._fail = table, society, ranges, fail
        self._schema = SCHEMAS[table]
        self._keys = ["entry_id", "movement_id"] if table == "movements" else self._schema.names[:1]
        self._batches, self.count = list[Any](), 0
        # The ids of the last row: entry and movement, or its own.
        self.last: tuple[int, ...] = (-1,)
        self.debit = self.credit = Decimal("0.00")

    def take(self, block: bytes) -> int:
        """Whole lines. Returns how many. Raises if one is not what COPY writes, or not in its place."""
        if not block:
            return 0
        rows, names = block.count(b"\n"), self._schema.names
        reading = csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1)
        texts = dict.fromkeys(names, pa.string())
        converting = csv.ConvertOptions(column_types=texts, null_values=[r"\N"], strings_can_be_null=True)
        try:
            read = csv.read_csv(pa.BufferReader(block), reading, _PARSING, converting)
        except pa.ArrowInvalid as error:
            raise self._wrong(f"or one after it is no row: {error}") from None
        self._require(not any(sign in block for sign in _NEVER), "or one after it has a character that COPY escapes")
        columns = [self._column(field, read[field.name].combine_chunks()) for field in self._schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._require(batch.num_rows == rows, "or one after it is an empty line")
        self._take_ids([_integers(batch[key]) for key in self._keys])
        if self._table == "movements":
            self.debit += pc.sum(batch["debit"]).as_py()
            self.credit += pc.sum(batch["credit"]).as_py()
        self._batches.append(batch)
        self.count += rows
        return rows

    def result(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, self._schema)

    def _wrong(self, what: str) -> Exception:
        return self._fail(f"row {self.count + 1} of {self._table} {what}")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise self._wrong(what)

    def _column(self, field: Any, texts: Any) -> Any:
        """The values of a column. Written back they have to be the same texts: a copy would give other lines otherwise."""
        try:
            if field.type == pa.string():
                return _unescaped(texts) if _has(texts, "\\") else texts
            values = pc.equal(texts, "t") if field.type == pa.bool_() else texts.cast(field.type)
            is_there = texts.null_count == 0 or field.name not in (*self._keys, "debit", "credit")
            if is_there and _written(values).equals(texts):
                return values
        except (pa.ArrowInvalid, KeyError):
            pass
        raise self._wrong(f"or one after it has as {field.name} what COPY does not write, or Arrow not hold")

    def _take_ids(self, columns: Sequence[Sequence[int]]) -> None:
        places = list(zip(*columns, strict=True))
        before = [self.last, *places[:-1]]
        self._require(all(map(lt, before, places)), "or one after it has an id that is not after the one before")
        is_id = min(map(min, columns)) >= 0 and max(map(max, columns)) <= LAST_ENTRY
        self._require(is_id, "or one after it has an id beyond all")
        is_all = self._table != "movements" or list(self._ranges) == [EVERY_ID]
        is_announced = is_all or all(holds(self._ranges, entry) for entry in set(columns[0]))
        self._require(is_announced, "or one after it is of an entry that was not announced")
        self._require(self._table != "folders" or columns[0] == [int(self._society)], "is not that of the folder")
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
        pieces += [_between(before, place, first), _between(new, first, last + 1)]
        place = last + 1
    return pa.concat_tables([*pieces, _between(before, place, LAST_ENTRY + 1)])


def joined(books: Mapping[str, Mapping[str, pa.Table]], name: str) -> pa.Table:
    """The tables of this name of all folders as one, with the id of the folder in the first column, `society_id`."""
    if name not in SCHEMAS:
        raise GrandlivreError("INVALID-OPTION", f"name: {name} is none of the tables {', '.join(SCHEMAS)}")
    tables = []
    for society, book in [("0", {name: SCHEMAS[name].empty_table()}), *books.items()]:
        if name not in book:
            raise GrandlivreError("INVALID-OPTION", f"books: the copy of {society} lacks the table {name}")
        table = _fitting(name, book[name])
        ids = pa.repeat(pa.scalar(int(society), pa.int64()), table.num_rows)
        tables.append(table if name == "folders" else table.add_column(0, "society_id", ids))
    return pa.concat_tables(tables)


def _written(column: Any) -> Any:
    """Values as texts, as COPY writes them, without its escapes."""
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


def _unescaped(texts: Any) -> Any:
    """Raises KeyError for what is no escape of COPY. No text has a NUL, which joins those that have one."""
    is_escaped = pc.match_substring(texts, "\\")
    plain = re.sub(r"\\(.?)", lambda sign: _ESCAPES[sign[1]], "\0".join(texts.filter(is_escaped).to_pylist()))
    return pc.replace_with_mask(texts, is_escaped, pa.array(plain.split("\0"), pa.string()))


def _integers(column: Any) -> list[int]:
    """Of a column without nulls: ten times as fast as its `to_pylist`."""
    return memoryview(column.buffers()[1]).cast("q")[column.offset : column.offset + len(column)].tolist()


def _between(movements: pa.Table, first: int, end: int) -> pa.Table:
    start, stop = (bisect_left(movements["entry_id"], entry, key=lambda each: each.as_py()) for entry in (first, end))
    return movements.slice(start, stop - start)


def _ordered(name: str, table: pa.Table) -> pa.Table:
    """By entry and movement, or by the id in the first column."""
    table = _fitting(name, table)
    keys = ["entry_id", "movement_id"] if name == "movements" else SCHEMAS[name].names[:1]
    places = list(zip(*(table[key].to_pylist() for key in keys), strict=True))
    return table if places == sorted(places) else table.sort_by([(key, "ascending") for key in keys])


def _fitting(name: str, table: pa.Table) -> pa.Table:
    """With the columns and types of a ledger: through a file or a DataFrame they may have become others."""
    try:
        return table.select(SCHEMAS[name].names).cast(SCHEMAS[name])
    except (KeyError, AttributeError, TypeError, pa.ArrowException) as error:
        raise GrandlivreError("INVALID-OPTION", f"The table {name} is not one of a ledger: {error}") from error
