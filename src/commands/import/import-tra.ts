import type { Command } from 'commander'
import { inUnits } from '../../formats/minor-units.ts'
import { importTra, type TraImported } from '../../ledger/tra/import-tra.ts'
import { nextSteps } from '../terminal/next-steps.ts'
import { createProgressBar, showFileProgress } from '../terminal/progress-bar.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { withDatabase } from '../with-database.ts'
import { addFolderOptions, checkFolderOptions, type FolderOptions } from './folder-options.ts'

export function addImportTra(group: Command, terminal: Terminal): void {
  addFolderOptions(
    group
      .command('tra')
      .description('load a TRA file into a folder, in one transaction, with new ids')
      .argument('<file>', 'plain, or compressed by gzip or zstd'),
  ).action((file, options) => importFile(terminal, file, options))
}

async function importFile(
  terminal: Terminal,
  file: string,
  { folder, ...options }: FolderOptions,
): Promise<void> {
  checkFolderOptions(file, { folder, ...options })
  await withDatabase(terminal, async ({ pool, config }) => {
    const started = performance.now()
    const bar = createProgressBar(terminal.err)
    await importTra(pool, {
      file,
      ...options,
      ...(folder !== undefined && { folderId: folder }),
      timeZone: config.timeZone,
      onProgress: showFileProgress(bar),
      onLoaded: (imported) => {
        bar.clear()
        const last = imported.exercices.at(-1)
        const lines = [
          ...report(imported, (performance.now() - started) / 1000),
          ...(last === undefined ? [] : nextSteps(config, imported.folderId, last.id)),
        ]
        terminal.out.write(`${lines.join('\n')}\n`)
      },
    })
  })
}

function report(imported: TraImported, seconds: number): string[] {
  const count = (number: number, what: string) => `${number.toLocaleString('en')} ${what}`
  const told = (number: number, what: string) =>
    number > 0 ? [`${what}: ${number.toLocaleString('en')}`] : []
  const loaded = [
    `${count(imported.movements, 'movements')} in ${count(imported.entries, 'entries')}`,
    count(imported.accounts, 'accounts'),
    `${count(imported.journals, 'journals')} in ${seconds.toFixed(1)} s`,
  ]
  return [
    `Folder ${imported.folderId} (${imported.name}${imported.created ? ', new' : ''}), firm ${imported.firmId}`,
    ...imported.exercices.map(({ id, start, end }) => `Exercice ${id}, ${start} to ${end}`),
    loaded.join(', '),
    `Debit ${inUnits(imported.debit)}, credit ${inUnits(imported.credit)}`,
    ...told(imported.drafts, 'Entries that await validation'),
    ...told(
      imported.blankValidDates,
      'Entries without a day of validation, taken as validated on their own date',
    ),
    ...told(imported.wrongSums, 'Entries and shares that do not add up, as in the file'),
    ...told(imported.banksLeftOut, 'Banks left out, as the file has no bank journal'),
    ...[...imported.unread].map(
      ([field, lines]) => `Not read, or not as it is: ${field}, on ${count(lines, 'lines')}`,
    ),
    ...(imported.created
      ? []
      : ['The folder keeps its own name, reference, SIRET, address, contact and capital']),
    'What such a file does not hold: docs/spec/imports.md#tra-files',
  ]
}
