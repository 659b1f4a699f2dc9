/** What the commands `import mad` and `import tra` print. */
import type { Config } from '../../config.ts'
import type { MadImported } from '../../ledger/mad/import-mad.ts'
import type { TraImported } from '../../ledger/tra/import-tra.ts'
import { nextSteps } from '../terminal/next-steps.ts'
import { counted, differences, folderLine, renumbered, sums } from './fec-report.ts'

export function madReport(imported: MadImported, seconds: number, config: Config): string[] {
  const { replacement, unknownMembers } = imported
  return report(imported, seconds, config, [
    ...(replacement === undefined ? [] : [differences(replacement)]),
    ...remarks([
      [replacement?.books ?? 0, 'Accounts, journals and other books that were new, changed or deleted'],
      [imported.unbalancedEntries, 'Entries that do not balance on their own, as in the file'],
      [imported.unknownSenders, 'Entries whose sender is not registered here, now without one'],
      [imported.fullNames, 'Addresses whose full name is not made of their parts, now without it'],
      [
        imported.hiddenEmployees,
        'Employees without their data in the file, who keep what the folder has of them',
      ],
      [imported.durations, 'Exercices whose duration is not that of their days, which counts'],
      ...byName(unknownMembers, 'Not of the format, left out'),
    ]),
    'What such a file does not hold: docs/spec/imports.md#mad-files',
  ])
}

export function traReport(imported: TraImported, seconds: number, config: Config): string[] {
  const { renumberedAccounts } = imported
  return report(imported, seconds, config, [
    ...remarks([
      [imported.blankValidDates, 'Entries without a day of validation, taken as validated on their own date'],
      [imported.wrongSums, 'Entries and shares that do not add up, as in the file (inspect tra names them)'],
    ]),
    ...(renumberedAccounts.length === 0
      ? []
      : [`Accounts that could not get the number of the file: ${renumbered(renumberedAccounts)}`]),
    ...remarks([
      [imported.banksLeftOut, 'Banks left out, as the file has no bank journal'],
      [
        imported.thirdPartyLines,
        'Lines of third parties below other roots than 401, 411 and 421, now on their collective account',
      ],
      ...byName(imported.unread, 'Lines with a value that is not read'),
    ]),
    'What such a file does not hold: docs/spec/imports.md#tra-files',
  ])
}

type Remark = [count: number, what: string]

const byName = (counts: ReadonlyMap<string, number>, what: string) =>
  [...counts].map(([name, count]): Remark => [count, `${what}: ${name}`])

/** A line for each that was counted at least once. */
const remarks = (all: Remark[]) =>
  all.filter(([count]) => count > 0).map(([count, what]) => `${what}: ${count.toLocaleString('en')}`)

function report(
  imported: MadImported | TraImported,
  seconds: number,
  config: Config,
  further: string[],
): string[] {
  const { folderId, created, currency, exercices } = imported
  const loaded = [
    `${counted(imported.movements, 'movement')} in ${counted(imported.entries, 'entry', 'entries')}`,
    counted(imported.accounts, 'account'),
    `${counted(imported.journals, 'journal')} in ${seconds.toFixed(1)} s`,
  ]
  const kept = `The folder keeps its own name, reference, SIRET, address, contact, RCS, capital and currency (${currency})`
  const last = exercices.at(-1)
  return [
    folderLine(imported),
    ...(created ? [] : [kept]),
    ...exercices.map(({ id, start, end }) => `Exercice ${id}, ${start} to ${end}`),
    loaded.join(', '),
    sums(imported),
    ...remarks([[imported.drafts, 'Entries that await validation']]),
    ...further,
    ...(last === undefined ? [] : nextSteps(config, folderId, last.id)),
  ]
}
