"""The one error of this package, with what to do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

# Written by `npm run docs:python` from the tables of the service: what to do about each of its codes, and its tables.
CONTRACT: Mapping[str, Any] = json.loads(files("grandlivre").joinpath("contract.json").read_text("utf-8"))

# Codes of this package. All others are the service's.
_OWN_REMEDIES = {
    "INVALID-OPTION": "Correct the option that the message names.",
    "CONNECTION-FAILED": "Check the address, and that the service can be reached from this machine. Then try again.",
    "LEDGER-CHANGED": "Discard what was received and begin again.",
    "NOT-PROVEN": "Discard what was received and begin again. If it happens again, report it with the request id.",
    "UNEXPECTED-ANSWER": "Check the address: what answers there does not seem to be the service itself, or it is newer.",
    "EXPORT-FAILED": "The message says why. Change what it names first.",
    "FILE-DIFFERS": "Download it again. If it happens again, report it with the id of the export.",
}


class GrandlivreError(Exception):
    """Every error of this package.

    `code` is one of the service (`ERR-...`, docs/errors.md) or of this package: compare it, not the message. `status` is
    that of the answer, 0 without one. `retry_after` is in seconds. `issues` has each parameter that was refused, and why.
    `refusals` has an error for each ledger that was asked for and not given.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 0,
        request_id: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
        refusals: Sequence[GrandlivreError] = (),
    ) -> None:
        issues = details.get("issues") if details else None
        self.issues = [each for each in issues if isinstance(each, dict)] if isinstance(issues, list) else []
        super().__init__("; ".join([message, *(f"{each.get('parameter')}: {each.get('message')}" for each in self.issues)]))
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.details: Mapping[str, Any] = details or {}
        self.refusals = tuple(refusals)

    @property
    def remedy(self) -> str:
        """What to do, in a sentence or two."""
        remedies: Mapping[str, str] = {**CONTRACT["remedies"], **_OWN_REMEDIES}
        return remedies.get(self.code, "This version does not know the code: see the documentation of the service.")

    def __str__(self) -> str:
        return f"{self.code}: {self.args[0]}"
