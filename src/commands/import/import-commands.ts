/** The commands `import fec`, `import mad` and `import tra`: their options, and one way to run them. */
import { statSync } from 'node:fs'
import type { Pool } from 'pg'
import { command } from '../../../packages/terminal/src/command.ts'
import type { Config } from '../../config.ts'
import { fecEncodings } from '../../formats/fec/encoding.ts'
import { importFec } from '../../ledger/fec/import-fec.ts'
import type { ImportedFolder, ImportOptions } from '../../ledger/import/import-transaction.ts'
import { importMad } from '../../ledger/mad/import-mad.ts'
import { importTra } from '../../ledger/tra/import-tra.ts'
import { showFileProgress } from '../terminal/file-progress.ts'
import { checkLine } from '../terminal/kinds.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { recordAct, withDatabase } from '../with-database.ts'
import { fecReport, madReport, traReport } from './reports.ts'

const file = { help: 'plain, or compressed by gzip or zstd' }

const ledgerOptions = {
  folder: { value: 'id', help: 'an existing folder; by default a new one, in a new firm and schema' },
  name: { value: 'name', help: 'of a new folder; by default the one in the file' },
  replace: { help: 'replace the whole ledger that the folder already holds' },
} as const

interface Import<Imported> {
  act: `import ${'fec' | 'mad' | 'tra'}`
  /** What the progress counts, such as lines. */
  unit: string
  load(pool: Pool, given: ImportOptions<Imported> & Pick<Config, 'timeZone'>): Promise<Imported>
  report(imported: Imported, seconds: number, config: Config): string[]
}

async function importFile<Imported extends ImportedFolder & { exerciceId?: string }>(
  terminal: StaffTerminal,
  file: string,
  options: { folder?: string | undefined; name?: string | undefined; replace?: true | undefined },
  { act, unit, load, report }: Import<Imported>,
): Promise<void> {
  const { folder, name, replace = false } = options
  // These mistakes are found before the database is started.
  if (name !== undefined) checkLine('--name', name)
  if (folder !== undefined && name !== undefined)
    throw new Error('--folder names an existing folder, --name a new one: give only one of them')
  if (replace && folder === undefined && act !== 'import fec')
    throw new Error('--replace replaces the ledger of a folder: name it by --folder')
  if (statSync(file, { throwIfNoEntry: false }) === undefined) throw new Error(`There is no file ${file}`)
  await withDatabase(terminal, async ({ pool, config }) => {
    const started = performance.now()
    await load(pool, {
      ...{ file, folderId: folder, name, replace, timeZone: config.timeZone },
      onProgress: showFileProgress(terminal, unit),
      record: (client, imported) => {
        const { schemaId, folderId, exerciceId, movements } = imported
        const counted = exerciceId === undefined ? { movements } : { exerciceId, lines: movements }
        return recordAct(client, { act, schemaId, folderId, details: { ...counted, replace } })
      },
      onLoaded: (imported) => {
        terminal.print(report(imported, (performance.now() - started) / 1000, config))
      },
    })
  })
}

export const importCommands = [
  command({
    name: 'import fec',
    summary: 'load a fichier des écritures comptables into one folder and exercice, in one transaction',
    arguments: {
      file: {
        help: 'plain, or compressed by gzip or zstd; named as the regulation says (123456789FEC20231231.txt), or use the options below',
      },
    },
    options: {
      folder: {
        value: 'id',
        help: 'an existing folder; by default the one with the SIREN or number in the file name, or a new one',
      },
      name: { value: 'name', help: 'of a new folder' },
      siren: { value: 'digits', help: 'of a new folder, 9 digits or a SIRET of 14' },
      start: {
        value: 'day',
        help: 'first day of the fiscal year, YYYY-MM-DD; by default twelve months before its end',
      },
      end: {
        value: 'day',
        help: 'last day of the fiscal year; by default from the file name, or from the dates of its lines',
      },
      encoding: {
        value: 'name',
        choices: fecEncodings,
        help: 'of the file; by default it is detected from its words',
      },
      replace: {
        help: 'replace the entries of the exercice by those of the file; only what differs is written',
      },
      drafts: { help: 'entries without a validation date await validation' },
    },
    run: (terminal: StaffTerminal, { file, ...options }) =>
      importFile(terminal, file, options, {
        act: 'import fec',
        unit: 'lines',
        load: (pool, given) => importFec(pool, { ...options, ...given }),
        report: fecReport,
      }),
  }),

  command({
    name: 'import mad',
    summary: 'load a full export in JSON (MAD) back into a folder, in one transaction',
    arguments: { file },
    options: {
      ...ledgerOptions,
      renumber: { help: 'give new ids to everything; by default the ids of the file are kept' },
    },
    run: (terminal: StaffTerminal, { file, renumber = false, ...options }) =>
      importFile(terminal, file, options, {
        act: 'import mad',
        unit: 'movements',
        load: (pool, given) => importMad(pool, { ...given, renumber }),
        report: madReport,
      }),
  }),

  command({
    name: 'import tra',
    summary: 'load a TRA file into a folder, in one transaction, with new ids',
    arguments: { file },
    options: ledgerOptions,
    run: (terminal: StaffTerminal, { file, ...options }) =>
      importFile(terminal, file, options, {
        act: 'import tra',
        unit: 'lines',
        load: importTra,
        report: traReport,
      }),
  }),
]
