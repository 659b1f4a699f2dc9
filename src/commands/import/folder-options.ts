import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { checkLine } from '../terminal/check-line.ts'

/** Options of imports that bring a whole ledger. */
export interface FolderOptions {
  folder?: string | undefined
  name?: string
  replace?: boolean
}

export function addFolderOptions(command: Command): Command {
  return command
    .option('--folder <id>', 'an existing folder; otherwise a new one, in a firm and schema of its own')
    .option('--name <name>', 'of a new folder; that of the file otherwise')
    .option('--replace', 'replace the whole ledger that the folder already holds')
}

/** Checked before a database is started. @throws {Error} */
export function checkFolderOptions(file: string, { folder, name }: FolderOptions): void {
  if (name !== undefined) checkLine('--name', name)
  if (folder !== undefined && name !== undefined)
    throw new Error('--folder names an existing folder, --name a new one: give only one of them')
  if (statSync(file, { throwIfNoEntry: false }) === undefined) throw new Error(`There is no file ${file}`)
}
