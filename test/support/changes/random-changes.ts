/** Random changes of a random ledger: everything that programs do to one, in statements and transactions. */
import fc from 'fast-check'
import type pg from 'pg'
import {
  accountIds,
  entryCount,
  exerciceIds,
  journalIds,
  paymentIds,
  type RandomLedger,
  sectionIds,
} from './random-ledger.ts'

/** SQL in which §folder is a condition on schema_id and folder_id, §key their values, and §partner the id of the sender. */
type Statement = fc.Arbitrary<string>

/** One that fails a property shows its statements. */
export interface Transaction {
  statements: string[]
  end: 'commit' | 'rollback'
}

function sql(
  { raw }: TemplateStringsArray,
  ...parts: (fc.Arbitrary<unknown> | string | number)[]
): Statement {
  const drawn = parts.map((part) => (part instanceof fc.Arbitrary ? part : fc.constant(part)))
  return fc.tuple(...drawn).map((values) => String.raw({ raw }, ...values))
}

const between = (min: number, max: number) => fc.integer({ min, max })
const text = fc.nat({ max: 1e9 }).map((number) => `'é"\\\\ ${number}'`)
const account = between(...accountIds)
const journal = between(...journalIds)
const section = between(...sectionIds)
const payment = between(...paymentIds)
const axis = between(61, 62)

/** Ids of some entries of one exercice: neighbours, or scattered over the folder. One in thirty times, of nearly all. */
const entries = sql`select id from entries where §folder
  order by ${fc.oneof(fc.constant('id'), sql`(id * ${between(1, 997)}) % 1009`)}, id
  offset ${between(0, entryCount - 50)}
  limit ${fc.oneof({ weight: 29, arbitrary: between(1, 6) }, { weight: 1, arbitrary: fc.constant(entryCount - 50) })}`

const setOfEntry = fc.oneof(
  sql`comment = ${text}`,
  sql`due_date = date '2024-03-01' + ${between(0, 300)}`,
  // Into another period, still in the exercice.
  sql`date = make_date(extract(year from date)::int, ${between(1, 12)}, ${between(1, 28)})`,
  sql`accounted_at = accounted_at + ${between(-40, 40)}`,
  sql`created_at = created_at + ${between(-900, 900)} * interval '1 hour'`,
  sql`validated_at = case when validated_at is null then date '2025-02-28' end`,
  sql`source = '${fc.constantFrom('E', 'FEC', 'O')}', third_party_id = null`,
  sql`source = 'API', third_party_id = §partner`,
  // An entry with a number stays in its journal.
  sql`journal_id = case when number is null then ${journal} else journal_id end`,
  sql`currency = 'USD', rate = ${between(1, 9)}.5`,
  sql`partner_metadata = jsonb_build_object('partnerId', ${text}, 'json', null)`,
)

const setOfMovement = fc.oneof(
  sql`description = ${text}`,
  sql`debit = ${between(1, 10_000_000)}, credit = 0`,
  sql`account_id = ${account}`,
  sql`payment_id = ${payment}`,
  sql`lettering_state = 'complete', lettering_code = 'AB'`,
  sql`lettering_state = 'partial', lettering_code = 'C'`,
  sql`lettering_state = 'none', lettering_code = null`,
  sql`shares = (select array[id, 100, 1000000]::bigint[] from sections where §folder
    order by id offset ${between(0, 5)} limit 1)`,
  sql`invoice_number = invoice_number || '-2'`,
)

const renames = fc.oneof(
  sql`update accounts set name = ${text} where §folder and id = ${account}`,
  // It may leave its class, and with it the selections by roots.
  sql`update accounts set number = '${fc.constantFrom('401', '411', '606', '7')}R' || id || '${between(0, 999)}'
    where §folder and id = ${account}`,
  sql`update journals set name = ${text} where §folder and id = ${journal}`,
  sql`update journals set type = '${fc.constantFrom('ACH', 'OD', 'OD_EXC')}' where §folder and id = ${journal}`,
  sql`update payments set code = '${fc.constantFrom('ESP', 'PRLV', 'CB')}' where §folder and id = ${payment}`,
  sql`update axes set code = 'X${between(0, 999)}' || id where §folder and id = ${axis}`,
  sql`update sections set name = ${text} where §folder and id = ${section}`,
  sql`update sections set axis_id = ${axis}, code = 'T' || id where §folder and id = ${section}`,
  sql`update third_parties set name = ${text} where id = §partner`,
  sql`update vat_codes set rate = ${between(0, 2_000)} where §folder`,
  sql`update companies set name = ${text} where §folder`,
  sql`update employees set last_name = ${text} where §folder`,
)

