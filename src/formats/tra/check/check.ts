/**
 * Checks whether another program can import a TRA file (docs/spec/tra.md#checks): its form, the order and presence of
 * records, their citations of each other, and its entries. Memory grows with the accounts and sections of the file, not
 * with its entries.
 */

import { layouts, type TraRecord } from '../layouts.ts'
import { EntryCheck } from './entry-check.ts'
import { checkForm } from './line-form.ts'
import { TraParameters } from './parameters.ts'
import { isoDay, parseTra, type TraLine, TraProblems } from './parse.ts'

/** @param onRead called after each chunk with the total bytes and lines read so far */
export async function checkTra(
  bytes: AsyncIterable<Uint8Array>,
  onRead: (bytes: number, lines: number) => void = () => {},
) {
  const check = new TraCheck()
  let bytesRead = 0
  async function* counted() {
    for await (const chunk of bytes) {
      bytesRead += chunk.length
      yield chunk
    }
  }
  for await (const lines of parseTra(counted(), check.problems)) {
    for (const line of lines) check.add(line)
    onRead(bytesRead, check.lines)
  }
  return check.end()
}

export type TraSummary = ReturnType<TraCheck['end']>

const order = Object.keys(layouts) as TraRecord[]

export class TraCheck {
  readonly problems = new TraProblems()
  readonly parameters: TraParameters
  lines = 0
  readonly #entries: EntryCheck
  readonly #records = new Map<TraRecord, number>()
  /** The records that the file contains, including those with only a bare line. */
  readonly #seen = new Set<TraRecord>()
  #furthest = 0

  /**
   * @param sums given by an import: receives entries and shares that do not add up. Without it, these are problems like
   *   all others, and few parameter lines are kept
   */
  constructor(sums?: TraProblems) {
    this.parameters = new TraParameters(this.problems, sums !== undefined)
    this.#entries = new EntryCheck(this.problems, sums ?? this.problems, this.parameters)
  }

  add(line: TraLine): void {
    this.lines += 1
    checkForm(line, this.problems)
    const record = line.layout.record as TraRecord
    if (isOfEntries(record)) this.#entries.add(line)
    else {
      this.#checkOrder(line, record)
      if (!line.isBare) this.parameters.add(line)
    }
    this.#seen.add(record)
    if (!line.isBare) this.#records.set(record, (this.#records.get(record) ?? 0) + 1)
  }

  #checkOrder(line: TraLine, record: TraRecord): void {
    const position = order.indexOf(record)
    if (this.#seen.has('ENTRY') || position < this.#furthest) {
      const next = this.#seen.has('ENTRY') ? 'the first entry' : `the ${order[this.#furthest]} records`
      const message = `${record} records must come before ${next}`
      this.problems.add({ line: line.number, column: 4, field: '', value: record, message })
    }
    this.#furthest = Math.max(this.#furthest, position)
  }

  end() {
    this.parameters.checkCitations()
    this.#entries.close()
    const header = headerOf(this.parameters.lines('HEADER')[0])
    if (header.type === 'DOS')
      for (const record of order) {
        if (isOfEntries(record) || !layouts[record].mandatory || this.#seen.has(record)) continue
        const message = `a file of type DOS must have a ${record} record, at least a bare ***${record}`
        this.problems.add({ line: this.lines, column: 1, field: '', value: '', message })
      }
    const journals = this.parameters.lines('JAL')
    return {
      ...this.#entries.totals,
      header,
      folder: this.parameters.lines('PS1').at(-1)?.text('NOM') ?? '',
      /** The name of each journal, by its code. */
      journalNames: new Map(journals.map((line) => [line.code('CODE'), line.text('LIBELLE')])),
      /** The number of lines of each record, without bare ones, in the order of the file. */
      records: this.#records,
      lines: this.lines,
      /** The first problems, in the order of the file. `problemCount` is the number of all problems. */
      problems: this.problems.sorted(),
      problemCount: this.problems.count,
    }
  }
}

const isOfEntries = (record: TraRecord) => record === 'ENTRY' || record === 'ANALYTIC'

/** The facts in the header; all are empty if the file has no header. `generatedAt` is `YYYY-MM-DD HH:MM`. */
function headerOf(line: TraLine | undefined) {
  const moment = line?.text('DATE/HEURE') ?? ''
  return {
    type: line?.text('TYPE FICHIER') ?? '',
    format: line?.text('FORMAT') ?? '',
    version: line?.text('VERSION') ?? '',
    generatedAt: moment === '' ? '' : `${isoDay(moment)} ${moment.slice(8, 10)}:${moment.slice(10, 12)}`,
    user: line?.text('UTILISATEUR') ?? '',
    firm: line?.text('RAISON SOCIALE') ?? '',
  }
}
