/** Reports of the import commands: what was loaded, and every way in which the ledger differs from the file. */
import type { Config } from '../../config.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { FecImported } from '../../ledger/fec/import-fec.ts'
import type { MadImported } from '../../ledger/mad/import-mad.ts'
import type { RowCounts } from '../../ledger/replace/replace.sql.ts'
import type { Replacement } from '../../ledger/replace/replace.ts'
import type { TraImported } from '../../ledger/tra/import-tra.ts'
import { nextSteps } from '../terminal/next-steps.ts'

type Imported = FecImported | MadImported | TraImported

export function fecReport(imported: FecImported, seconds: number, config: Config): string[] {
  const { folderId, exerciceId, period, letteredLines, replacement } = imported
  const lettered = letteredLines.complete + letteredLines.partial
  const byDates = imported.isPeriodInferred ? ', by the dates of its lines' : ''
  return [
    ...loadedLines(
      imported,
      [`Exercice ${exerciceId}, ${period.start} to ${period.end}${byDates}`],
      'line',
      `, read as ${imported.encoding} in ${seconds.toFixed(1)} s`,
    ),
    `${counted(lettered, 'lettered line')}: ${letteredLines.complete} complete, ${letteredLines.partial} partial`,
    ...replaced(replacement),
    ...departures(imported),
    ...formsOtherwise(imported),
    ...imported.earlierImports.map(
      ({ start, end }) =>
        `The ledger of ${start} to ${end} was imported by an earlier version, which kept less of its file. ` +
        'To bring it up, import that file again with --replace',
    ),
    ...nextSteps(config, folderId, exerciceId),
  ]
}

export function madReport(imported: MadImported, seconds: number, config: Config): string[] {
  const { replacement } = imported
  return ledgerReport(imported, seconds, config, [
    ...replaced(replacement),
    ...totals({
      'Accounts, journals and other books that were new, changed or deleted': replacement?.books,
      'Entries that do not balance on their own, as in the file': imported.unbalancedEntries,
      'Entries whose sender is not registered here, imported without a sender': imported.unknownSenders,
      'Addresses whose full name differs from its parts, imported without it': imported.fullNames,
      'Employees without their data in the file, who keep what the folder has of them':
        imported.hiddenEmployees,
      'Exercices whose duration differs from their days; the days were kept': imported.durations,
      ...byName(imported.unknownMembers, 'Not of the format, left out'),
    }),
    'What such a file does not hold: docs/spec/imports.md#mad-files',
  ])
}

export function traReport(imported: TraImported, seconds: number, config: Config): string[] {
  const accounts = imported.renumberedAccounts
  return ledgerReport(imported, seconds, config, [
    ...totals({
      'Entries without a day of validation, taken as validated on their own date': imported.blankValidDates,
      'Entries and shares that do not add up, as in the file (inspect tra names them)': imported.wrongSums,
    }),
    ...shown({
      [`Accounts that could not get the number of the file: ${renumbered(accounts)}`]: accounts.length,
    }),
    ...totals({
      'Banks left out, as the file has no bank journal': imported.banksLeftOut,
      'Lines of third parties below other roots than 401, 411 and 421, now on their collective account':
        imported.thirdPartyLines,
      ...byName(imported.unread, 'Lines with a value that is not read'),
    }),
    'What such a file does not hold: docs/spec/imports.md#tra-files',
  ])
}

function ledgerReport(
  imported: MadImported | TraImported,
  seconds: number,
  config: Config,
  further: string[],
): string[] {
  const { folderId, created, currency, exercices } = imported
  const kept = `The folder keeps its own name, reference, SIRET, address, contact, RCS, capital and currency (${currency})`
  const last = exercices.at(-1)
  return [
    ...loadedLines(
      imported,
      [
        ...(created ? [] : [kept]),
        ...exercices.map(({ id, start, end }) => `Exercice ${id}, ${start} to ${end}`),
      ],
      'movement',
      ` in ${seconds.toFixed(1)} s`,
    ),
    ...totals({ 'Entries that await validation': imported.drafts }),
    ...further,
    ...(last === undefined ? [] : nextSteps(config, folderId, last.id)),
  ]
}

/** The folder, its exercices, counts and sums. @param how says how the file was read; it follows the counts */
function loadedLines(
  { folderId, name, created, firmId, debit, credit, ...loaded }: Imported,
  exercices: string[],
  unit: string,
  how: string,
): string[] {
  const entries = `${counted(loaded.movements, unit)} in ${counted(loaded.entries, 'entry', 'entries')}`
  return [
    `Folder ${folderId} (${name}${created ? ', new' : ''}), firm ${firmId}`,
    ...exercices,
    `${entries}, ${counted(loaded.accounts, 'account')}, ${counted(loaded.journals, 'journal')}${how}`,
    `Debit ${inUnits(debit)}, credit ${inUnits(credit)}`,
  ]
}

