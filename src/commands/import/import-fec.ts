import { statSync } from 'node:fs'
import type { Command } from 'commander'
import type { Config } from '../../config.ts'
import { inUnits } from '../../formats/minor-units.ts'
import { type FecImported, importFec } from '../../ledger/fec/import-fec.ts'
import { checkLine } from '../terminal/check-line.ts'
import { nextSteps } from '../terminal/next-steps.ts'
import { createProgressBar, showFileProgress } from '../terminal/progress-bar.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { withDatabase } from '../with-database.ts'

export function addImportFec(group: Command, terminal: Terminal): void {
  group
    .command('fec')
    .description('load a fichier des écritures comptables into one folder and exercice, in one transaction')
    .argument('<file>', 'named as the regulation says (123456789FEC20231231.txt), or use the options below')
    .option(
      '--folder <id>',
      'an existing folder; otherwise the one with the same SIREN or number in the file name, or a new one',
    )
    .option('--name <name>', 'of a new folder')
    .option('--siren <digits>', 'of a new folder, 9 digits or a SIRET of 14')
    .option(
      '--start <day>',
      'first day of the fiscal year, YYYY-MM-DD; twelve months before its end otherwise',
    )
    .option(
      '--end <day>',
      'last day of the fiscal year; from the file name otherwise, or from the dates of its lines',
    )
    .option('--replace', 'replace the entries that the exercice already holds')
    .action((file, options) => importFile(terminal, file, options))
}

interface Options {
  folder?: string
  name?: string
  siren?: string
  start?: string
  end?: string
  replace?: boolean
}

async function importFile(terminal: Terminal, file: string, { folder, ...options }: Options): Promise<void> {
  // Checked before a database is started.
  if (options.name !== undefined) checkLine('--name', options.name)
  if (statSync(file, { throwIfNoEntry: false }) === undefined) throw new Error(`There is no file ${file}`)
  await withDatabase(terminal, async ({ pool, config }) => {
    const started = performance.now()
    const bar = createProgressBar(terminal.err)
    await importFec(pool, {
      file,
      ...options,
      ...(folder !== undefined && { folderId: folder }),
      onProgress: showFileProgress(bar),
      onLoaded: (imported) => {
        bar.clear()
        terminal.out.write(`${report(imported, (performance.now() - started) / 1000, config).join('\n')}\n`)
      },
    })
  })
}

function report(imported: FecImported, seconds: number, config: Config): string[] {
  const { period, letteredLines, unbalancedEntries, movedOpeningLines } = imported
  const count = (number: number, what: string) => `${number.toLocaleString('en')} ${what}`
  const lettered = letteredLines.complete + letteredLines.partial
  const folder = `${imported.folderName}${imported.folderCreated ? ', new' : ''}`
  const byDates = imported.isPeriodInferred ? ', by the dates of its lines' : ''
  const loaded = [
    `${count(imported.lines, 'lines')} in ${count(imported.entries, 'entries')}`,
    count(imported.accounts, 'accounts'),
    count(imported.journals, 'journals'),
    `read as ${imported.encoding} in ${seconds.toFixed(1)} s`,
  ]
  return [
    `Folder ${imported.folderId} (${folder}), firm ${imported.firmId}`,
    `Exercice ${imported.exerciceId}, ${period.start} to ${period.end}${byDates}`,
    loaded.join(', '),
    `Debit ${inUnits(imported.debit)}, credit ${inUnits(imported.credit)}`,
    `${count(lettered, 'lettered lines')}: ${letteredLines.complete} complete, ${letteredLines.partial} partial`,
    ...(unbalancedEntries > 0
      ? [`Entries that do not balance on their own, as in the file: ${unbalancedEntries}`]
      : []),
    ...(movedOpeningLines > 0
      ? [`Opening lines from before ${period.start}, dated on that day: ${movedOpeningLines}`]
      : []),
    ...nextSteps(config, imported.folderId, imported.exerciceId),
  ]
}
