"""Runs the Python that a test sends, a line of JSON each, and answers with a line: `result`, or the error."""

import hashlib
import json
import os
import sys
import traceback

import grandlivre
from grandlivre.tables import SCHEMAS, lines_of

waits = []


def ledger(kind=grandlivre.Firm, *society, **options):
    """Waits are noted, and not waited."""
    access = (os.environ[f"GRANDLIVRE_{name}"] for name in ("URL", "TOKEN", "SECRET"))
    return kind(*access, *society, **{"encoding": "identity", "attempts": 2, "sleep": waits.append, **options})


def digest(tables):
    """SHA-256 of all lines, in the order of the service."""
    return hashlib.sha256(b"".join(line for name in SCHEMAS for _, line in lines_of(name, tables[name]))).hexdigest()


names = {"grandlivre": grandlivre, "ledger": ledger, "digest": digest, "waits": waits, "json": json}
for line in sys.stdin:
    names["result"] = None
    answer = {}
    try:
        exec(json.loads(line), names)
    except grandlivre.GrandlivreError as error:
        answer["error"] = {"code": error.code, "message": error.args[0], "remedy": error.remedy, "status": error.status}
        answer["error"] |= {"requestId": error.request_id, "issues": error.issues}
    except Exception:
        answer["crash"] = traceback.format_exc()
    print(json.dumps({**answer, "result": names["result"]}, default=str), flush=True)
