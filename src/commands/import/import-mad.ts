import type { Command } from 'commander'
import { inUnits } from '../../formats/minor-units.ts'
import { importMad, type MadImported } from '../../ledger/mad/import-mad.ts'
import { nextSteps } from '../terminal/next-steps.ts'
import { createProgressBar, showFileProgress } from '../terminal/progress-bar.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { withDatabase } from '../with-database.ts'
import { addFolderOptions, checkFolderOptions, type FolderOptions } from './folder-options.ts'

export function addImportMad(group: Command, terminal: Terminal): void {
  addFolderOptions(
    group
      .command('mad')
      .description('load a full export in JSON (MAD) back into a folder, in one transaction')
      .argument('<file>', 'plain, or compressed by gzip or zstd'),
  )
    .option('--renumber', 'give new ids to everything; otherwise the ids of the file are kept')
    .action((file, options) => importFile(terminal, file, options))
}

interface Options extends FolderOptions {
  renumber?: boolean
}

async function importFile(terminal: Terminal, file: string, { folder, ...options }: Options): Promise<void> {
  checkFolderOptions(file, { folder, ...options })
  await withDatabase(terminal, async ({ pool, config }) => {
    const started = performance.now()
    const bar = createProgressBar(terminal.err)
    const show = showFileProgress(bar, 'movements')
    await importMad(pool, {
      file,
      ...options,
      ...(folder !== undefined && { folderId: folder }),
      timeZone: config.timeZone,
      onProgress: ({ movements, ...progress }) => show({ ...progress, lines: movements }),
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

function report(imported: MadImported, seconds: number): string[] {
  const { drafts, unbalancedEntries, unknownSenders, unknownMembers } = imported
  const count = (number: number, what: string) => `${number.toLocaleString('en')} ${what}`
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
    ...(drafts > 0 ? [`Entries that await validation: ${drafts}`] : []),
    ...(unbalancedEntries > 0
      ? [`Entries that do not balance on their own, as in the file: ${unbalancedEntries}`]
      : []),
    ...(unknownSenders > 0
      ? [`Entries whose sender is not registered here, now without one: ${unknownSenders}`]
      : []),
    ...[...unknownMembers].map(
      ([path, times]) => `Not of the format, not loaded: ${path}, ${count(times, 'times')}`,
    ),
    ...(imported.created
      ? []
      : ['The folder keeps its own name, reference, SIRET, address, contact and capital']),
    'What such a file does not hold: docs/spec/imports.md#mad-files',
  ]
}
