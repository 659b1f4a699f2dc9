"""Renders movements as JSON, in the shape of ../../../docs/spec/resources.md#movement."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import orjson
from orjson import Fragment

from books import Books, fragment

Row = tuple[Any, ...]
"""The columns of MOVEMENTS or ENTRIES in movements_sql.py."""

LAST = 2**63 - 1
"""The id of no entry."""


class MovementRenderer:
    def __init__(self, books: Books, entries: Iterator[Row]) -> None:
        """Entries by id: those of the movements, and perhaps others."""
        self._books = books
        self._entries = entries
        self._entry_id = 0
        self._entry = Fragment(b"null")

    def render(self, rows: Iterable[Row]) -> bytes:
        """Movements by entry id, with commas between them, without those that have no entry."""
        return orjson.dumps([self._movement(row) for row in rows if self._has_entry(row[0])])[1:-1]

    def _has_entry(self, entry_id: int) -> bool:
        while self._entry_id < entry_id:
            entry = next(self._entries, None)
            if entry is None:
                self._entry_id = LAST
            else:
                self._entry_id = entry[0]
                self._entry = self._render_entry(entry)
        return self._entry_id == entry_id

    def _movement(self, row: Row) -> dict[str, object]:
        (
            _,
            id,
            description,
            due_date,
            free_number,
            invoice_number,
            debit,
            credit,
            attachments,
            account_id,
            payment_id,
            shares,
            lettering_state,
            lettering_code,
        ) = row
        if lettering_state == "partial":
            lettering_code = "*" + lettering_code
        return {
            "producerId": str(id),
            "description": description,
            "dueDate": due_date,
            "freeNumber": free_number,
            "invoiceNumber": invoice_number,
            "value": {
                "credit": shown(credit, 100),
                "debit": shown(debit, 100),
                "amount": shown(credit - debit, 100),
            },
            "entry": self._entry,
            "attachments": files(attachments) if attachments else {},
            "account": self._books.accounts[account_id],
            "payment": self._books.payments[payment_id],
            "analytics": self._analytics(shares) if shares else [],
            "lettering": {"state": lettering_state, "value": lettering_code},
        }

    def _render_entry(self, row: Row) -> Fragment:
        """Serialized once for all of its movements."""
        (
            id,
            date,
            due_date,
            currency,
            rate,
            journal_id,
            source,
            third_party_id,
            metadata,
            comment,
            created_at,
            accounted_at,
            attachments,
        ) = row
        return fragment(
            producerId=str(id),
            date=date,
            dueDate=due_date,
            currency={"code": currency} | ({} if rate is None else {"rate": number(rate)}),
            journal=self._books.journals[journal_id],
            additionalProducerProperties={
                "source": {
                    "name": source,
                    "thirdParty": self._books.third_parties[third_party_id],
                },
                "partnerMetadata": metadata
                and {"partnerId": metadata.get("partnerId"), "json": metadata.get("json")},
                "comment": comment,
                "createdAt": created_at,
                "accountedAt": accounted_at,
            },
            attachments=files(attachments) if attachments else {},
        )

    def _analytics(self, shares: list[int]) -> list[dict[str, Any]]:
        """Section id, amount, rate, and so on by threes; shares of an axis are adjacent."""
        axes: list[dict[str, Any]] = []
        axis_id = None
        for i in range(0, len(shares), 3):
            section = self._books.sections[shares[i]]
            if section.axis_id != axis_id:
                axis_id = section.axis_id
                axes.append(
                    {
                        "producerId": str(axis_id),
                        "code": section.axis_code,
                        "name": section.axis_name,
                        "sections": [],
                    }
                )
            axes[-1]["sections"].append(
                {
                    "producerId": str(shares[i]),
                    "amount": shown(shares[i + 1], 100),
                    "rate": shown(shares[i + 2], 10_000),
                    "code": section.code,
                    "name": section.name,
                }
            )
        return axes


def shown(count: int, parts: int) -> int | float:
    """A count of hundredths and the like: 100 stays 100, where a float would be 100.0."""
    return count / parts if count % parts else count // parts


def number(value: Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)


def files(addresses: dict[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"type": "URL", "value": address} for name, address in addresses.items()}
