/** What imports of files with a whole ledger have in common: options, progress, report. */
import { statSync } from 'node:fs'
import type { Pool } from 'pg'
import type { Given } from '../../../packages/terminal/src/command.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { LoadedLedger, WholeImportOptions } from '../../ledger/import/whole-folder.ts'
import { checkLine } from '../terminal/check-line.ts'
import { showFileProgress } from '../terminal/file-progress.ts'
import { nextSteps } from '../terminal/next-steps.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { recordAct, withDatabase } from '../with-database.ts'
import { counted } from './fec-report.ts'

export const wholeFile = { file: { help: 'plain, or compressed by gzip or zstd' } }

export const folderOptions = {
  folder: { value: 'id', help: 'an existing folder; otherwise a new one, in a firm and schema of its own' },
  name: { value: 'name', help: 'of a new folder; that of the file otherwise' },
  replace: { help: 'replace the whole ledger that the folder already holds' },
} as const

/**
 * @param format of the file, as the command names it
 * @param unit what progress counts: lines, movements
 * @param told lines of the report about what this kind of file lacks or has beyond the ledger
 */
export async function importWholeLedger<Imported extends LoadedLedger>(
  terminal: StaffTerminal,
  file: string,
  { folder, name, replace }: Given<unknown, typeof folderOptions>,
  format: 'mad' | 'tra',
  unit: string,
  load: (pool: Pool, options: WholeImportOptions<Imported>) => Promise<unknown>,
  told: (imported: Imported) => string[],
): Promise<void> {
  // Checked before a database is started.
  if (name !== undefined) checkLine('--name', name)
  if (folder !== undefined && name !== undefined)
    throw new Error('--folder names an existing folder, --name a new one: give only one of them')
  if (replace && folder === undefined)
    throw new Error('--replace replaces the ledger of a folder: name it by --folder')
  if (statSync(file, { throwIfNoEntry: false }) === undefined) throw new Error(`There is no file ${file}`)
  await withDatabase(terminal, async ({ pool, config }) => {
    const started = performance.now()
    await load(pool, {
      file,
      ...(folder !== undefined && { folderId: folder }),
      ...(name !== undefined && { name }),
      ...(replace !== undefined && { replace }),
      timeZone: config.timeZone,
      onProgress: showFileProgress(terminal, unit),
      record: (client, { schemaId, folderId, movements }) =>
        recordAct(client, {
          act: `import ${format}`,
          schemaId,
          folderId,
          details: { movements, replace: replace === true },
        }),
      onLoaded: (imported) => {
        const last = imported.exercices.at(-1)
        const lines = [
          ...report(imported, (performance.now() - started) / 1000),
          ...told(imported),
          ...(last === undefined ? [] : nextSteps(config, imported.folderId, last.id)),
        ]
        terminal.print(lines)
      },
    })
  })
}

/** A line of the report, if there is anything to tell. */
export function ifAny(number: number, what: string): string[] {
  return number > 0 ? [`${what}: ${number.toLocaleString('en')}`] : []
}

function report(imported: LoadedLedger, seconds: number): string[] {
  const loaded = [
    `${counted(imported.movements, 'movement')} in ${counted(imported.entries, 'entry', 'entries')}`,
    counted(imported.accounts, 'account'),
    `${counted(imported.journals, 'journal')} in ${seconds.toFixed(1)} s`,
  ]
  const { folderId, name, firmId, created, currency } = imported
  return [
    `Folder ${folderId} (${name}${created ? ', new' : ''}), firm ${firmId}`,
    ...(created
      ? []
      : [
          `The folder keeps its own name, reference, SIRET, address, contact, RCS, capital and currency (${currency})`,
        ]),
    ...imported.exercices.map(({ id, start, end }) => `Exercice ${id}, ${start} to ${end}`),
    loaded.join(', '),
    `Debit ${inUnits(imported.debit)}, credit ${inUnits(imported.credit)}`,
    ...ifAny(imported.drafts, 'Entries that await validation'),
  ]
}
