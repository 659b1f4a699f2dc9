"""A source for dlt (https://dlthub.com): all ledgers of a token the first time, then only what has changed.

Needs dlt: `pip install './grandlivre-0.3.0-py3-none-any.whl[dlt]'`. Set SOURCES__GRANDLIVRE__URL, __TOKEN and __SECRET, or
write them into .dlt/secrets.toml. A firm token loads all folders of its firm, or the one that SOURCES__GRANDLIVRE__SOCIETY
names; rows of a folder that it no longer opens stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import dlt

from .firm import Firm
from .ledgers import Change
from .service import CONTRACT

_TYPES: dict[str, dict[str, object]] = {
    "timestamptz": {"data_type": "timestamp"},
    "boolean": {"data_type": "bool"},
    "numeric(18,2)": {"data_type": "decimal", "precision": 18, "scale": 2},
    "numeric(18,6)": {"data_type": "decimal", "precision": 18, "scale": 6},
    "json": {"data_type": "text"},
}


@dlt.source(name="grandlivre", max_table_nesting=0)  # type: ignore[untyped-decorator]
def grandlivre(
    url: str = dlt.secrets.value, token: str = dlt.secrets.value, secret: str = dlt.secrets.value, society: str = ""
) -> Any:
    """The tables of docs/spec/ledgers.md#tables, each with the id of the folder in `society_id`."""

    @dlt.resource  # type: ignore[untyped-decorator]
    def ledgers() -> Iterator[Any]:
        firm = Firm(url, token, secret, str(society) or None)
        known = dlt.current.resource_state().setdefault("known", {})
        # Before the first row, since rows of this run enter the schema: the destination has the table once a run had rows of it.
        has_movements = "movements" in dlt.current.source_schema().data_table_names(seen_data_only=True)
        changed = []
        for change in firm.changes(known):
            is_there = has_movements and change.society in known
            for table in change.tables:
                yield from _replaced(table, change, is_there)
            known[change.society] = cast("dict[str, Any]", change.known).copy()
            changed.append(change.society)
        for digests in firm.digests(changed):
            # With those of another state, what differs would be passed over once the cursor is refused.
            if digests.cursor == known[digests.society]["cursor"]:
                known[digests.society]["blocks"] = digests.named()

    return ledgers


def _replaced(table: str, change: Change, is_there: bool) -> Iterator[Any]:
    """Rows that replace those with the same entry of the folder, or all rows of the folder. Of `deleted` ones nothing stays."""
    folder, is_movements = {"society_id": int(change.society)}, table == "movements"
    kinds = {name: dict(_TYPES.get(kind, {"data_type": kind})) for name, kind in CONTRACT["tables"][table].items()}
    hints = dlt.mark.make_hints(
        table_name=table,
        write_disposition="merge",
        merge_key=["society_id", "entry_id"] if is_movements else "society_id",
        columns={**kinds, "society_id": {"data_type": "bigint"}, "deleted": {"data_type": "bool", "hard_delete": True}},
    )
    gone = _entries_of(change) if is_there and is_movements else [] if is_movements else [{}]
    rows = ({**folder, **row} for row in (*({**each, "deleted": True} for each in gone), *change.dicts(table)))
    while page := list(islice(rows, 10_000)):
        yield dlt.mark.with_hints(page, hints, create_table_variant=True)


def _entries_of(change: Change) -> list[dict[str, int]]:
    """Those that the destination has in the ranges of the change."""
    with dlt.current.pipeline().sql_client() as client:
        sql = f"select distinct entry_id from {client.make_qualified_table_name('movements')}"
        sql += " where society_id = %s and entry_id between %s and %s"
        found = (client.execute_sql(sql, int(change.society), first, last) for first, last in change.ranges)
        return [{"entry_id": entry} for rows in found for (entry,) in rows or ()]
