select e.id, e.date, e.due_date, e.currency, trim_scale(e.rate)::text, e.journal_id, e.source, e.third_party_id,
  e.partner_metadata, e.comment, e.created_at, e.accounted_at, e.attachments
from entries e
where e.schema_id = $1 and e.folder_id = $2 and e.exercice_id = $3 and e.validated_at is not null
order by e.id
