"""Arrow from PostgreSQL with ADBC: each record batch is written before the next is read."""

import adbc_driver_postgresql.dbapi as adbc

from columns_arrow import write_parquet
from columns_sql import ROWS, SECTIONS, of_year
from year import Year


def write_year(year: Year, path: str) -> int:
    with adbc.connect(year.database_url) as connection, connection.cursor() as cursor:
        cursor.execute(of_year(SECTIONS, year))
        sections = cursor.fetch_arrow_table()
        cursor.execute(of_year(ROWS, year))
        return write_parquet(cursor.fetch_record_batch(), sections, path)
