select m.id, m.description, m.due_date, m.free_number, m.invoice_number, m.debit, m.credit,
  m.attachments, m.account_id, m.payment_id, m.shares, m.lettering_state, m.lettering_code,
  e.id, e.date, e.due_date, e.currency, trim_scale(e.rate)::text, e.journal_id, e.source, e.third_party_id,
  e.partner_metadata, e.comment, e.created_at, e.accounted_at, e.attachments
from movements m
join entries e on (e.schema_id, e.folder_id, e.exercice_id, e.id)
  = (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)
where m.schema_id = $1 and m.folder_id = $2 and m.exercice_id = $3 and e.validated_at is not null
order by m.entry_id, m.id
