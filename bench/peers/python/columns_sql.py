"""
The year as flat rows in one statement, drafts included: the columns, in their order, of
../../../docs/spec/exports.md#csv-and-parquet-files. Amounts are still in cents, the rate in
millionths, and shares are arrays of ids and counts: columns_arrow.py gives them their types.
"""

from year import Year

SECTIONS = """
    select n.id, x.code as axis_code, n.code as section_code
    from sections n
    join axes x on (x.schema_id, x.folder_id, x.id) = (n.schema_id, n.folder_id, n.axis_id)
    where n.schema_id = {schema_id} and n.folder_id = {folder_id}"""

ROWS = """
    select e.id as entry_id, e.date as entry_date, e.due_date as entry_due_date, e.accounted_at,
      e.created_at at time zone 'UTC' as created_at, e.validated_at,
      e.validated_at is null as draft, e.exercice_id, j.id as journal_id, j.code as journal_code,
      j.name as journal_name, j.type as journal_type, e.source, e.currency,
      (e.rate * 1000000)::bigint as currency_rate, e.comment as entry_comment,
      e.number as ecriture_num,
      case when m.filed is null and e.filed is null then e.date else to_date(nullif(coalesce(
        m.filed ->> 'PieceDate', e.filed ->> 'PieceDate', to_char(e.date, 'YYYYMMDD')
      ), ''), 'YYYYMMDD') end as piece_date,
      m.id as movement_id, a.id as account_id, a.number as account_number, a.name as account_name,
      nullif(coalesce(m.filed ->> 'CompAuxNum', e.filed ->> 'CompAuxNum', a.auxiliary_number), '')
        as auxiliary_number,
      nullif(coalesce(m.filed ->> 'CompAuxLib', e.filed ->> 'CompAuxLib', a.auxiliary_name), '')
        as auxiliary_name,
      m.description, m.due_date, m.free_number, m.invoice_number, m.debit, m.credit,
      case when p.code in ('CB', 'ESP', 'LCR') then p.code when p.code = 'VIRT' then 'VIR'
        when p.code = 'PRLV' then 'PRE' when p.code is not null then 'CHQ' end as payment_code,
      m.lettering_state, m.lettering_code, m.shares as analytics,
      case when coalesce(e.attachments, m.attachments) is not null then '{{' || concat_ws(',',
        '"entry":' || e.attachments::text, '"movement":' || m.attachments::text
      ) || '}}' end as attachments
    from movements m
    join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
      = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)
    join journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)
    join accounts a on (a.schema_id, a.folder_id, a.id) = (m.schema_id, m.folder_id, m.account_id)
    left join payments p
      on (p.schema_id, p.folder_id, p.id) = (m.schema_id, m.folder_id, m.payment_id)
    where m.schema_id = {schema_id} and m.folder_id = {folder_id}
      and m.exercice_id = {exercice_id}
    order by m.entry_id, m.id"""


def of_year(statement: str, year: Year) -> str:
    """With its ids, which are numbers, as text: not every driver takes parameters."""
    return statement.format(
        schema_id=year.schema_id, folder_id=year.folder_id, exercice_id=year.exercice_id
    )
