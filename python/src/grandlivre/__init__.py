"""Ledgers of Grandlivre: proven row by row, as tables of Arrow. `Firm` is where to start."""

from .firm import Digests, Firm, Proof
from .ledger import Ledger
from .ledgers import Change, Known
from .service import GrandlivreError
from .tables import joined
from .webhooks import WebhookRefused, verify_webhook

__all__ = ["Change", "Digests", "Firm", "GrandlivreError", "Known", "Ledger", "Proof"]
__all__ += ["WebhookRefused", "joined", "verify_webhook"]
