/** Finds where a file has an id that cannot be loaded, for messages. Reads the file once more. */
import pg from 'pg'
import type { Json } from '../../formats/items/any-json.ts'
import { JsonItems } from '../../formats/mad/read/json-items.ts'
import { ImportRefused } from '../import/import-refused.ts'
import { type Books, entriesPlace } from './books.ts'
import { bookTables, type EntryTable, type IdOfTable } from './kept-ids.sql.ts'
import { readItems } from './read-file.ts'

/** Such as `data.accounts[3].producerId`. */
export async function pathOfId(file: string, books: Books, { table, id }: IdOfTable): Promise<string> {
  if (table === 'entries' || table === 'movements') return (await placesOf(file, table, id))[0]!
  const list = bookTables[table]
  const item = books[list].get(id)!
  return `${books.placeOf(item) ?? list}.producerId`
}

/** The keys of entries and movements. Other ids are checked before they are loaded: they fit into memory. */
const keys: Record<string, EntryTable> = {
  entries_pkey: 'entries',
  movements_schema_id_folder_id_id_key: 'movements',
  filed_entries_pkey: 'entries',
  filed_movements_pkey: 'movements',
}

/** Runs a load and, if the file has an id of an entry or a movement twice, refuses it with both places. */
export async function refusingTwice<Result>(file: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    const table = error instanceof pg.DatabaseError ? keys[error.constraint ?? ''] : undefined
    const [, id] = /(\d+)\) already exists/.exec((error as pg.DatabaseError).detail ?? '') ?? []
    if (table === undefined || id === undefined) throw error
    const [first, second] = await placesOf(file, table, id)
    throw new ImportRefused([`${second} "${id}": ${first} is the same`], 1, { cause: error })
  }
}

/** The first two at most: what follows them may be no entry. */
async function placesOf(file: string, table: EntryTable, id: string): Promise<string[]> {
  const items = new JsonItems((place) => place === entriesPlace)
  const found: string[] = []
  for await (const batch of readItems(file, items, () => {}))
    for (const { index, value } of batch)
      for (const path of pathsOf(table, id, value as unknown as FileIds)) {
        found.push(`${entriesPlace}[${index}]${path}.producerId`)
        if (found.length === 2) return found
      }
  return found
}

/** An entry that was checked before. */
interface FileIds {
  producerId: Json
  movements: { producerId: Json }[]
}

function pathsOf(table: EntryTable, id: string, { producerId, movements }: FileIds): string[] {
  if (table === 'entries') return producerId === id ? [''] : []
  return movements.flatMap((movement, i) => (movement.producerId === id ? [`.movements[${i}]`] : []))
}
