"""Gives flat rows the types of a Parquet file: exact decimals, and structs for analytic shares."""

from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MONEY = pa.decimal128(18, 2)
CURRENCY_RATE = pa.decimal128(18, 6)
SHARE_RATE = pa.decimal128(18, 4)


def write_parquet(batches: Iterable[pa.RecordBatch], sections: pa.Table, path: str) -> int:
    """Returns the number of rows."""
    rows = 0
    writer: pq.ParquetWriter | None = None
    for batch in batches:
        typed = with_types(batch, sections)
        writer = writer or pq.ParquetWriter(path, typed.schema, compression="zstd")
        writer.write_batch(typed)
        rows += typed.num_rows
    if writer:
        writer.close()
    return rows


def with_types(batch: pa.RecordBatch, sections: pa.Table) -> pa.RecordBatch:
    typed = {
        "currency_rate": decimals(batch["currency_rate"], CURRENCY_RATE),
        "debit": decimals(batch["debit"], MONEY),
        "credit": decimals(batch["credit"], MONEY),
        "analytics": analytics(batch["analytics"], sections),
    }
    columns = {name: typed.get(name, batch[name]) for name in batch.schema.names}
    return pa.RecordBatch.from_pydict(columns)


def decimals(counts: pa.Array, type: pa.Decimal128Type) -> pa.Array:
    """Counts of the smallest unit: 100 cents are 1.00."""
    unit = pa.scalar(Decimal(1).scaleb(-type.scale), pa.decimal128(type.scale + 1, type.scale))
    return pc.multiply(counts.cast(pa.decimal128(19, 0)), unit).cast(type)


def analytics(shares: pa.ListArray, sections: pa.Table) -> pa.ListArray:
    """From arrays of section id, amount and rate, and so on by threes."""
    numbers = shares.flatten()
    ids, amounts, rates = (numbers[i::3] for i in range(3))
    places = pc.index_in(ids, sections["id"].combine_chunks())
    structs = pa.StructArray.from_arrays(
        [
            sections["axis_code"].combine_chunks().take(places),
            sections["section_code"].combine_chunks().take(places),
            decimals(amounts, MONEY),
            decimals(rates, SHARE_RATE),
        ],
        names=["axis_code", "section_code", "amount", "rate"],
    )
    lengths = pc.fill_null(pc.list_value_length(shares), 0).cast(pa.int64())
    ends = pc.divide(pc.cumulative_sum(lengths), 3)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, structs, mask=shares.is_null())