/** Movements and entries that come, go and move. Ids lie in gaps between the others as well as after them. */
const comings = fc.oneof(
  sql`with e as (insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at,
        validated_at, source, currency)
      select §key, ${between(1, 8 * entryCount)}, x.id, ${journalIds[0]}, x.start_date + 40, x.start_date + 40, now(),
        ${fc.constantFrom('null', `date '2025-03-01'`)}, 'E', 'EUR'
      from exercices x where (x.schema_id, x.folder_id, x.id) = (§key, ${fc.constantFrom(...exerciceIds)})
      on conflict do nothing returning id, exercice_id)
    insert into movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description, invoice_number, debit, credit)
      select §key, exercice_id, e.id, 200000 + 10 * e.id + k, ${account}, 'Neuf', '', k, 0
      from e, generate_series(1, ${between(1, 5)}) k on conflict do nothing`,
  sql`update movements m set entry_id = t.id
    from (select id, exercice_id from entries where §folder order by id offset ${between(0, entryCount - 50)} limit 1) t
    where m.schema_id = §schema and m.folder_id = §id and m.exercice_id = t.exercice_id and m.entry_id in (${entries})`,
  sql`delete from movements where §folder and entry_id in (${entries})`,
  sql`delete from entries where §folder and id in (${entries})`,
  // Only without movements can an entry take another id.
  sql`update entries e set id = ${between(7000, 9_000_000)} where §folder
    and e.id = (select x.id from entries x where §folder and not exists (select from movements m
      where (m.schema_id, m.folder_id, m.entry_id) = (x.schema_id, x.folder_id, x.id)) order by x.id limit 1)`,
  // An export fails on a share without its section, so one that is deleted has none left.
  section.map(
    (id) => `update movements set shares = null where §folder and shares[1] = ${id};
      delete from sections where §folder and id = ${id}`,
  ),
  section.chain(
    (id) => sql`insert into sections (schema_id, folder_id, id, axis_id, code, name)
      values (§key, ${id}, ${axis}, 'N${id}', 'Section neuve') on conflict do nothing`,
  ),
  between(201, 204).map(
    (id) => `insert into accounts (schema_id, folder_id, id, number, name)
      values (§key, ${id}, '999${id}', 'Neuf') on conflict do nothing`,
  ),
  sql`delete from accounts where §folder and id = ${between(201, 204)}`,
)

/** They move the cursor and show in no line. */
const invisible = fc.oneof(
  sql`update banks set bic = ${text} where §folder`,
  sql`update exercices set closed_at = now() where §folder and id = ${fc.constantFrom(...exerciceIds)}`,
  sql`update folders set name = ${text} where (schema_id, id) = (§key)`,
)

const statement = fc.oneof(
  { weight: 32, arbitrary: sql`update entries set ${setOfEntry} where §folder and id in (${entries})` },
  {
    weight: 33,
    // Some lines of each entry.
    arbitrary: sql`update movements set ${setOfMovement}
      where §folder and entry_id in (${entries}) and id % ${between(1, 3)} = 0`,
  },
  { weight: 10, arbitrary: renames },
  { weight: 20, arbitrary: comings },
  { weight: 5, arbitrary: invisible },
)

/** One to three statements, of which one in ten times nothing stays. */
export const transaction: fc.Arbitrary<Transaction> = fc.record({
  statements: fc.array(statement, { minLength: 1, maxLength: 3 }),
  end: fc.oneof(
    { weight: 9, arbitrary: fc.constant('commit' as const) },
    { weight: 1, arbitrary: fc.constant('rollback' as const) },
  ),
})

export async function carryOut(
  client: pg.ClientBase,
  { schemaId, folderId, thirdPartyId }: RandomLedger,
  { statements, end }: Transaction,
): Promise<void> {
  const text = statements
    .join(';\n')
    .replaceAll('§folder', `schema_id = ${schemaId} and folder_id = ${folderId}`)
    .replaceAll('§key', `${schemaId}, ${folderId}`)
    .replaceAll('§schema', schemaId)
    .replaceAll('§id', folderId)
    .replaceAll('§partner', thirdPartyId)
  try {
    await client.query(`begin; set local search_path = grandlivre; ${text}; ${end}`)
  } catch (error) {
    await client.query('rollback')
    // An id that is taken: another transaction without effect.
    if ((error as { code?: string }).code !== '23505') throw error
  }
}
