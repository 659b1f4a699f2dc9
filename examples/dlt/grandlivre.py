"""A source for dlt (https://dlthub.com): all movements of a folder the first time, then only what has changed.

Set SOURCES__GRANDLIVRE__URL, __TOKEN and __SECRET, or write them into .dlt/secrets.toml, and run `python3 grandlivre.py`: it
loads into ledger.duckdb. For another destination, change the last lines.
"""

import json
from decimal import Decimal
from typing import Iterator

import dlt
from dlt.sources.helpers import requests

EVERY_ENTRY = ["0", "9007199254740991"]


@dlt.source(name="grandlivre", max_table_nesting=0)
def grandlivre(url: str = dlt.secrets.value, token: str = dlt.secrets.value, secret: str = dlt.secrets.value):
    session = requests.Client(raise_for_status=False).session  # It repeats what may pass, such as 429 and 503.
    session.headers.update(
        {"Authorization": f"Bearer {token}", "X-Third-Party-Secret": secret, "Accept": "application/x-ndjson"}
    )

    def ask(path: str, **query: str):
        """The lines of an answer, amounts as decimals, and its cursor; nothing if the cursor is too old (410)."""
        params = {"version": "1.0.0", **query}
        address = f"{url}/api/v1/mad/{path}"
        # The secret must not follow a redirect to another host.
        answer = session.get(address, params=params, stream=True, timeout=120, allow_redirects=False)
        if answer.status_code == 410:
            return None, None
        if answer.status_code != 200:
            raise RuntimeError(answer.text or f"{address} was answered with {answer.status_code}")
        lines = (json.loads(line, parse_float=Decimal) for line in answer.iter_lines(65536))
        return lines, answer.headers["X-Ledger-Cursor"]

    # What a merge brings replaces the rows with the same entry. Of `deleted` rows only the deletion stays.
    @dlt.resource(
        write_disposition="merge",
        merge_key="entry_id",
        columns={
            "deleted": {"data_type": "bool", "hard_delete": True},
            "debit": {"data_type": "decimal", "precision": 18, "scale": 2},
            "credit": {"data_type": "decimal", "precision": 18, "scale": 2},
        },
    )
    def movements() -> Iterator[dict]:
        cursors = dlt.current.resource_state().setdefault("cursors", {})
        years = [year["producerId"] for year in ask("exercices")[0]]
        for year in years:
            since = cursors.get(year)
            lines, cursor = ask("movements", idExercice=year, since=since) if since else (None, None)
            if lines:
                ranges = next(lines)["entries"]
            else:
                lines, cursor = ask("movements", idExercice=year)
                ranges = [EVERY_ENTRY] if since else []
            yield from dropped(year, ranges)
            for line in lines:
                yield row(year, line)
            cursors[year] = cursor
        for gone in cursors.keys() - set(years):
            yield from dropped(gone, [EVERY_ENTRY])
            del cursors[gone]

    yield movements
    for name in ("accounts", "journals", "exercices"):
        yield dlt.resource(lambda name=name: ask(name)[0], name=name, write_disposition="replace")


def dropped(year: str, ranges: list) -> Iterator[dict]:
    """A `deleted` row for each entry of the year in these ranges that the destination has."""
    if not ranges:
        return
    with dlt.current.pipeline().sql_client() as client:
        table = client.make_qualified_table_name("movements")
        for first, last in ranges:
            found = client.execute_sql(
                f"select distinct entry_id from {table} where exercice_id = %s and entry_id between %s and %s",
                int(year), int(first), int(last),
            )
            for (entry,) in found:
                yield {"entry_id": entry, "exercice_id": int(year), "deleted": True}


def row(year: str, movement: dict) -> dict:
    entry, account, value = movement["entry"], movement["account"], movement["value"]
    return {
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
