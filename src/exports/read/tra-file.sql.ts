/** What a TRA file needs from the folder in addition to the collections. */

import type pg from 'pg'
import type { SimplifiedAccount } from '../../formats/items/values.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { entryConditions, inSegment, isForeign, type ResolvedSelection } from './movements.sql.ts'

/**
 * Finds the currencies of the selected entries, except the euro. `rate`: price of one unit in euro, as decimal text,
 * from the last selected entry in this currency.
 */
export async function findForeignCurrencies(client: pg.ClientBase, resolved: ResolvedSelection) {
  const conditions = [...inSegment('e', resolved), ...entryConditions(resolved.selection), isForeign]
  const { rows } = await client.query<{ code: string; rate: string }>(
    `select distinct on (e.currency) e.currency as code, trim_scale(e.rate)::text as rate
     from entries e where ${conditions.join(' and ')}
     order by e.currency, e.date desc, e.id desc`,
  )
  return rows
}

/** Makes a function that reads the rows of one folder. $1 and $2 are the ids of its tenant and of itself. */
const readRows =
  <Row extends object>(text: string) =>
  async (client: pg.ClientBase, { schemaId, folderId }: FolderKey): Promise<Row[]> =>
    (await client.query<Row>(text, [schemaId, folderId])).rows

/**
 * Finds all lettering codes of each account that has an odd code: one that cannot be copied into a TRA file as COPY
 * writes it, because it is too long, not plain ASCII, in lower case (two codes might become equal), or has a backslash
 * (COPY doubles it). Reads all exercices, so that every file of the folder has the same codes.
 *
 * Looks once at each lettered movement. A join with the accounts that have such a code took 14 s instead of 0.06 s for
 * 100,000 movements, among four folders of that size: where the database expected few accounts, it read all movements
 * of an account again and again.
 */
export const findOddLetterings = readRows<{ accountId: string; codes: string[] }>(
  `select account_id as "accountId", array_agg(distinct lettering_code) as codes
   from movements
   where schema_id = $1 and folder_id = $2 and lettering_state <> 'none'
   group by account_id
   having bool_or(lettering_code !~ '^[!-\`{-~]{1,4}$' or strpos(lettering_code, '\\') > 0)`,
)

/**
 * Reads the currency of the books and the name of the firm that keeps them, in one row; no row if the folder does not
 * exist.
 */
export const readKeeping = readRows<{ currency: string; firmName: string }>(
  `select f.currency, firm.name as "firmName"
   from folders f join firms firm on (firm.schema_id, firm.id) = (f.schema_id, f.firm_id)
   where f.schema_id = $1 and f.id = $2`,
)

/** Reads the accounts that other accounts name as their correspondence account. */
export const readCorrespondenceAccounts = readRows<SimplifiedAccount>(
  `select id as "producerId", number, name from accounts
   where schema_id = $1 and folder_id = $2 and id in (
     select correspondance_account_id from accounts where schema_id = $1 and folder_id = $2
   )
   order by id`,
)
