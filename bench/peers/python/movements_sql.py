"""The year in SQL: the movements, and the rows that they refer to."""

from typing import LiteralString

JOURNALS: LiteralString = "select id, code, name, type from journals where folder_id = %s"
ACCOUNTS: LiteralString = "select id, number, name from accounts where folder_id = %s"
PAYMENTS: LiteralString = "select id, code from payments where folder_id = %s"
THIRD_PARTIES: LiteralString = "select id, name, code from third_parties"
SECTIONS: LiteralString = """
    select n.id, n.code, n.name, x.id, x.code, x.name
    from sections n
    join axes x on (x.schema_id, x.folder_id, x.id) = (n.schema_id, n.folder_id, n.axis_id)
    where n.folder_id = %s"""

MOVEMENTS: LiteralString = """
    select m.entry_id, m.id, m.description, m.due_date, m.free_number, m.invoice_number,
      m.debit, m.credit, m.attachments, m.account_id, m.payment_id, m.shares,
      m.lettering_state, m.lettering_code
    from movements m
    where m.schema_id = %s and m.folder_id = %s and m.exercice_id = %s
    order by m.entry_id, m.id"""

ENTRIES: LiteralString = """
    select e.id, e.date, e.due_date, e.currency, e.rate, e.journal_id, e.source, e.third_party_id,
      e.partner_metadata, e.comment, date_part('epoch', e.created_at)::bigint, e.accounted_at,
      e.attachments
    from entries e
    where e.schema_id = %s and e.folder_id = %s and e.exercice_id = %s
      and e.validated_at is not null
    order by e.id"""
