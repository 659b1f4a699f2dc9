/**
 * One area of a copy: a file of lines and, in `<file>.state.json`, what it holds. A change writes a whole new file beside
 * it, `<file>.<number>.part`, then the state that names this number, then gives the file its name. The state decides: a
 * later run gives the file that it names its name, if a kill came before, and removes all others.
 */
import { open, readdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isSamePart, type Part, type State } from '../targets/target.ts'

/** Where the lines of a part are in the file. */
export interface Segment extends Part {
  start: number
  end: number
}

export interface Kept {
  state: State
  /** In their order in the file. */
  segments: Segment[]
  /** Number of the last change that wrote the file. */
  change: number
  accounts: unknown[]
  journals: unknown[]
  exercices: unknown[]
}

export class AreaFile {
  readonly path: string
  readonly statePath: string
  kept: Kept | undefined

  constructor(path: string) {
    this.path = path
    this.statePath = `${path}.state.json`
  }

  async recover(): Promise<void> {
    this.kept = await readKept(this.statePath)
    const latest = this.partPath(this.kept?.change ?? 0)
    const prefix = `${basename(this.path)}.`
    for (const name of await readdir(dirname(this.path))) {
      if (!name.startsWith(prefix) || !/^\d+\.(part|delta)/.test(name.slice(prefix.length))) continue
      const path = join(dirname(this.path), name)
      if (this.kept && path === latest) await rename(path, this.path)
      else await rm(path)
    }
    if (!this.kept) return
    const bytes = await sizeOf(this.path)
    // What a killed load has added after its last state.
    if (bytes > this.bytes) await truncate(this.path, this.bytes)
    // Lines are lost, for example of a next copy that was about to be put in place: they are read anew.
    if (bytes < this.bytes) await this.remove()
  }

  get bytes(): number {
    return this.kept?.segments.at(-1)?.end ?? 0
  }

  get nextChange(): number {
    return (this.kept?.change ?? 0) + 1
  }

  partPath(change: number): string {
    return `${this.path}.${change}.part`
  }

  segmentsOf(part: Part): Segment[] {
    return this.kept?.segments.filter((segment) => isSamePart(segment, part)) ?? []
  }

  /** @param rewritten whether the file of this change is to take the place of the one before */
  async keep(kept: Kept, rewritten: boolean): Promise<void> {
    await writeWhole(this.statePath, JSON.stringify(kept))
    if (rewritten) await rename(this.partPath(kept.change), this.path)
    this.kept = kept
  }

  async remove(): Promise<void> {
    await rm(this.statePath, { force: true })
    await rm(this.path, { force: true })
    this.kept = undefined
  }
}

async function readKept(path: string): Promise<Kept | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}

/** A machine that fails keeps the old content or the new one. */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = `${path}.tmp`
  await writeFile(draft, text)
  const file = await open(draft, 'r+')
  await file.sync()
  await file.close()
  await rename(draft, path)
}
