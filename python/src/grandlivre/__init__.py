"""Ledgers of Grandlivre: proven row by row, as tables of Arrow. `Firm` is where to start."""

from .errors import GrandlivreError
from .firm import Digests, Firm, Folder, Proof
from .ledger import Exported, Ledger
from .ledgers import Change, Known
from .tables import joined
from .webhooks import Delivery, WebhookRefused, verify_webhook

__all__ = [
    "Change", "Delivery", "Digests", "Exported", "Firm", "Folder", "GrandlivreError", "Known", "Ledger", "Proof",
    "WebhookRefused", "joined", "verify_webhook",
]  # fmt: skip
