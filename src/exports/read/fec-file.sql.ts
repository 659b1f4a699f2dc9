/** What a FEC needs: its exercice, the journals and accounts that its lines cite, and its two COPY statements. */
import type pg from 'pg'
import { idLiteral } from '../../db/literal.ts'
import { fecEntryColumns, fecMovementColumns } from '../../formats/fec/lines/fec-lines.ts'
import type { FiledAccount, FolderKey } from '../../formats/rows.ts'
import type { Selection } from '../selection.ts'
import { copyOf, entryList, inFolder, movementList } from './movements.sql.ts'

/**
 * The order of the lines (docs/spec/fec.md#order). `validation`: opening journals, then the day of validation, then the
 * id of the entry. An imported exercice is read as in its file: by `ids` of entries and movements or, if lines of some
 * entry are scattered over the file, by `places` of movements.
 */
type FecOrder = 'validation' | 'ids' | 'places'

/** Requests for a FEC without an exercice were refused before. */
const ofExercice = (alias: 'e' | 'm', { exerciceId, ...folder }: Selection): string =>
  `${inFolder(alias, folder)} and ${alias}.exercice_id = ${idLiteral(exerciceId!)}`

const joinJournals =
  'join journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)'

/** Journals of type OD_EXC are not books of account, but entries that came from a FEC are in the FEC again. */
const inBooks = `(j.type <> 'OD_EXC' or e.source = 'FEC')`

/**
 * Reads the exercice of a FEC, and counts over all its entries. Undefined if the folder does not have the exercice.
 * @returns `filedColumns`: names of the columns that its file had beyond the standard's; `drafts` and `outsideBooks`:
 *   how many entries the file leaves out because they await validation or are outside the books (see `inBooks`)
 */
export async function readFecExercice(client: pg.ClientBase, selection: Selection) {
  const { rows } = await client.query<{
    filedColumns: string[] | null
    scattered: boolean
    drafts: string
    outsideBooks: string
    earlierImports: string
  }>(
    `select x.filed_columns as "filedColumns", x.scattered, counted.*
     from exercices x cross join lateral (
       select count(*) filter (where e.validated_at is null) as drafts,
              count(*) filter (where e.validated_at is not null and not ${inBooks}) as "outsideBooks",
              count(*) filter (where e.validated_at is not null and e.source = 'FEC' and e.number is null)
                as "earlierImports"
       from entries e ${joinJournals} where ${ofExercice('e', selection)}
     ) counted
     where ${inFolder('x', selection)} and x.id = ${idLiteral(selection.exerciceId!)}`,
  )
  const [found] = rows
  if (!found) return undefined
  const { filedColumns, scattered, drafts, outsideBooks, earlierImports } = found
  const imported: FecOrder = scattered ? 'places' : 'ids'
  const isImported = filedColumns !== null || Number(earlierImports) > 0
  return {
    order: isImported ? imported : 'validation',
    filedColumns: filedColumns ?? [],
    drafts: Number(drafts),
    outsideBooks: Number(outsideBooks),
  } as const
}

/** How many movements the file has. */
export async function countFecMovements(client: pg.ClientBase, selection: Selection): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    `select (select count(*) from movements m where ${ofExercice('m', selection)}) - (
       select count(*) from entries e ${joinJournals} ${joinMovements}
       where ${ofExercice('e', selection)} and not (e.validated_at is not null and ${inBooks})
     ) as count`,
  )
  return Number(rows[0]!.count)
}

const joinMovements = `join movements m on (m.schema_id, m.folder_id, m.exercice_id, m.entry_id)
  = (e.schema_id, e.folder_id, e.exercice_id, e.id)`

/** Makes a function that reads all rows of one kind of a folder. The connection keeps the plan. */
const readFiled =
  <Row extends object>(name: string, select: string) =>
  async (client: pg.ClientBase, { schemaId, folderId }: FolderKey): Promise<Row[]> => {
    const text = `${select} where schema_id = $1 and folder_id = $2 order by id`
    return (await client.query<Row>({ name, text, values: [schemaId, folderId] })).rows
  }

/** Reads journals, with the names from an imported FEC if it had any. */
export const readFiledJournals = readFiled<{ id: string; code: string; name: string }>(
  'filed journals',
  'select id, code, coalesce(filed_name, name) as name from journals',
)

export const readFiledAccounts = readFiled<FiledAccount>(
  'filed accounts',
  `select id, number, name, filed_number as "filedNumber", filed_name as "filedName",
     auxiliary_number as "auxiliaryNumber", auxiliary_name as "auxiliaryName" from accounts`,
)

/** Sorts opening balances first, because false comes before true. */
const isLater = `j.type not in ('AN', 'RBAL')`
const place = 'coalesce(m.place, m.id)'

/**
 * The statements of the file. By places, an entry comes once for each of its movements; movements that follow one
 * another in the file are all read with the first row of their entry. By ids, no join is needed; the movements then
 * include those of entries that are not in the file.
 *
 * By validation, each entry's movements are looked up by the primary key: 0.6 s of the database for 300,000 movements,
 * and the first row arrives at once. Sorted as a whole they take 1.0 s and the disk; by ids, 0.1 s. The lateral
 * subquery leaves the planner no other way.
 */
export function copyFec(selection: Selection, order: FecOrder) {
  const isInFile = `${ofExercice('e', selection)} and e.validated_at is not null and ${inBooks}`
  const entries = `select ${entryList(fecEntryColumns, 'UTC')} from entries e ${joinJournals}`
  const movements = `select ${movementList(fecMovementColumns)}`
  const texts: Record<FecOrder, [entries: string, movements: string]> = {
    validation: [
      `${entries} where ${isInFile} order by ${isLater}, e.validated_at, e.id`,
      `${movements} from (
        select e.id, ${isLater} as is_later, e.validated_at from entries e ${joinJournals}
        where ${isInFile} order by is_later, e.validated_at, e.id offset 0
      ) e cross join lateral (
        select * from movements m where ${ofExercice('m', selection)} and m.entry_id = e.id order by m.id offset 0
      ) m
      order by e.is_later, e.validated_at, e.id, m.id`,
    ],
    ids: [
      `${entries} where ${isInFile} order by e.id`,
      `${movements} from movements m where ${ofExercice('m', selection)} order by m.entry_id, m.id`,
    ],
    places: [
      `${entries} ${joinMovements} where ${isInFile} order by ${place}`,
      `${movements} from entries e ${joinJournals} ${joinMovements} where ${isInFile} order by ${place}`,
    ],
  }
  const [ofEntries, ofMovements] = texts[order]
  return {
    entries: copyOf(ofEntries),
    movements: copyOf(ofMovements),
    order: order === 'ids' ? 'ascending' : 'same',
  } as const
}
