"""Arrow from PostgreSQL with ConnectorX: the whole table in memory, then written."""

import connectorx
import pyarrow as pa

from columns_arrow import write_parquet
from columns_sql import ROWS, SECTIONS, of_year
from year import Year


def write_year(year: Year, path: str) -> int:
    def read(statement: str) -> pa.Table:
        return connectorx.read_sql(
            year.database_url, of_year(statement, year), return_type="arrow", protocol="binary"
        )

    return write_parquet(read(ROWS).to_batches(), read(SECTIONS), path)
