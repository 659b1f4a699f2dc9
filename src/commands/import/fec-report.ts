/** What the command `import fec` prints: what was loaded, and everything that is not as the file has it. */
import type { Config } from '../../config.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { FecImported } from '../../ledger/fec/import-fec.ts'
import type { ImportedFolder } from '../../ledger/import/import-transaction.ts'
import type { RowCounts } from '../../ledger/replace/replace.sql.ts'
import type { Replacement } from '../../ledger/replace/replace.ts'
import { nextSteps } from '../terminal/next-steps.ts'

export function fecReport(imported: FecImported, seconds: number, config: Config): string[] {
  const { period, letteredLines, replacement } = imported
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
    ...(replacement === undefined ? [] : replaced(replacement)),
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

function replaced(replacement: NonNullable<FecImported['replacement']>): string[] {
  const sentence = differences(replacement)
  const { overwritten, removed } = replacement.otherSources
  if (overwritten + removed === 0) return [sentence]
  const [gone, others] = [removed, overwritten].map((count) => count.toLocaleString('en'))
  const entries = `Entries that did not come from a FEC: ${gone} deleted, ${others} overwritten by those of the file`
  return [sentence, entries]
}

/** One sentence for each kind of departure from the file, in the order in which they matter to its reader. */
function departures(imported: FecImported): string[] {
  const { period, encoding, encodingExample: example, filedColumns, findings } = imported
  const sentences: string[] = []
  const say = (count: number, sentence: string) => {
    if (count > 0) sentences.push(sentence)
  }
  if (example !== undefined) {
    const other = `which as ${example.otherEncoding} would be "${example.otherText}"`
    const place = `line ${example.line} has "${example.text}"`
    say(1, `Read as ${encoding}: ${place}, ${other}; --encoding decides otherwise`)
  }
  const { unbalancedEntries, movedOpeningLines: moved, entriesWithoutValidDate: undated } = imported
  say(unbalancedEntries, `Entries that do not balance on their own, as in the file: ${unbalancedEntries}`)
  say(moved, `Opening lines from before ${period.start}, dated on that day: ${moved}`)
  const [their, them] = undated === 1 ? ['its', 'it'] : ['their', 'them']
  const taken = `taken as validated on ${their} own date; --drafts keeps ${them} apart`
  const outcome = imported.drafts > 0 ? 'awaiting validation' : taken
  say(undated, `${counted(undated, 'entry', 'entries')} without a validation date: ${outcome}`)
  const auxiliaries = [...imported.auxiliaryLines].toSorted()
  const ofRoots = auxiliaries.map(([root, lines]) => `${lines.toLocaleString('en')} on ${root}`).join(', ')
  const only = 'since only 401, 411 and 421 have accounts of third parties'
  say(auxiliaries.length, `Lines whose auxiliary stays with the movement, ${only}: ${ofRoots}`)
  const { renumberedAccounts: accounts } = imported
  const many = counted(accounts.length, 'account')
  say(accounts.length, `${many} could not get the number of the file: ${renumbered(accounts)}`)
  const names = filedColumns.join(', ')
  say(filedColumns.length, `Columns beyond the 18 of the standard, kept by name: ${names}`)
  const mixed = counted(imported.mixedCurrencyEntries, 'entry', 'entries')
  const foreign = `${mixed} with a line in a foreign currency that is not shown: kept as filed`
  say(imported.mixedCurrencyEntries, foreign)
  const payments = counted(imported.unknownPaymentLines, 'line')
  const unknown = `${payments} with a ModeRglt that is none of the six modes of payment: kept as filed, not shown`
  say(imported.unknownPaymentLines, unknown)
  say(imported.attachments, `Attachments of movements: ${imported.attachments.toLocaleString('en')}`)
  sayForms(findings, say)
  for (const { start, end } of imported.earlierImports)
    sentences.push(
      `The ledger of ${start} to ${end} was imported by an earlier version, which kept less of its file. ` +
        'To bring it up, import that file again with --replace',
    )
  return sentences
}

/** What other programs write in another form than the standard, and the import takes. */
function sayForms(findings: FecImported['findings'], say: (count: number, sentence: string) => void): void {
  const { renamedColumns, quotedLines, groupedAmounts, trailingMinuses, dayColumns } = findings
  const renamed = renamedColumns.map(({ name, column }) => `${name} is ${column}`).join(', ')
  say(renamedColumns.length, `Columns under another name: ${renamed}`)
  say(quotedLines, `${counted(quotedLines, 'line')} with all fields in quotes, read without them`)
  const grouped = counted(groupedAmounts, 'amount')
  say(groupedAmounts, `${grouped} with blanks between thousands, such as 1 500,00`)
  say(trailingMinuses, `${counted(trailingMinuses, 'amount')} with the minus at the end, such as 1,00-`)
  for (const [column, { shortDays, droppedTimes }] of dayColumns) {
    const short = `${counted(shortDays, 'date')} in ${column} with a day or month of one digit, such as 5/1/2025`
    say(shortDays, short)
    say(droppedTimes, `${counted(droppedTimes, 'time')} of day in ${column} dropped`)
  }
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
