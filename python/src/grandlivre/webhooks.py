"""Verifies that a request is a recent delivery of the service (docs/spec/webhooks.md#signatures)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from .service import CONTRACT, GrandlivreError


class WebhookRefused(Exception):
    """Answer the request with 401 and `body`, JSON that says why and contains nothing secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(CONTRACT["refusals"][reason])
        self.reason, self.body = reason, json.dumps({"reason": reason, "message": self.args[0]})


def verify_webhook(
    headers: Mapping[str, str], body: bytes, *, secret: str | Sequence[str] | None = None,
    signing_secret: str | Sequence[str] | None = None, now: float | None = None, tolerance: float = 300,
) -> list[dict[str, Any]]:  # fmt: skip
    """The events of a delivery. Checks `signature` with the partner secret, and `webhook-signature` (Standard Webhooks) with
    the signing secret of the subscription, `whsec_...`. Of several secrets one has to fit; of both kinds, both.

    `body` is the raw one. `now` and `tolerance` are in seconds. Compares in constant time. Raises WebhookRefused, or
    GrandlivreError where an argument is wrong.
    """
    if not isinstance(body, bytes):
        raise GrandlivreError("INVALID-OPTION", f"body: has to be the raw one, of type bytes, not {type(body).__name__}")
    given = {name.lower(): value for name, value in headers.items()}
    kinds = [(check, secrets) for check, secrets in ((_partner, secret), (_standard, signing_secret)) if secrets is not None]
    sent = [check(given, body, [secrets] if isinstance(secrets, str) else secrets) for check, secrets in kinds]
    if not sent:
        raise GrandlivreError("INVALID-OPTION", "secret, signing_secret: that of the partner or of the subscription is needed")
    late = (time.time() if now is None else now) - sent[0] / 1000
    if abs(late) > tolerance:
        raise WebhookRefused("date-too-old" if late > 0 else "date-in-future")
    with suppress(ValueError, RecursionError):
        events = json.loads(body)
        if isinstance(events, list) and all(isinstance(event, dict) for event in events):
            return events
    raise WebhookRefused("body-without-events")


def _partner(given: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> int:
    if not secrets or not all(isinstance(each, str) and each for each in secrets):
        raise GrandlivreError("INVALID-OPTION", "secret: has to be the secret of the partner, a str")
    signature, sent = given.get("signature", ""), given.get("date", "")
    if not re.fullmatch("[0-9a-fA-F]{64}", signature):
        raise WebhookRefused("signature-missing")
    if not re.fullmatch("[0-9]{1,15}", sent):
        raise WebhookRefused("date-missing")
    _require([each.encode() for each in secrets], body + sent.encode(), [bytes.fromhex(signature)], given, body)
    return int(sent)


def _standard(given: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> int:
    if not secrets or not all(isinstance(each, str) and re.fullmatch("whsec_[A-Za-z0-9+/]{22,}=*", each) for each in secrets):
        raise GrandlivreError("INVALID-OPTION", "signing_secret: has to be that of the subscription, which begins with whsec_")
    name, sent = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    signatures = re.findall(r"(?<!\S)v1,([A-Za-z0-9+/]{43}=)(?!\S)", given.get("webhook-signature", ""))
    if not name or not signatures or not re.fullmatch("[0-9]{1,12}", sent):
        raise WebhookRefused("webhook-headers-missing")
    keys = [base64.b64decode(each[6:]) for each in secrets]
    _require(keys, f"{name}.{sent}.".encode() + body, [base64.b64decode(each) for each in signatures], given, body)
    return int(sent) * 1000


def _require(keys: Sequence[bytes], text: bytes, signatures: Sequence[bytes], given: Mapping[str, str], body: bytes) -> None:
    made = [hmac.new(key, text, hashlib.sha256).digest() for key in keys]
    if not any(hmac.compare_digest(one, other) for one in made for other in signatures):
        digest = re.fullmatch("sha-256=:([^:]*):", given.get("content-digest", ""))
        is_changed = digest and digest[1] != base64.b64encode(hashlib.sha256(body).digest()).decode()
        raise WebhookRefused("body-changed" if is_changed else "signature-wrong")
