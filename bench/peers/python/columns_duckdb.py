"""
Parquet from PostgreSQL with DuckDB: it scans the tables in parts, side by side, joins them itself,
and writes the file. Its extension for PostgreSQL comes as a package, so that nothing is downloaded
when it runs. It shows an id, which is a domain in the database, as a text. Rows are in no order.
"""

from importlib.resources import as_file, files

import duckdb

from year import Year

CODES = """
    select map(list(n.id::bigint), list({code}))
    from sections n join axes x on (x.folder_id, x.id) = (n.folder_id, n.axis_id)
    where n.schema_id = '{schema_id}' and n.folder_id = '{folder_id}'"""

COPY = """
    copy (
      select e.id::bigint as entry_id, e.date as entry_date, e.due_date as entry_due_date,
        e.accounted_at, e.created_at::timestamp as created_at, e.validated_at,
        e.validated_at is null as draft, e.exercice_id::bigint as exercice_id,
        j.id::bigint as journal_id, j.code as journal_code, j.name as journal_name,
        j.type as journal_type, e.source, e.currency, e.rate as currency_rate,
        e.comment as entry_comment, e.number as ecriture_num,
        case when m.filed is null and e.filed is null then e.date else strptime(nullif(coalesce(
          m.filed ->> 'PieceDate', e.filed ->> 'PieceDate', strftime(e.date, '%Y%m%d')
        ), ''), '%Y%m%d')::date end as piece_date,
        m.id::bigint as movement_id, a.id::bigint as account_id, a.number as account_number,
        a.name as account_name,
        nullif(coalesce(m.filed ->> 'CompAuxNum', e.filed ->> 'CompAuxNum', a.auxiliary_number), '')
          as auxiliary_number,
        nullif(coalesce(m.filed ->> 'CompAuxLib', e.filed ->> 'CompAuxLib', a.auxiliary_name), '')
          as auxiliary_name,
        m.description, m.due_date, m.free_number, m.invoice_number,
        (m.debit * 0.01)::decimal(18, 2) as debit, (m.credit * 0.01)::decimal(18, 2) as credit,
        case when p.code in ('CB', 'ESP', 'LCR') then p.code when p.code = 'VIRT' then 'VIR'
          when p.code = 'PRLV' then 'PRE' when p.code is not null then 'CHQ' end as payment_code,
        m.lettering_state, m.lettering_code,
        list_transform(range(1, len(m.shares) + 1, 3), lambda i: {{
          'axis_code': getvariable('axis_codes')[m.shares[i]],
          'section_code': getvariable('section_codes')[m.shares[i]],
          'amount': (m.shares[i + 1] * 0.01)::decimal(18, 2),
          'rate': (m.shares[i + 2] * 0.0001)::decimal(18, 4)
        }}) as analytics,
        case when coalesce(e.attachments, m.attachments) is not null then '{{' || concat_ws(',',
          '"entry":' || e.attachments, '"movement":' || m.attachments) || '}}' end as attachments
      from movements m
      join entries e on (e.exercice_id, e.id) = (m.exercice_id, m.entry_id)
      join journals j on (j.folder_id, j.id) = (e.folder_id, e.journal_id)
      join accounts a on (a.folder_id, a.id) = (m.folder_id, m.account_id)
      left join payments p on (p.folder_id, p.id) = (m.folder_id, m.payment_id)
      where m.schema_id = '{schema_id}' and m.folder_id = '{folder_id}'
        and m.exercice_id = '{exercice_id}'
    ) to '{path}' (format parquet, compression zstd)"""


def write_year(year: Year, path: str) -> int:
    ids = {
        "schema_id": year.schema_id,
        "folder_id": year.folder_id,
        "exercice_id": year.exercice_id,
    }
    with duckdb.connect() as connection:
        connection.load_extension(extension_file())
        options = "type postgres, read_only, schema 'grandlivre'"
        connection.execute(f"attach '{year.database_url}' as ledger ({options})")
        connection.execute("use ledger")
        connection.execute("begin")
        for variable, code in (("axis_codes", "x.code"), ("section_codes", "n.code")):
            connection.execute(f"set variable {variable} = ({CODES.format(code=code, **ids)})")
        copied = connection.execute(COPY.format(path=path, **ids)).fetchone()
        return int(copied[0]) if copied else 0


def extension_file() -> str:
    folder = files("duckdb_extension_postgres_scanner") / "extensions" / f"v{duckdb.__version__}"
    with as_file(folder / "postgres_scanner.duckdb_extension") as file:
        return str(file)
