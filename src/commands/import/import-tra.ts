import { command } from '../../../packages/terminal/src/command.ts'
import { importTra, type TraImported } from '../../ledger/tra/import-tra.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { someOf } from './fec-report.ts'
import { folderOptions, ifAny, importWholeLedger, wholeFile } from './import-whole-ledger.ts'

export const importTraCommand = command({
  name: 'import tra',
  summary: 'load a TRA file into a folder, in one transaction, with new ids',
  arguments: wholeFile,
  options: folderOptions,
  run: (terminal: StaffTerminal, { file, ...options }) =>
    importWholeLedger<TraImported>(terminal, file, options, 'tra', 'lines', importTra, told),
})

function told(imported: TraImported): string[] {
  const { blankValidDates, wrongSums, renumberedAccounts, banksLeftOut, thirdPartyLines, unread } = imported
  return [
    ...ifAny(blankValidDates, 'Entries without a day of validation, taken as validated on their own date'),
    ...ifAny(wrongSums, 'Entries and shares that do not add up, as in the file (inspect tra names them)'),
    ...(renumberedAccounts.length === 0
      ? []
      : [
          `Accounts that could not get the number of the file: ${someOf(
            renumberedAccounts.map(({ filed, number }) => `${filed} is ${number}`),
          )}`,
        ]),
    ...ifAny(banksLeftOut, 'Banks left out, as the file has no bank journal'),
    ...ifAny(
      thirdPartyLines,
      'Lines of third parties below other roots than 401, 411 and 421, now on their collective account',
    ),
    ...[...unread].flatMap(([field, lines]) => ifAny(lines, `Lines with a value that is not read: ${field}`)),
    'What such a file does not hold: docs/spec/imports.md#tra-files',
  ]
}
