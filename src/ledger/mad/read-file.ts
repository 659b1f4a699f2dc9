/** Reads the items of a MAD file, and finds those that have an id, for messages. */
import pg from 'pg'
import type { Json } from '../../formats/items/any-json.ts'
import { type FileItem, findTextError, JsonItems, JsonTextError } from '../../formats/mad/read-items.ts'
import { ImportRefused } from '../import/import-refused.ts'
import { type ReadBytes, readSource } from '../import/source-file.ts'
import type { IdOfTable } from './import-mad.sql.ts'
import type { MadMasterData } from './master-data.ts'

export const entriesPlace = 'data.entries'

/**
 * The items of the wanted places, in batches of one chunk. Ends early when `isEnough`.
 * @throws {JsonTextError} for text that is not JSON, with line and column and what it belongs to
 */
export async function* readItems(
  file: string,
  items: JsonItems,
  onRead: (read: ReadBytes) => void,
  isEnough: () => boolean = () => false,
): AsyncGenerator<FileItem[]> {
  for await (const text of decoded(file, onRead)) {
    yield await itemsIn(file, items, text)
    if (isEnough()) return
  }
  items.end()
}

async function itemsIn(file: string, items: JsonItems, text: string): Promise<FileItem[]> {
  try {
    return items.add(text)
  } catch (cause) {
    if (cause instanceof JsonTextError) throw cause
    const place = await findTextError(decoded(file, () => {}))
    throw new JsonTextError(`${place ?? items.path}: not JSON`, { cause })
  }
}

async function* decoded(file: string, onRead: (read: ReadBytes) => void): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let from = 0
  const decode = (bytes?: Uint8Array) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch (cause) {
      const to = from + (bytes?.length ?? 0)
      throw new JsonTextError(`the file is not UTF-8: see bytes ${from} to ${to}`, { cause })
    }
  }
  for await (const bytes of readSource(file, onRead)) {
    yield decode(bytes)
    from += bytes.length
  }
  decode()
}

/** Such as `data.accounts[3].producerId`. Reads the file once more for an entry or a movement. */
export async function pathOfId(
  file: string,
  masterData: MadMasterData,
  { table, id }: IdOfTable,
): Promise<string> {
  if (table !== 'entries' && table !== 'movements') return masterData.pathOfId(table, id)
  return (await pathsOfId(file, table, id))[0]!
}

/** Problems of the text, and ids of entries or movements that the file has twice, are reported as those of items are. */
export async function refusing<Result>(file: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (cause) {
    if (cause instanceof JsonTextError) throw new ImportRefused([cause.message], 1, { cause })
    // Ids of what entries refer to are checked before they are loaded.
    const { constraint = '', detail = '' } = cause instanceof pg.DatabaseError ? cause : {}
    const [, table] =
      /^(?:filed_)?(entries|movements)_(?:pkey|schema_id_folder_id_id_key)$/.exec(constraint) ?? []
    const [, id] = /(\d+)\) already exists/.exec(detail) ?? []
    if (table === undefined || id === undefined) throw cause
    const [first, second] = await pathsOfId(file, table, id)
    throw new ImportRefused([`${second} "${id}": ${first} is the same`], 1, { cause })
  }
}

/** The first two at most: what follows them may be no entry. */
async function pathsOfId(file: string, table: string, id: string): Promise<string[]> {
  const paths: string[] = []
  for await (const batch of readItems(file, new JsonItems((place) => place === entriesPlace), () => {}))
    for (const { index, value } of batch) {
      // An entry that was checked before.
      const { producerId, movements } = value as unknown as FileIds
      const path = `${entriesPlace}[${index}]`
      if (table === 'entries' && producerId === id) paths.push(`${path}.producerId`)
      if (table === 'movements')
        for (const [i, movement] of movements.entries())
          if (movement.producerId === id) paths.push(`${path}.movements[${i}].producerId`)
      if (paths.length >= 2) return paths
    }
  return paths
}

interface FileIds {
  producerId: Json
  movements: { producerId: Json }[]
}