function replaced(replacement: (Replacement & Partial<FecImported['replacement']>) | undefined): string[] {
  if (!replacement) return []
  const { inserted, updated, deleted, otherSources = { overwritten: 0, removed: 0 } } = replacement
  const rows = ({ entries, movements }: RowCounts) =>
    `${counted(entries, 'entry', 'entries')} and ${counted(movements, 'movement')}`
  const { overwritten, removed } = otherSources
  const [gone, others] = [removed, overwritten].map((count) => count.toLocaleString('en'))
  return [
    `Replaced what differs: ${rows(inserted)} new, ${rows(updated)} changed, ${rows(deleted)} deleted`,
    ...shown({
      [`Entries that did not come from a FEC: ${gone} deleted, ${others} overwritten by those of the file`]:
        overwritten + removed,
    }),
  ]
}

/** How the ledger differs from the file, the most important differences first. */
function departures(imported: FecImported): string[] {
  const { period, encodingExample: example, entriesWithoutValidDate: undated, filedColumns } = imported
  const { unbalancedEntries: unbalanced, movedOpeningLines: moved } = imported
  const { renumberedAccounts: accounts, mixedCurrencyEntries: mixed, unknownPaymentLines } = imported
  const [their, them] = undated === 1 ? ['its', 'it'] : ['their', 'them']
  const taken = `taken as validated on ${their} own date; --drafts keeps ${them} apart`
  const outcome = imported.drafts > 0 ? 'awaiting validation' : taken
  const auxiliaries = [...imported.auxiliaryLines].toSorted()
  const ofRoots = auxiliaries.map(([root, lines]) => `${lines.toLocaleString('en')} on ${root}`).join(', ')
  const only = 'since only 401, 411 and 421 have accounts of third parties'
  const many = counted(accounts.length, 'account')
  const payments = counted(unknownPaymentLines, 'line')
  const entries = counted(mixed, 'entry', 'entries')
  return [
    ...(example
      ? [
          `Read as ${imported.encoding}: line ${example.line} has "${example.text}", which as ` +
            `${example.otherEncoding} would be "${example.otherText}"; --encoding decides otherwise`,
        ]
      : []),
    ...shown({
      [`Entries that do not balance on their own, as in the file: ${unbalanced}`]: unbalanced,
      [`Opening lines from before ${period.start}, dated on that day: ${moved}`]: moved,
      [`${counted(undated, 'entry', 'entries')} without a validation date: ${outcome}`]: undated,
      [`Lines whose auxiliary stays with the movement, ${only}: ${ofRoots}`]: auxiliaries.length,
      [`${many} could not get the number of the file: ${renumbered(accounts)}`]: accounts.length,
      [`Columns beyond the 18 of the standard, kept by name: ${filedColumns.join(', ')}`]:
        filedColumns.length,
      [`${entries} with a line in a foreign currency that is not shown: kept as filed`]: mixed,
      [`${payments} with a ModeRglt that is none of the six modes of payment: kept as filed, not shown`]:
        unknownPaymentLines,
    }),
    ...totals({ 'Attachments of movements': imported.attachments }),
  ]
}

/** Forms that differ from the standard, as other programs write them, and that the import accepts. */
function formsOtherwise({ findings }: FecImported): string[] {
  const { renamedColumns, quotedLines, groupedAmounts, trailingMinuses, dayColumns } = findings
  const renamed = renamedColumns.map(({ name, column }) => `${name} is ${column}`).join(', ')
  const days = [...dayColumns].map(([column, { shortDays, droppedTimes }]) => ({
    [`${counted(shortDays, 'date')} in ${column} with a day or month of one digit, such as 5/1/2025`]:
      shortDays,
    [`${counted(droppedTimes, 'time')} of day in ${column} dropped`]: droppedTimes,
  }))
  return shown({
    [`Columns under another name: ${renamed}`]: renamedColumns.length,
    [`${counted(quotedLines, 'line')} with all fields in quotes, read without them`]: quotedLines,
    [`${counted(groupedAmounts, 'amount')} with blanks between thousands, such as 1 500,00`]: groupedAmounts,
    [`${counted(trailingMinuses, 'amount')} with the minus at the end, such as 1,00-`]: trailingMinuses,
    ...Object.assign({}, ...days),
  })
}

type Counts = Readonly<Record<string, number | undefined>>

/** The sentences whose count is not 0. */
const shown = (sentences: Counts) => Object.keys(sentences).filter((sentence) => sentences[sentence])

/** The sentences whose count is not 0, each with its count at the end. */
const totals = (sentences: Counts) =>
  shown(sentences).map((sentence) => `${sentence}: ${sentences[sentence]!.toLocaleString('en')}`)

const byName = (counts: ReadonlyMap<string, number>, what: string) =>
  Object.fromEntries([...counts].map(([name, count]) => [`${what}: ${name}`, count]))

function counted(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

const renumberedMax = 10

/** The first of the renumbered accounts, each with its new number. */
function renumbered(accounts: FecImported['renumberedAccounts']): string {
  const more = accounts.length - renumberedMax
  const first = accounts.slice(0, renumberedMax).map(({ filed, number }) => `${filed} is ${number}`)
  return first.join(', ') + (more > 0 ? ` and ${more.toLocaleString('en')} more` : '')
}
