/** Random changes of a random ledger: everything that programs do to one, in statements and transactions. */
import type pg from 'pg'
import {
  accountIds,
  entryCount,
  journalIds,
  paymentIds,
  type RandomLedger,
  sectionIds,
} from './random-ledger.ts'

/** 0 to 1, excluding 1. */
export type Random = () => number

/** The same sequence for the same seed (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number, both ends included. */
export function between(random: Random, least: number, most: number): number {
  return least + Math.floor(random() * (most - least + 1))
}

export function oneOf<T>(random: Random, choices: readonly T[]): T {
  return choices[between(random, 0, choices.length - 1)]!
}

type Change = (random: Random, at: Picks) => string

/** What statements pick, as SQL. */
interface Picks {
  /** `schema_id = ... and folder_id = ...` */
  folder: string
  /** Values for schema_id, folder_id. */
  key: string
  /** Ids of some entries of one exercice: neighbours, or scattered over the folder. */
  entries: string
  text: string
  thirdPartyId: string
}

const setOfEntry: Change[] = [
  (_, { text }) => `comment = ${text}`,
  (random) => `due_date = date '2024-03-01' + ${between(random, 0, 300)}`,
  // Into another period, still in the exercice.
  (random) =>
    `date = make_date(extract(year from date)::int, ${between(random, 1, 12)}, ${between(random, 1, 28)})`,
  (random) => `accounted_at = accounted_at + ${between(random, -40, 40)}`,
  (random) => `created_at = created_at + ${between(random, -900, 900)} * interval '1 hour'`,
  () => `validated_at = case when validated_at is null then date '2025-02-28' end`,
  (random) => `source = '${oneOf(random, ['E', 'FEC', 'O'])}', third_party_id = null`,
  (_, { thirdPartyId }) => `source = 'API', third_party_id = ${thirdPartyId}`,
  // An entry with a number stays in its journal.
  (random) =>
    `journal_id = case when number is null then ${between(random, ...journalIds)} else journal_id end`,
  (random) => `currency = 'USD', rate = ${between(random, 1, 9)}.5`,
  (_, { text }) => `partner_metadata = jsonb_build_object('partnerId', ${text}, 'json', null)`,
]

const setOfMovement: Change[] = [
  (_, { text }) => `description = ${text}`,
  (random) => `debit = ${between(random, 1, 10_000_000)}, credit = 0`,
  (random) => `account_id = ${between(random, ...accountIds)}`,
  (random) => `payment_id = ${between(random, ...paymentIds)}`,
  (random) =>
    oneOf(random, [
      `lettering_state = 'complete', lettering_code = 'AB'`,
      `lettering_state = 'partial', lettering_code = 'C'`,
      `lettering_state = 'none', lettering_code = null`,
    ]),
  (random, { folder }) =>
    `shares = (select array[id, 100, 1000000]::bigint[] from sections where ${folder}
      order by id offset ${between(random, 0, 5)} limit 1)`,
  () => `invoice_number = invoice_number || '-2'`,
]

const renames: Change[] = [
  (random, { folder, text }) =>
    `update accounts set name = ${text} where ${folder} and id = ${between(random, ...accountIds)}`,
  // It may leave its class, and with it the selections by roots.
  (random, { folder }) =>
    `update accounts set number = '${oneOf(random, ['401', '411', '606', '7'])}R' || id || '${between(random, 0, 999)}'
     where ${folder} and id = ${between(random, ...accountIds)}`,
  (random, { folder, text }) =>
    `update journals set name = ${text} where ${folder} and id = ${between(random, ...journalIds)}`,
  (random, { folder }) =>
    `update journals set type = '${oneOf(random, ['ACH', 'OD', 'OD_EXC'])}' where ${folder} and id = ${between(random, ...journalIds)}`,
  (random, { folder }) =>
    `update payments set code = '${oneOf(random, ['ESP', 'PRLV', 'CB'])}' where ${folder} and id = ${between(random, ...paymentIds)}`,
  (random, { folder }) =>
    `update axes set code = 'X${between(random, 0, 999)}' || id where ${folder} and id = ${between(random, 61, 62)}`,
  (random, { folder, text }) =>
    `update sections set name = ${text} where ${folder} and id = ${between(random, ...sectionIds)}`,
  (random, { folder }) => `update sections set axis_id = ${between(random, 61, 62)}, code = 'T' || id
     where ${folder} and id = ${between(random, ...sectionIds)}`,
  (_, { text, thirdPartyId }) => `update third_parties set name = ${text} where id = ${thirdPartyId}`,
]

