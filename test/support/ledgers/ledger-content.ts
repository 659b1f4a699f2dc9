/** The content of a folder in natural keys instead of ids, so that two imports can be compared. */
import type pg from 'pg'

/** Entries with their movements as sorted text, which hides ids and the order of loading. */
export async function ledgerContent(client: pg.ClientBase | pg.Pool, folderId: string): Promise<string[]> {
  const { rows } = await client.query<{ entry: unknown }>(
    `select jsonb_build_array(j.code, j.name, j.type, ja.number, e.date, e.due_date, e.accounted_at, e.validated_at,
       e.source, e.currency, e.rate, x.start_date, x.end_date,
       jsonb_agg(jsonb_build_array(a.number, a.name, c.name, w.last_name, m.description, m.invoice_number, m.free_number,
         m.debit, m.credit, m.lettering_state, m.lettering_code, p.code) order by a.number, m.debit, m.credit)) as entry
     from grandlivre.entries e
     join grandlivre.exercices x on (x.folder_id, x.id) = (e.folder_id, e.exercice_id)
     join grandlivre.journals j on (j.folder_id, j.id) = (e.folder_id, e.journal_id)
     left join grandlivre.accounts ja on (ja.folder_id, ja.id) = (j.folder_id, j.counterpart_account_id)
     join grandlivre.movements m on (m.folder_id, m.entry_id) = (e.folder_id, e.id)
     join grandlivre.accounts a on (a.folder_id, a.id) = (m.folder_id, m.account_id)
     left join grandlivre.companies c on (c.folder_id, c.account_id) = (a.folder_id, a.id)
     left join grandlivre.employees w on (w.folder_id, w.account_id) = (a.folder_id, a.id)
     left join grandlivre.payments p on (p.folder_id, p.id) = (m.folder_id, m.payment_id)
     where e.folder_id = $1
     group by e.id, j.code, j.name, j.type, ja.number, e.date, e.due_date, e.accounted_at, e.validated_at, e.source,
       e.currency, e.rate, x.start_date, x.end_date`,
    [folderId],
  )
  return rows.map(({ entry }) => JSON.stringify(entry)).toSorted()
}

/** Rows in every table that an import may touch. */
export async function rowCounts(client: pg.ClientBase | pg.Pool): Promise<Record<string, number>> {
  const tables =
    'schemas firms folders payments accounts companies employees journals exercices entries movements'
  const counts: Record<string, number> = {}
  for (const table of tables.split(' ')) {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from grandlivre.${table}`,
    )
    counts[table] = rows[0]!.count
  }
  return counts
}
