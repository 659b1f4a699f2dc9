"""One folder: movements as the service writes them in JSON, proven block by block, and full exports as files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa

from .firm import Firm, read_blocks
from .ledgers import rest_of
from .service import SHA256, GrandlivreError, misfit
from .tables import LAST_ENTRY

_JOB: Mapping[str, Any] = {"id": str, "status": str}
_FILE = {**_JOB, "url": str, "size": int, "fileSha256": SHA256, "contentSize": int, "sha256": SHA256, "rows": int}


class Ledger(Firm):
    """A folder of a firm token, which `society` names, or that of a company token. Everything of `Firm` is of it alone."""

    def movements(self, **selection: str | Sequence[str]) -> Iterator[dict[str, Any]]:
        """The movements of a selection, by the names of its parameters: `idExercice="1115", classAccount=["60", "61"]`
        (docs/spec/exports.md#movements). Amounts are Decimal, or int where they are whole. They come by blocks of some
        thousand, each once its lines have the SHA-256 that the service has for them. Raises LEDGER-CHANGED where the ledger
        changes between two connections."""
        for attempt in range(1, self._service.attempts + 1):
            has_begun = False
            try:
                for block in self._movements(selection):
                    has_begun = True
                    yield from block
                return
            except GrandlivreError as error:
                if has_begun or error.code != "LEDGER-CHANGED" or attempt == self._service.attempts:
                    raise

    def _movements(self, query: Mapping[str, object]) -> Iterator[list[dict[str, Any]]]:
        def digests() -> Iterator[tuple[str, list[tuple[tuple[int, int], tuple[int, str]]]]]:
            with self._service.ask("mad/movements/blocks", query, "application/json") as answer:
                digest = answer.header("X-Ledger-Digest")
                blocks = read_blocks(answer.json(), digest, lambda what: answer.error("NOT-PROVEN", f"Movements: {what}"))
                if rest_of(list(blocks)):
                    raise answer.error("NOT-PROVEN", "The digests of movements leave entries out")
                yield answer.header("X-Ledger-Cursor"), list(blocks.items())

        cursor, left = next(self._service.through_losses(digests, "The digests"))

        def connection() -> Iterator[list[dict[str, Any]]]:
            selected = {**query, "entries": f"{left[0][0][0]}-{LAST_ENTRY}"}
            with self._service.ask("mad/movements", selected, "application/x-ndjson") as answer:
                if answer.header("X-Ledger-Cursor") != cursor:
                    raise answer.error("LEDGER-CHANGED", "The ledger changed while its movements were read")
                block, sum_ = list[dict[str, Any]](), hashlib.sha256()
                for line in chain(answer.lines(), [b""]):
                    try:
                        movement = json.loads(line, parse_float=Decimal) if line else {}
                        entry = int(movement["entry"]["producerId"]) if line else LAST_ENTRY + 1
                    except (ValueError, KeyError, TypeError, RecursionError):
                        raise answer.error("NOT-PROVEN", "A line is no movement") from None
                    while left and entry > left[0][0][1]:
                        if not line and len(block) < left[0][1][0]:
                            raise ConnectionError("the body ended before the last movement")
                        if (len(block), sum_.hexdigest()) != left[0][1]:
                            raise answer.error("NOT-PROVEN", f"Movements of entries {left[0][0]} differ from their SHA-256")
                        del left[0]
                        yield block
                        block, sum_ = [], hashlib.sha256()
                    block.append(movement)
                    sum_.update(line)

        yield from self._service.through_losses(connection, "The movements")

    def export(self, path: str | Path, **selection: str | Sequence[str]) -> dict[str, Any]:
        """A full export as a file, by the names of its parameters: `format="CSV", compression="zstd"`
        (docs/spec/exports.md#full-exports). The file gets its name once both of its hashes are right, and replaces one that had
        it. Until then it is a `.part` beside it, of this call alone, which an error removes. Raises OSError where the disk
        refuses to write. Returns the status of the export (docs/spec/exports.md#status)."""
        path = Path(path)
        if path.is_dir() or not path.parent.is_dir():
            raise GrandlivreError("INVALID-OPTION", f"path: {path} is a folder, or lies in none")
        part = path.with_name(f"{path.name}.{os.urandom(8).hex()}.part")
        try:
            with part.open("xb") as file:
                job = self._ended(selection)
                for piece in self._service.through_losses(lambda: self._rest(job, file.tell()), "The file"):
                    file.write(piece)
            compression = str(selection.get("compression") or "").lower() or None
            stated = [(job["size"], job["fileSha256"]), (job["contentSize"], job["sha256"])]
            if [_sums(part, None), _sums(part, compression)] != stated:
                raise GrandlivreError("FILE-DIFFERS", f"The file of {job['id']} has other hashes than the service stated")
            part.replace(path)
            return job
        finally:
            part.unlink(missing_ok=True)

    def _ended(self, selection: Mapping[str, object]) -> dict[str, Any]:
        """The status of an export once it has a file."""
        job = _fitting(self._service.whole("mad/all", selection), _JOB)
        for wait in chain([0.1, 0.2, 0.4, 0.7, 1], repeat(2)):
            if job["status"] != "INIT":
                break
            self._service.sleep(wait)
            job = self._status(job, _JOB)
        if job["status"] == "FAILED":
            raise GrandlivreError("EXPORT-FAILED", f"The export {job['id']} failed: {job.get('reason')}")
        return _fitting(job, _FILE)

    def _status(self, job: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
        return _fitting(self._service.whole("mad/all/status", {"exportId": job["id"]}), shape)

    def _rest(self, job: Mapping[str, Any], have: int) -> Iterator[bytes]:
        """The file without its first bytes, which have come."""
        if have >= job["size"]:
            return
        # An address is valid for an hour. It needs no credentials.
        address = (self._status(job, _FILE) if have else job)["url"]
        sent = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
        with self._service.fetch(address, sent) as answer:
            at = have if answer.header("Content-Range").startswith(f"bytes {have}-") else 0
            for piece in answer.pieces():
                if rest := piece[max(0, have - at) :]:
                    yield rest
                if (at := at + len(piece)) > job["size"]:
                    return  # Its hashes will differ.
        if at < job["size"]:
            raise ConnectionError("the file ended early")


def _fitting(job: Any, shape: Mapping[str, Any]) -> dict[str, Any]:
    if wrong := misfit(job, shape):
        raise GrandlivreError("UNEXPECTED-ANSWER", f"{wrong} of the status of an export is not what it has to be")
    return dict(job)


def _sums(part: Path, compression: Any) -> tuple[int, str]:
    """Bytes of a file and their SHA-256, after decompression. What cannot be decompressed to its end has others."""
    size, sum_ = 0, hashlib.sha256()
    with suppress(OSError), pa.input_stream(str(part), compression=compression) as content:
        while piece := content.read(1 << 20):
            size += len(piece)
            sum_.update(piece)
    return size, sum_.hexdigest()
