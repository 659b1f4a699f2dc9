"""Verifies that a request is a recent delivery of the service (docs/spec/webhooks.md#signatures)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_REASONS = {
    "signature-missing": "The header signature is missing, or is not 64 hexadecimal digits",
    "date-missing": "The header date is missing, or is not a number of milliseconds",
    "webhook-headers-missing": "The header webhook-id, webhook-timestamp or webhook-signature is missing or malformed",
    "signature-wrong": "The signature was made with another secret, or for another body, id or time",
    "body-changed": "The body is not the one that was sent: its digest differs. Verify it before any parsing",
    "date-too-old": "The time of sending is too old: the request may have been recorded and sent again",
    "date-in-future": "The time of sending is in the future: one of the two clocks is wrong",
    "body-without-events": "The body is signed, but is not a JSON array of events",
}


class WebhookRefused(Exception):
    """Answer the request with 401 and `body`, which says why in JSON and contains nothing secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(_REASONS[reason])
        self.reason = reason
        self.body = json.dumps({"reason": reason, "message": _REASONS[reason]})


@dataclass(frozen=True)
class Delivery:
    """What was delivered. `sent_at` is in epoch milliseconds. `sequence` has the numbers of the first and the last event in
    `epoch`, both None for a ping; the headers that they come in are not signed."""

    events: list[dict[str, Any]]
    sent_at: int
    delivery_id: str | None
    sequence: tuple[int, int] | None
    epoch: int | None


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret: str | Sequence[str] | None = None,
    signing_secret: str | Sequence[str] | None = None,
    now: float | None = None,
    tolerance: float = 300,
) -> Delivery:
    """Checks `signature` with the partner secret, and `webhook-signature` (Standard Webhooks) with the signing secret of
    the subscription, `whsec_...`. Of several secrets one has to fit; of both kinds, both. Compares in constant time.

    `body` is the raw one. `now` and `tolerance` are in seconds. Raises WebhookRefused, or ValueError without a secret.
    """
    given = {name.lower(): value for name, value in headers.items()}
    sent = [
        check(given, body, [secrets] if isinstance(secrets, str) else list(secrets))
        for check, secrets in ((_partner, secret), (_standard, signing_secret))
        if secrets is not None
    ]
    if not sent:
        raise ValueError("verify_webhook needs the partner secret or the signing secret of the subscription")
    late = (time.time() if now is None else now) - sent[0] / 1000
    if abs(late) > tolerance:
        raise WebhookRefused("date-too-old" if late > 0 else "date-in-future")
    try:
        events = json.loads(body)
    except ValueError:
        events = None
    if not isinstance(events, list):
        raise WebhookRefused("body-without-events")
    numbers = re.fullmatch(r"(\d{1,15})-(\d{1,15})", given.get("webhook-sequence", ""), re.ASCII)
    epoch = re.fullmatch(r"\d{1,15}", given.get("webhook-epoch", ""), re.ASCII)
    sequence = (int(numbers[1]), int(numbers[2])) if numbers else None
    return Delivery(events, sent[0], given.get("webhook-id"), sequence, int(epoch[0]) if epoch else None)


def _partner(given: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> int:
    if not secrets or "" in secrets:
        raise ValueError("verify_webhook needs the partner secret")
    signature, sent = given.get("signature", ""), given.get("date", "")
    if not re.fullmatch(r"[0-9a-fA-F]{64}", signature):
        raise WebhookRefused("signature-missing")
    if not re.fullmatch(r"\d{1,15}", sent, re.ASCII):
        raise WebhookRefused("date-missing")
    made = [hmac.new(each.encode(), body + sent.encode(), hashlib.sha256).digest() for each in secrets]
    _require(made, [bytes.fromhex(signature)], given, body)
    return int(sent)


def _standard(given: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> int:
    if not secrets or not all(re.fullmatch(r"whsec_[A-Za-z0-9+/]{22,}=*", each) for each in secrets):
        raise ValueError("verify_webhook needs the signing secret of the subscription, which begins with whsec_")
    name, sent = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    signatures = re.findall(r"(?<!\S)v1,([A-Za-z0-9+/]{43}=)(?!\S)", given.get("webhook-signature", ""))
    if not name or not signatures or not re.fullmatch(r"\d{1,12}", sent, re.ASCII):
        raise WebhookRefused("webhook-headers-missing")
    keys = [base64.b64decode(each.removeprefix("whsec_")) for each in secrets]
    made = [hmac.new(key, f"{name}.{sent}.".encode() + body, hashlib.sha256).digest() for key in keys]
    _require(made, [base64.b64decode(each) for each in signatures], given, body)
    return int(sent) * 1000


def _require(made: Sequence[bytes], signatures: Sequence[bytes], given: Mapping[str, str], body: bytes) -> None:
    if any(hmac.compare_digest(one, other) for one in made for other in signatures):
        return
    digest = re.fullmatch(r"sha-256=:([^:]*):", given.get("content-digest", ""))
    is_changed = digest and digest[1] != base64.b64encode(hashlib.sha256(body).digest()).decode()
    raise WebhookRefused("body-changed" if is_changed else "signature-wrong")
