import { command } from '../../../packages/terminal/src/command.ts'
import { importMad, type MadImported } from '../../ledger/mad/import-mad.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { differences } from './fec-report.ts'
import { folderOptions, ifAny, importWholeLedger, wholeFile } from './import-whole-ledger.ts'

export const importMadCommand = command({
  name: 'import mad',
  summary: 'load a full export in JSON (MAD) back into a folder, in one transaction',
  arguments: wholeFile,
  options: {
    ...folderOptions,
    renumber: { help: 'give new ids to everything; otherwise the ids of the file are kept' },
  },
  run: (terminal: StaffTerminal, { file, ...options }) =>
    importWholeLedger<MadImported>(
      terminal,
      file,
      options,
      'mad',
      'movements',
      (pool, given) => importMad(pool, { ...given, renumber: options.renumber ?? false }),
      told,
    ),
})

function told(imported: MadImported): string[] {
  const {
    unbalancedEntries,
    unknownSenders,
    fullNames,
    hiddenEmployees,
    durations,
    unknownMembers,
    replacement,
  } = imported
  return [
    ...(replacement === undefined ? [] : [differences(replacement)]),
    ...ifAny(replacement?.books ?? 0, 'Accounts, journals and other books that were new, changed or deleted'),
    ...ifAny(unbalancedEntries, 'Entries that do not balance on their own, as in the file'),
    ...ifAny(unknownSenders, 'Entries whose sender is not registered here, now without one'),
    ...ifAny(fullNames, 'Addresses whose full name is not made of their parts, now without it'),
    ...ifAny(
      hiddenEmployees,
      'Employees without their data in the file, who keep what the folder has of them',
    ),
    ...ifAny(durations, 'Exercices whose duration is not that of their days, which counts'),
    ...[...unknownMembers].flatMap(([path, times]) => ifAny(times, `Not of the format, left out: ${path}`)),
    'What such a file does not hold: docs/spec/imports.md#mad-files',
  ]
}
