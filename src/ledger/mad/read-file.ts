/** Reads the items of a MAD file. */
import {
  type FileItem,
  findTextError,
  type JsonItems,
  JsonTextError,
} from '../../formats/mad/read/json-items.ts'
import { readSource } from '../import/source-file.ts'

/**
 * The items of the wanted places, in batches of one chunk. Ends early when `isEnough`.
 * @throws {JsonTextError} for text that is not JSON, with line and column and what it belongs to
 */
export async function* readItems(
  file: string,
  items: JsonItems,
  onRead: (bytes: number) => void,
  isEnough: () => boolean = () => false,
): AsyncGenerator<FileItem[]> {
  for await (const text of decoded(file, onRead)) {
    yield await found(file, items, text)
    if (isEnough()) return
  }
  items.end()
}

async function found(file: string, items: JsonItems, text: string): Promise<FileItem[]> {
  try {
    return items.add(text)
  } catch (cause) {
    if (cause instanceof JsonTextError) throw cause
    const place = await findTextError(decoded(file, () => {}))
    throw new JsonTextError(`${place ?? items.path}: not JSON`, { cause })
  }
}

async function* decoded(file: string, onRead: (bytes: number) => void): AsyncGenerator<string> {
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
