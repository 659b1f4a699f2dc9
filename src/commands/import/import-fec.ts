import { statSync } from 'node:fs'
import { command } from '../../../packages/terminal/src/command.ts'
import { fecEncodings } from '../../formats/fec/encoding.ts'
import { importFec } from '../../ledger/fec/import-fec.ts'
import { checkLine } from '../terminal/check-line.ts'
import { showFileProgress } from '../terminal/file-progress.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { recordAct, withDatabase } from '../with-database.ts'
import { fecReport } from './fec-report.ts'

export const importFecCommand = command({
  name: 'import fec',
  summary: 'load a fichier des écritures comptables into one folder and exercice, in one transaction',
  arguments: {
    file: { help: 'named as the regulation says (123456789FEC20231231.txt), or use the options below' },
  },
  options: {
    folder: {
      value: 'id',
      help: 'an existing folder; otherwise the one with the same SIREN or number in the file name, or a new one',
    },
    name: { value: 'name', help: 'of a new folder' },
    siren: { value: 'digits', help: 'of a new folder, 9 digits or a SIRET of 14' },
    start: {
      value: 'day',
      help: 'first day of the fiscal year, YYYY-MM-DD; twelve months before its end otherwise',
    },
    end: {
      value: 'day',
      help: 'last day of the fiscal year; from the file name otherwise, or from the dates of its lines',
    },
    encoding: {
      value: 'name',
      choices: fecEncodings,
      help: 'of the file; detected from its words otherwise',
    },
    replace: {
      help: 'make the entries that the exercice holds those of the file, and write only what differs',
    },
    drafts: { help: 'entries without a validation date await validation' },
  },
  run: async (terminal: StaffTerminal, { file, folder, ...options }) => {
    // Checked before a database is started.
    if (options.name !== undefined) checkLine('--name', options.name)
    if (statSync(file, { throwIfNoEntry: false }) === undefined) throw new Error(`There is no file ${file}`)
    await withDatabase(terminal, async ({ pool, config }) => {
      const started = performance.now()
      await importFec(pool, {
        file,
        ...options,
        ...(folder !== undefined && { folderId: folder }),
        onProgress: showFileProgress(terminal),
        record: (client, { schemaId, folderId, movements, exerciceId }) =>
          recordAct(client, {
            act: 'import fec',
            schemaId,
            folderId,
            details: { exerciceId, lines: movements, replace: options.replace === true },
          }),
        onLoaded: (imported) => {
          terminal.print(fecReport(imported, (performance.now() - started) / 1000, config))
        },
      })
    })
  },
})
