/**
 * npm packs the `package.json` and `README.md` that it finds in the folder, so those of the package take the place of its
 * own while npm packs. The originals, and what replaced them, are kept in `.cache/packing`: after an interruption
 * they come back, unless somebody has changed the file meanwhile.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const replaced = ['package.json', 'README.md'] as const

const keptIn = (folder: string) => join(folder, '.cache/packing')

/** @param texts of the package's files */
export function putInPlace(folder: string, texts: Readonly<Record<(typeof replaced)[number], string>>): void {
  const kept = keptIn(folder)
  mkdirSync(kept, { recursive: true })
  for (const name of replaced) {
    copyFileSync(join(folder, name), join(kept, `${name}.original`))
    writeFileSync(join(kept, `${name}.packed`), texts[name])
  }
  for (const name of replaced) {
    writeFileSync(join(kept, name), texts[name])
    renameSync(join(kept, name), join(folder, name))
  }
}

/** Brings the folder's files back, and removes what was built. Does nothing where nothing is left of a pack. */
export function restore(folder: string): void {
  const kept = keptIn(folder)
  // The next pack may be building by now.
  if (!existsSync(kept)) return
  for (const name of replaced) {
    const packed = textOf(join(kept, `${name}.packed`))
    if (packed !== undefined && packed === textOf(join(folder, name)))
      renameSync(join(kept, `${name}.original`), join(folder, name))
  }
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  rmSync(kept, { recursive: true, force: true })
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}
