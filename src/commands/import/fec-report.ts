/** What the command `import fec` prints: what was loaded, and everything that is not as the file has it. */
import type { Config } from '../../config.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { FecImported } from '../../ledger/fec/import-fec.ts'
import type { ImportedFolder } from '../../ledger/import/import-transaction.ts'
import type { RowCounts } from '../../ledger/replace/replace.sql.ts'
import type { Replacement } from '../../ledger/replace/replace.ts'
import { nextSteps } from '../terminal/next-steps.ts'

export function fecReport(imported: FecImported, seconds: number, config: Config): string[] {
  const { period, letteredLines } = imported
  const lettered = letteredLines.complete + letteredLines.partial
  const byDates = imported.isPeriodInferred ? ', by the dates of its lines' : ''
  const loaded = [
    `${counted(imported.movements, 'line')} in ${counted(imported.entries, 'entry', 'entries')}`,
    counted(imported.accounts, 'account'),
    counted(imported.journals, 'journal'),
    `read as ${imported.encoding} in ${seconds.toFixed(1)} s`,
  ]
  return [
    folderLine(imported),
    `Exercice ${imported.exerciceId}, ${period.start} to ${period.end}${byDates}`,
    loaded.join(', '),
    sums(imported),
    `${counted(lettered, 'lettered line')}: ${letteredLines.complete} complete, ${letteredLines.partial} partial`,
    ...replaced(imported),
    ...departures(imported),
    ...nextSteps(config, imported.folderId, imported.exerciceId),
  ]
}

export function folderLine({ folderId, name, created, firmId }: ImportedFolder): string {
  return `Folder ${folderId} (${name}${created ? ', new' : ''}), firm ${firmId}`
}

export function sums({ debit, credit }: ImportedFolder): string {
  return `Debit ${inUnits(debit)}, credit ${inUnits(credit)}`
}

export function differences({ inserted, updated, deleted }: Replacement): string {
  const rows = ({ entries, movements }: RowCounts) =>
    `${counted(entries, 'entry', 'entries')} and ${counted(movements, 'movement')}`
  return `Replaced what differs: ${rows(inserted)} new, ${rows(updated)} changed, ${rows(deleted)} deleted`
}

function replaced({ replacement }: FecImported): string[] {
  if (replacement === undefined) return []
  const sentence = differences(replacement)
  const { overwritten, removed } = replacement.otherSources
  if (overwritten + removed === 0) return [sentence]
  const [gone, others] = [removed, overwritten].map((count) => count.toLocaleString('en'))
  return [
    sentence,
    `Entries that did not come from a FEC: ${gone} deleted, ${others} overwritten by those of the file`,
  ]
}

type CountedSentence = [count: number, sentence: string]

/** One sentence for each kind of departure from the file, in the order in which they matter to its reader. */
function departures(imported: FecImported): string[] {
  const { period, unbalancedEntries, movedOpeningLines, entriesWithoutValidDate: undated } = imported
  const { renumberedAccounts: accounts, auxiliaryLines, filedColumns, attachments } = imported
  const { mixedCurrencyEntries: mixed, unknownPaymentLines: payments } = imported
  const [their, them] = undated === 1 ? ['its', 'it'] : ['their', 'them']
  const sentences: CountedSentence[] = [
    ...encodingSentence(imported),
    [unbalancedEntries, `Entries that do not balance on their own, as in the file: ${unbalancedEntries}`],
    [movedOpeningLines, `Opening lines from before ${period.start}, dated on that day: ${movedOpeningLines}`],
    [
      undated,
      `${counted(undated, 'entry', 'entries')} without a validation date: ${
        imported.drafts > 0
          ? 'awaiting validation'
          : `taken as validated on ${their} own date; --drafts keeps ${them} apart`
      }`,
    ],
    [
      auxiliaryLines.size,
      'Lines whose auxiliary stays with the movement, since only 401, 411 and 421 have accounts of third parties: ' +
        [...auxiliaryLines]
          .toSorted()
          .map(([root, lines]) => `${lines.toLocaleString('en')} on ${root}`)
          .join(', '),
    ],
    [
      accounts.length,
      `${counted(accounts.length, 'account')} could not get the number of the file: ${renumbered(accounts)}`,
    ],
    [filedColumns.length, `Columns beyond the 18 of the standard, kept by name: ${filedColumns.join(', ')}`],
    [
      mixed,
      `${counted(mixed, 'entry', 'entries')} with a line in a foreign currency that is not shown: kept as filed`,
    ],
    [
      payments,
      `${counted(payments, 'line')} with a ModeRglt that is none of the six modes of payment: kept as filed, not shown`,
    ],
    [attachments, `Attachments of movements: ${attachments.toLocaleString('en')}`],
    ...formSentences(imported),
    ...imported.earlierImports.map(
      ({ start, end }): CountedSentence => [
        1,
        `The ledger of ${start} to ${end} was imported by an earlier version, which kept less of its file. ` +
          'To bring it up, import that file again with --replace',
      ],
    ),
  ]
  return sentences.filter(([count]) => count > 0).map(([, sentence]) => sentence)
}

function encodingSentence({ encoding, encodingExample: example }: FecImported): CountedSentence[] {
  if (example === undefined) return []
  const { line, text, otherEncoding, otherText } = example
  const other = `which as ${otherEncoding} would be "${otherText}"`
  return [[1, `Read as ${encoding}: line ${line} has "${text}", ${other}; --encoding decides otherwise`]]
}

/** What other programs write in another form than the standard, and the import takes. */
function formSentences({ findings }: FecImported): CountedSentence[] {
  const { renamedColumns: renamed, quotedLines, groupedAmounts, trailingMinuses, dayColumns } = findings
  return [
    [
      renamed.length,
      `Columns under another name: ${renamed.map(({ name, column }) => `${name} is ${column}`).join(', ')}`,
    ],
    [quotedLines, `${counted(quotedLines, 'line')} with all fields in quotes, read without them`],
    [groupedAmounts, `${counted(groupedAmounts, 'amount')} with blanks between thousands, such as 1 500,00`],
    [trailingMinuses, `${counted(trailingMinuses, 'amount')} with the minus at the end, such as 1,00-`],
    ...[...dayColumns].flatMap(([column, { shortDays, droppedTimes }]): CountedSentence[] => [
      [
        shortDays,
        `${counted(shortDays, 'date')} in ${column} with a day or month of one digit, such as 5/1/2025`,
      ],
      [droppedTimes, `${counted(droppedTimes, 'time')} of day in ${column} dropped`],
    ]),
  ]
}

export function counted(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

const shownMax = 10

/** The first of them, each with the number it got. */
export function renumbered(accounts: FecImported['renumberedAccounts']): string {
  const more = accounts.length - shownMax
  const shown = accounts.slice(0, shownMax).map(({ filed, number }) => `${filed} is ${number}`)
  return shown.join(', ') + (more > 0 ? ` and ${more.toLocaleString('en')} more` : '')
}