/** Movements and entries that come, go and move. Ids lie in gaps between the others as well as after them. */
const comings: Change[] = [
  (random, { key }) => {
    const id = between(random, 1, 8 * entryCount)
    return `with e as (insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at,
        validated_at, source, currency)
      select ${key}, ${id}, x.id, ${journalIds[0]}, x.start_date + 40, x.start_date + 40, now(),
        ${oneOf(random, ['null', `date '2025-03-01'`])}, 'E', 'EUR'
      from exercices x where (x.schema_id, x.folder_id, x.id) = (${key}, ${between(random, 11, 12)})
      on conflict do nothing returning id, exercice_id)
     insert into movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description, invoice_number, debit, credit)
      select ${key}, exercice_id, e.id, 200000 + 10 * e.id + k, ${between(random, ...accountIds)}, 'Neuf', '', k, 0
      from e, generate_series(1, ${between(random, 1, 5)}) k on conflict do nothing`
  },
  (random, { folder, entries }) =>
    `update movements m set entry_id = t.id
     from (select id, exercice_id from entries where ${folder} order by id offset ${between(random, 0, entryCount - 50)} limit 1) t
     where m.${folder.replace(' and ', ' and m.')} and m.exercice_id = t.exercice_id and m.entry_id in (${entries})`,
  (_, { folder, entries }) => `delete from movements where ${folder} and entry_id in (${entries})`,
  (_, { folder, entries }) => `delete from entries where ${folder} and id in (${entries})`,
  // Only without movements can an entry take another id.
  (random, { folder }) =>
    `update entries e set id = ${between(random, 7000, 9_000_000)} where ${folder}
     and e.id = (select x.id from entries x where ${folder} and not exists (select from movements m
       where (m.schema_id, m.folder_id, m.entry_id) = (x.schema_id, x.folder_id, x.id)) order by x.id limit 1)`,
  // An export fails on a share without its section, so one that is deleted has none left.
  (random, { folder }) => {
    const id = between(random, ...sectionIds)
    return `update movements set shares = null where ${folder} and shares[1] = ${id};
      delete from sections where ${folder} and id = ${id}`
  },
  (random, { key }) => {
    const id = between(random, ...sectionIds)
    return `insert into sections (schema_id, folder_id, id, axis_id, code, name)
      values (${key}, ${id}, ${between(random, 61, 62)}, 'N${id}', 'Section neuve') on conflict do nothing`
  },
]

/** They move the cursor and show in no line. */
const invisible: Change[] = [
  (_, { folder, text }) => `update banks set bic = ${text} where ${folder}`,
  (random, { folder }) =>
    `update exercices set closed_at = now() where ${folder} and id = ${between(random, 11, 12)}`,
  (_, { key, text }) => `update folders set name = ${text} where (schema_id, id) = (${key})`,
]

/**
 * One random transaction of one to three statements. One in ten is rolled back, and one in fifteen changes most of the
 * ledger.
 */
export async function changeAtRandom(
  client: pg.ClientBase,
  ledger: RandomLedger,
  random: Random,
): Promise<void> {
  const statements = Array.from({ length: between(random, 1, 3) }, () => randomStatement(ledger, random))
  const end = random() < 0.1 ? 'rollback' : 'commit'
  try {
    await client.query(`begin; set local search_path = grandlivre; ${statements.join(';\n')}; ${end}`)
  } catch (error) {
    await client.query('rollback')
    // An id that is taken: another transaction without effect.
    if ((error as { code?: string }).code !== '23505') throw error
  }
}

function randomStatement({ schemaId, folderId, thirdPartyId }: RandomLedger, random: Random): string {
  const folder = `schema_id = ${schemaId} and folder_id = ${folderId}`
  const some = random() < 1 / 15 ? entryCount - 50 : between(random, 1, 6)
  const order = oneOf(random, ['id', `(id * ${between(random, 1, 997)}) % 1009`])
  const at: Picks = {
    folder,
    key: `${schemaId}, ${folderId}`,
    entries: `select id from entries where ${folder} order by ${order}, id offset ${between(random, 0, entryCount - 50)} limit ${some}`,
    text: `'é"\\\\ ${between(random, 0, 1e9)}'`,
    thirdPartyId,
  }
  const kind = random()
  if (kind < 0.3)
    return `update entries set ${oneOf(random, setOfEntry)(random, at)} where ${folder} and id in (${at.entries})`
  if (kind < 0.6) {
    // Some lines of each entry.
    const every = between(random, 1, 3)
    return `update movements set ${oneOf(random, setOfMovement)(random, at)}
      where ${folder} and entry_id in (${at.entries}) and id % ${every} = 0`
  }
  const others = kind < 0.75 ? renames : kind < 0.95 ? comings : invisible
  return oneOf(random, others)(random, at)
}
