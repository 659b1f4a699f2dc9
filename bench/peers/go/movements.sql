select m.id, m.description, m.due_date, m.free_number, m.invoice_number, m.debit, m.credit,
  m.attachments, m.account_id, m.payment_id, m.shares, m.lettering_state, m.lettering_code, m.entry_id
from movements m
where m.schema_id = $1 and m.folder_id = $2 and m.exercice_id = $3
order by m.entry_id, m.id
