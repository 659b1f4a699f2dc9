"""One folder: movements as the service writes them in JSON, proven block by block, and full exports as files."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from .errors import GrandlivreError
from .firm import Firm
from .ledgers import read_ranges, rest_of
from .service import ID, SHA256, misfit
from .tables import LAST_ENTRY

_LINE_MAX = 1 << 26
_JOB = {"id": str, "url": str, "size": int, "fileSha256": SHA256, "contentSize": int, "sha256": SHA256, "rows": int}


@dataclass(frozen=True)
class Exported:
    """The file of a full export on this machine. `size` and `file_sha256` are of its bytes, `content_size` and `sha256` of
    what it holds after decompression; all were compared with what the service stated."""

    path: Path
    export_id: str
    size: int
    file_sha256: str
    content_size: int
    sha256: str
    rows: int


class Ledger(Firm):
    """A folder of a firm token, which `society` names, or that of a company token. Everything of `Firm` is of it alone."""

    def movements(self, **selection: str | Sequence[str]) -> Iterator[dict[str, Any]]:
        """The movements of a selection, by the names of its parameters: `idExercice="1115", classAccount=["60", "61"]`
        (docs/spec/exports.md#movements). Amounts are Decimal, or int where they are whole. They come by blocks of some thousand, each once its lines have
        the SHA-256 that the service has for them. Raises LEDGER-CHANGED where the ledger changes between two connections."""
        for attempt in range(self._service.attempts):
            has_begun = False
            try:
                for block in self._blocks_of_movements(selection):
                    has_begun = True
                    yield from block
                return
            except GrandlivreError as error:
                if has_begun or error.code != "LEDGER-CHANGED" or attempt == self._service.attempts - 1:
                    raise

    def _blocks_of_movements(self, query: Mapping[str, object]) -> Iterator[list[dict[str, Any]]]:
        left, cursor = next(self._service.through_losses(lambda: self._read_blocks(query), "The digests"))

        def connection() -> Iterator[list[dict[str, Any]]]:
            entries = [f"{left[0][0]}-{LAST_ENTRY}"]
            with self._service.ask("mad/movements", {**query, "entries": entries}, "application/x-ndjson") as answer:
                if answer.header("X-Ledger-Cursor") != cursor:
                    raise answer.error("LEDGER-CHANGED", "The ledger changed while its movements were read")
                block, sum_ = list[dict[str, Any]](), hashlib.sha256()
                for line in itertools.chain(answer.lines(_LINE_MAX), [None]):
                    try:
                        movement = json.loads(line, parse_float=Decimal) if line else {}
                        entry = int(movement["entry"]["producerId"]) if line else LAST_ENTRY + 1
                    except (ValueError, KeyError, TypeError, RecursionError):
                        raise answer.error("NOT-PROVEN", "A line is no movement") from None
                    while left and entry > left[0][1]:
                        if not line and len(block) < left[0][2]:
                            raise ConnectionError("the body ended before the last movement")
                        if (len(block), sum_.hexdigest()) != left[0][2:]:
                            raise answer.error("NOT-PROVEN", f"Movements of entries {left[0][:2]} differ from their SHA-256")
                        del left[0]
                        yield block
                        block, sum_ = [], hashlib.sha256()
                    block.append(movement)
                    sum_.update(line or b"")

        yield from self._service.through_losses(connection, "The movements")

    def _read_blocks(self, query: Mapping[str, object]) -> Iterator[tuple[list[tuple[int, int, int, str]], str]]:
        """The ranges of entries that together hold a selection, with number and SHA-256 of its lines in each; the cursor."""
        with self._service.ask("mad/movements/blocks", query, "application/json") as answer:
            blocks = answer.json()
            shape = {"from": ID, "to": ID, "rows": int, "sha256": SHA256}
            if not isinstance(blocks, list) or not blocks or any(misfit(block, shape) for block in blocks):
                raise answer.error("NOT-PROVEN", "The digests of movements are none")
            ranges = read_ranges([[each["from"], each["to"]] for each in blocks], lambda what: answer.error("NOT-PROVEN", what))
            digest = hashlib.sha256(b"".join(bytes.fromhex(each["sha256"]) for each in blocks)).hexdigest()
            if rest_of(ranges) or digest != answer.header("X-Ledger-Digest"):
                raise answer.error("NOT-PROVEN", "The digests of movements leave entries out, or differ from X-Ledger-Digest")
            blocks_ = [(*place, each["rows"], each["sha256"]) for place, each in zip(ranges, blocks, strict=True)]
            yield blocks_, answer.header("X-Ledger-Cursor")

    def export(self, path: str | Path, **selection: str | Sequence[str]) -> Exported:
        """A full export as a file, by the names of its parameters: `format="CSV", compression="zstd"`
        (docs/spec/exports.md#full-exports). The file gets its name once both of its hashes are right. What an earlier
        download of the same export has left, also of a killed program, is not read again: equal selections within an hour
        share an export."""
        path = Path(path)
        job = self._service.whole("mad/all", selection)
        for wait in itertools.chain([0.1, 0.2, 0.4, 0.7, 1], itertools.repeat(2)):
            if job.get("status") != "INIT":
                break
            self._service.sleep(wait)
            job = self._status(job["id"])
        if job.get("status") == "FAILED":
            raise GrandlivreError("EXPORT-FAILED", f"The export {job['id']} failed: {job.get('reason')}")
        if wrong := misfit(job, _JOB):
            raise GrandlivreError("UNEXPECTED-ANSWER", f"{wrong} of the status is not that of a file")
        part = path.with_name(f"{path.name}.{job['fileSha256'][:16]}.part")
        stated = [(job["size"], job["fileSha256"]), (job["contentSize"], job["sha256"])]
        for _ in range(2):  # What the disk kept may be at fault, once.
            self._download(job, part)
            compression = str(selection.get("compression") or "") or None
            if [_sums(part, None), _sums(part, compression)] == stated:
                break
            part.unlink()
        else:
            raise GrandlivreError("FILE-DIFFERS", f"The file of {job['id']} has other hashes than the service stated")
        part.replace(path)
        return Exported(path, job["id"], *stated[0], *stated[1], job["rows"])

    def _status(self, export_id: str) -> dict[str, Any]:
        return dict(self._service.whole("mad/all/status", {"exportId": export_id}))

    def _download(self, job: Mapping[str, Any], part: Path) -> None:
        addresses = [job["url"]]

        def connection() -> Iterator[int]:
            part.touch()
            have = part.stat().st_size
            if have == job["size"]:
                return
            have = have if have < job["size"] else 0
            # Addresses are valid for an hour.
            address = addresses.pop() if addresses else self._status(job["id"])["url"]
            sent = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
            with self._service.fetch(address, sent) as answer:
                is_rest = have > 0 and answer.status == 206 and answer.header("Content-Range").startswith(f"bytes {have}-")
                with part.open("ab" if is_rest else "wb") as file:
                    for piece in answer.pieces():
                        file.write(piece[: max(0, job["size"] + 1 - file.tell())])
                        yield file.tell()
            if part.stat().st_size < job["size"]:
                raise ConnectionError("the file ended early")

        for _ in self._service.through_losses(connection, "The file"):
            pass


def _sums(part: Path, compression: str | None) -> tuple[int, str]:
    """Bytes of a file and their SHA-256, after decompression."""
    size, sum_ = 0, hashlib.sha256()
    with suppress(OSError), pa.input_stream(str(part), compression=compression) as content:
        while piece := content.read(1 << 20):
            size += len(piece)
            sum_.update(piece)
    return size, sum_.hexdigest()
