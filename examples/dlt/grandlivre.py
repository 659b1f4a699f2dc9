"""A source for dlt (https://dlthub.com): all movements the first time, then only what has changed.

Set SOURCES__GRANDLIVRE__URL, __TOKEN and __SECRET, or write them into .dlt/secrets.toml, and run `python3 grandlivre.py`: it
loads into ledger.duckdb. For another destination, change the last lines. A firm token loads all folders of its firm, or
the one that SOURCES__GRANDLIVRE__SOCIETY names; rows of a folder that it no longer opens stay.
"""

import json
from decimal import Decimal
from typing import Iterator

import dlt
from dlt.sources.helpers import requests

EVERY_ENTRY = ["0", "9007199254740991"]


@dlt.source(name="grandlivre", max_table_nesting=0)
def grandlivre(
    url: str = dlt.secrets.value,
    token: str = dlt.secrets.value,
    secret: str = dlt.secrets.value,
    society: str = "",
):
    session = requests.Client(raise_for_status=False).session  # It repeats what may pass, such as 429 and 503.
    session.headers.update(
        {"Authorization": f"Bearer {token}", "X-Third-Party-Secret": secret, "Accept": "application/x-ndjson"}
    )

    def ask(path: str, folder: str = "", **query: str):
        """The lines of an answer, amounts as decimals, and its cursor; nothing if the cursor is refused (410)."""
        address = f"{url}/api/v1/{path}"
        # The secret must not follow a redirect to another host.
        answer = session.get(
            address, params=query, headers={"society-id": folder}, stream=True, timeout=120, allow_redirects=False
        )
        if answer.status_code == 410:
            return None, None
        if answer.status_code != 200:
            raise RuntimeError(answer.text or f"{address} was answered with {answer.status_code}")
        lines = (json.loads(line, parse_float=Decimal) for line in answer.iter_lines(65536))
        return lines, answer.headers.get("X-Ledger-Cursor")

    def mad(path: str, folder: str, **query: str):
        return ask(f"mad/{path}", folder, version="1.0.0", **query)

    folders = [str(society)] if society else [folder["id"] for folder in ask("society")[0]]

    # What a merge brings replaces the rows with the same entry of the folder. Of `deleted` rows only the deletion stays.
    @dlt.resource(
        write_disposition="merge",
        merge_key=["society_id", "entry_id"],
        columns={
            "deleted": {"data_type": "bool", "hard_delete": True},
            "debit": {"data_type": "decimal", "precision": 18, "scale": 2},
            "credit": {"data_type": "decimal", "precision": 18, "scale": 2},
        },
    )
    def movements() -> Iterator[dict]:
        state = dlt.current.resource_state()
        ledgers, digests = state.setdefault("ledgers", {}), state.setdefault("digests", {})
        for folder in folders:
            yield from changes(folder, ledgers.setdefault(folder, {}), digests.setdefault(folder, {}))

    def blocks(folder: str, year: str):
        """The digests of ranges of entries, and the cursor of the state that they are of."""
        lines, cursor = mad("movements/blocks", folder, idExercice=year)
        return {f"{block['from']}-{block['to']}": block["sha256"] for block in lines}, cursor

    def changes(folder: str, cursors: dict, digests: dict) -> Iterator[dict]:
        """Rows of one folder. `cursors` and `digests` have those of each year, and are brought up to date."""
        years = [year["producerId"] for year in mad("exercices", folder)[0]]
        for year in years:
            since = cursors.get(year)
            lines, cursor = mad("movements", folder, idExercice=year, since=since or None)
            shown = cursor
            if not since:
                ranges = []
            elif lines:
                ranges = next(lines)["entries"]
            else:
                # Refused, as after a failover: what differs from the digests of the rows is read again.
                found, cursor = blocks(folder, year)
                had = digests.get(year, {})
                ranges = [place.split("-") for place, digest in found.items() if had.get(place) != digest]
                if len(ranges) > 100:
                    ranges[99:] = [[ranges[99][0], ranges[-1][1]]]
                entries = ",".join(map("-".join, ranges))
                lines, shown = mad("movements", folder, idExercice=year, entries=entries) if ranges else ([], cursor)
            yield from dropped(folder, year, ranges)
            for line in lines:
                yield row(folder, year, line)
            if cursor != since or year not in digests:
                found, proved = blocks(folder, year)
                # Digests of another state than the rows would pass over what differs.
                digests[year] = found if cursor == shown == proved else {}
            cursors[year] = cursor
        for gone in cursors.keys() - set(years):
            yield from dropped(folder, gone, [EVERY_ENTRY])
            del cursors[gone]
            digests.pop(gone, None)

    def collection(name: str) -> Iterator[dict]:
        for folder in folders:
            for item in mad(name, folder)[0]:
                yield {"society_id": int(folder), **item}

    yield movements
    for name in ("accounts", "journals", "exercices"):
        yield dlt.resource(collection(name), name=name, write_disposition="replace")


def dropped(folder: str, year: str, ranges: list) -> Iterator[dict]:
    """A `deleted` row for each entry of the year in these ranges that the destination has."""
    if not ranges:
        return
    with dlt.current.pipeline().sql_client() as client:
        table = client.make_qualified_table_name("movements")
        for first, last in ranges:
            found = client.execute_sql(
                f"select distinct entry_id from {table}"
                " where society_id = %s and exercice_id = %s and entry_id between %s and %s",
                int(folder), int(year), int(first), int(last),
            )
            for (entry,) in found:
                yield {"society_id": int(folder), "entry_id": entry, "exercice_id": int(year), "deleted": True}


def row(folder: str, year: str, movement: dict) -> dict:
    entry, account, value = movement["entry"], movement["account"], movement["value"]
    return {
        "society_id": int(folder),
        "movement_id": int(movement["producerId"]),
        "entry_id": int(entry["producerId"]),
        "exercice_id": int(year),
        "entry_date": entry["date"],
        "journal_code": entry["journal"]["customerReferenceCode"],
        "journal_type": entry["journal"]["type"],
        "account_number": account["number"],
        "account_name": account["name"],
        "description": movement["description"],
        "invoice_number": movement["invoiceNumber"],
        "debit": Decimal(value["debit"]),
        "credit": Decimal(value["credit"]),
        "lettering_state": movement["lettering"]["state"],
        "movement": movement,
    }


if __name__ == "__main__":
    pipeline = dlt.pipeline("grandlivre", destination=dlt.destinations.duckdb("ledger.duckdb"), dataset_name="books")
    print(pipeline.run(grandlivre()))
