/**
 * Checks whether another program can import a TRA file (docs/spec/tra.md#checks): its form, the order and presence of
 * records, their citations of each other, and its entries. Memory grows with the accounts and sections of the file, not
 * with its entries.
 */

import type { Period } from '../../rows.ts'
import { layouts, type TraRecord } from '../layouts.ts'
import { Definitions, EntryCheck } from './entry-check.ts'
import { checkForm } from './line-form.ts'
import { isoDay, parseTra, type TraLine, TraProblems } from './parse.ts'

/** `generatedAt` is written `YYYY-MM-DD HH:MM`. */
const noHeader = { type: '', format: '', version: '', generatedAt: '', user: '', firm: '' }

/** @param onRead called after each chunk with the bytes and lines read up to then */
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
  lines = 0
  readonly #definitions = new Definitions(this.problems)
  readonly #exercices: Period[] = []
  readonly #entries: EntryCheck
  readonly #records = new Map<TraRecord, number>()
  /** Records that the file contains, including bare ones. */
  readonly #seen = new Set<TraRecord>()
  readonly #journalNames = new Map<string, string>()
  #header = noHeader
  #folder = ''
  #furthest = 0

  /** @param sums receives entries and shares that do not add up; by default they are problems like the others */
  constructor(sums?: TraProblems) {
    const { problems } = this
    const [definitions, exercices] = [this.#definitions, this.#exercices]
    this.#entries = new EntryCheck({ problems, sums: sums ?? problems, definitions, exercices })
  }

  add(line: TraLine): void {
    this.lines += 1
    checkForm(line, this.problems)
    const record = line.layout.record as TraRecord
    if (record === 'ENTRY' || record === 'ANALYTIC') this.#entries.add(line)
    else this.#addParameter(line, record)
    this.#seen.add(record)
    if (!line.isBare) this.#records.set(record, (this.#records.get(record) ?? 0) + 1)
  }

  #addParameter(line: TraLine, record: TraRecord): void {
    const position = order.indexOf(record)
    if (this.#seen.has('ENTRY') || position < this.#furthest) {
      const next = this.#seen.has('ENTRY') ? 'the first entry' : `the ${order[this.#furthest]} records`
      const message = `${record} records must come before ${next}`
      this.problems.add({ line: line.number, column: 4, field: '', value: record, message })
    }
    this.#furthest = Math.max(this.#furthest, position)
    if (line.isBare) return
    if (record === 'HEADER') this.#header = headerOf(line)
    else if (record === 'PS1') this.#folder = line.text('NOM')
    else if (record === 'EXO')
      this.#exercices.push({ start: isoDay(line.text('DATEDEBUT')), end: isoDay(line.text('DATEFIN')) })
    else if (record === 'JAL') this.#journalNames.set(line.code('CODE'), line.text('LIBELLE'))
    this.#definitions.add(line)
  }

  end() {
    this.#definitions.close()
    this.#entries.close()
    if (this.#header.type === 'DOS')
      for (const record of order) {
        const isEntry = record === 'ENTRY' || record === 'ANALYTIC'
        if (isEntry || !layouts[record].mandatory || this.#seen.has(record)) continue
        const message = `a file of type DOS must have a ${record} record, at least a bare ***${record}`
        this.problems.add({ line: this.lines, column: 1, field: '', value: '', message })
      }
    return {
      ...this.#entries.totals,
      header: this.#header,
      folder: this.#folder,
      /** Names of journals by their code. */
      journalNames: this.#journalNames,
      /** Lines of each record without bare ones, in the order of the file. */
      records: this.#records,
      lines: this.lines,
      /** The first problems, in the order of the file; `problemCount` counts all. */
      problems: this.problems.sorted(),
      problemCount: this.problems.count,
    }
  }
}

function headerOf(line: TraLine): typeof noHeader {
  const moment = line.text('DATE/HEURE')
  return {
    type: line.text('TYPE FICHIER'),
    format: line.text('FORMAT'),
    version: line.text('VERSION'),
    generatedAt: moment === '' ? '' : `${isoDay(moment)} ${moment.slice(8, 10)}:${moment.slice(10, 12)}`,
    user: line.text('UTILISATEUR'),
    firm: line.text('RAISON SOCIALE'),
  }
}
