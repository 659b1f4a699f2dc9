/**
 * Reads the parameter records of a TRA file: the folder, the exercices and the axes. It also counts the values, on all
 * lines of the file, that an import does not read.
 */

import type { FolderContent } from '../../formats/items/accounting-folder.ts'
import { type Address, noAddress } from '../../formats/items/accounts/address.ts'
import { closedAtNoon } from '../../formats/items/exercice.ts'
import { unitsMax } from '../../formats/minor-units.ts'
import type { TraCheck } from '../../formats/tra/check/check.ts'
import { isDay } from '../../formats/tra/check/line-form.ts'
import type { TraParameters } from '../../formats/tra/check/parameters.ts'
import type { TraLine, TraProblems } from '../../formats/tra/check/parse.ts'
import { fieldOf, layouts, noDay, type TraField } from '../../formats/tra/layouts.ts'
import type { MasterRows } from '../import/master-data.ts'

/** The fields of each record that an import does not read. It reads the fields that exports fill: they have `from`. */
const unreadFields = new Map(
  Object.values(layouts).map((layout) => [
    layout,
    layout.fields.filter(({ name, from }) => from === undefined && name !== 'FIXE' && name !== 'IDENTIFIANT'),
  ]),
)

/** The parameter records that an import reads. */
export class ReadParameters {
  /**
   * The number of lines with a value that the import ignored or changed, by record and field, such as `ENTRY.QTE1`.
   */
  readonly unread = new Map<string, number>()
  readonly lines: TraParameters['lines']
  readonly #problems: TraProblems

  /** @param check its problems also receive values that the ledger cannot hold */
  constructor({ parameters, problems }: TraCheck) {
    this.lines = (record) => parameters.lines(record)
    this.#problems = problems
  }

  /** Counts the fields of a line that have a value but are not read. */
  addUnread(line: TraLine): void {
    for (const field of unreadFields.get(line.layout)!)
      if (!isEmpty(line, field)) this.countUnread(line, field.name)
  }

  /** Counts a value that is not stored as it is in the file. */
  countUnread({ layout }: TraLine, field: string): void {
    const name = `${layout.record}.${field}`
    this.unread.set(name, (this.unread.get(name) ?? 0) + 1)
  }

  refuse(line: TraLine, field: string, message: string): void {
    line.refuse(this.#problems, field, message)
  }

  /**
   * An amount in hundredths. Undefined if the field is blank or not a number; the check of the form reports the latter.
   */
  amount(line: TraLine, field: string): bigint | undefined {
    const [, whole, fraction = ''] = /^(-?\d+)(?:,(\d+))?$/.exec(line.code(field)) ?? []
    if (whole === undefined) return undefined
    const amount = BigInt(whole + fraction.slice(0, 2).padEnd(2, '0'))
    if (/[1-9]/.test(fraction.slice(2)) || amount > unitsMax || amount < -unitsMax)
      this.refuse(line, field, 'at most two decimals, and at most 92233720368547758,07, are expected')
    return amount
  }
}

function isEmpty(line: TraLine, field: TraField): boolean {
  if (line.isBlank(field)) return true
  const columns = line.columns(field)
  return columns === noDay || (field.length === 1 && columns === '-')
}

/**
 * The name of the firm, and the values for a new folder. A file without entries, or in a currency other than the euro,
 * is refused.
 */
export function folderOf(parameters: ReadParameters): { firmName: string; folder: FolderContent } {
  const [header] = parameters.lines('HEADER')
  if (header !== undefined && !/^(?:DOS|JRL)$/.test(header.code('TYPE FICHIER')))
    parameters.refuse(header, 'TYPE FICHIER', 'DOS or JRL is expected: a file of entries')
  for (const line of parameters.lines('PS5'))
    if (line.code('DEVISE') !== 'EUR')
      parameters.refuse(line, 'DEVISE', 'EUR is expected: books in another currency cannot be imported')
  const firmName = header?.value('RAISON SOCIALE') ?? ''
  const line = parameters.lines('PS1').at(-1)
  const [first, ...further] = line === undefined ? [] : parameters.lines('ETB')
  for (const other of line === undefined ? parameters.lines('ETB') : further)
    parameters.countUnread(other, 'CODE')
  if (line === undefined) return { firmName, folder: { name: 'TRA' } }
  const siret = line.valueOrNull('SIRET')
  if (siret !== null && !isSiren(siret))
    parameters.refuse(line, 'SIRET', 'a SIREN of 9 or a SIRET of 14 digits is expected')
  const address = addressOf(line, 'ADRESSE1', 'ADRESSE2', 'CODEPOSTAL')
  const folder = {
    name: line.value('NOM') || 'TRA',
    siret,
    capital: parameters.amount(line, 'CAPITAL') ?? 0n,
    address,
    contactPhoneNumber: line.valueOrNull('TELEPHONE'),
    contactMail: line.valueOrNull('EMAIL'),
    rcsName: line.value('RCS'),
  }
  // The record of the establishment has the whole street; PS1 has only its name. A folder has one establishment.
  if (first !== undefined) {
    const { length } = fieldOf(layouts.ETB, 'ADRESSE1')
    const beforeName = streetParts(first.value('ADRESSE1'), address.streetName ?? '', length)
    if (beforeName === undefined) parameters.countUnread(first, 'ADRESSE1')
    Object.assign(address, beforeName)
  }
  return { firmName, folder }
}

/**
 * The parts of a street before its name: `12 bis rue` in `12 bis rue des Érables`. Joined with blanks, the parts and
 * the name give the whole street again.
 * @param columns the width of the field with the whole street, which may have been cut
 * @returns undefined if the whole street does not contain the name
 */
export function streetParts(whole: string, name: string, columns: number) {
  if (whole === name) return { number: null, locatingIndex: null, streetType: null }
  const words = whole.split(' ')
  const before = words
    .map((_, i) => words.slice(0, i + 1).join(' '))
    .find((first) => `${first} ${name}`.slice(0, columns).trimEnd() === whole)
  if (before === undefined) return undefined
  const [, number = null, locatingIndex = null, streetType] =
    /^(?:(\d[^ ]*)(?: (bis|ter|quater|[a-z])(?![^ ]))?(?: |$))?(.*)$/is.exec(before)!
  return { number, locatingIndex, streetType: streetType || null }
}

/** @param timeZone the time zone of the days on which exercices were closed */
export function exercicesOf(parameters: ReadParameters, timeZone: string): MasterRows['exercices'] {
  const exercices: MasterRows['exercices'] = []
  for (const line of parameters.lines('EXO')) {
    const state = line.code('ETATCPTA')
    const [startDate, endDate] = [line.day('DATEDEBUT') ?? '', line.day('DATEFIN') ?? '']
    // The descriptor calls this field a text, so the check of the form does not check that it is a day.
    const createdOn = line.code('DATECREATION')
    if (createdOn !== '' && !isDay(createdOn))
      parameters.refuse(line, 'DATECREATION', 'a day written DDMMYYYY is expected')
    const closedOn = state === 'CDE' ? (line.day('DATECREATION') ?? endDate) : null
    if (state !== 'OUV' && state !== 'CDE') parameters.countUnread(line, 'ETATCPTA')
    if (endDate <= startDate) parameters.refuse(line, 'DATEFIN', `a day after ${startDate} is expected`)
    const other = exercices.find((each) => each.startDate <= endDate && startDate <= each.endDate)
    if (other !== undefined) {
      const message = `the exercice overlaps that of ${other.startDate} to ${other.endDate}`
      parameters.refuse(line, 'DATEDEBUT', message)
    }
    const lettering = line.code('ETATANO') === 'H' ? 'MONO' : 'MULTI'
    const closedAt = closedOn && closedAtNoon(closedOn, timeZone)
    exercices.push({ id: startDate, startDate, endDate, lettering, closedAt })
  }
  return exercices
}

/** The id of a section. @param axis such as `A1` @param code blanks around it are ignored */
export const sectionKey = (axis: string, code: string) => `${axis} ${code.trim()}`

/**
 * Makes an axis for each rank up to the highest that any line names; the file has neither the code nor the name of an
 * axis. Sections are ordered by axis, then as in the file.
 */
export function axesOf(parameters: ReadParameters): Pick<MasterRows, 'axes' | 'sections'> {
  const sections = parameters.lines('SAT').map((line) => {
    const [axisId, code] = [line.code('AXE'), line.value('CODE')]
    const content = { code, name: line.value('LIBELLE'), accountRoots: [], closed: false }
    return { id: sectionKey(axisId, code), axisId, ...content }
  })
  const hasAxes = parameters.lines('PS5').some((line) => line.code('GEREANA') === 'X')
  const ranks = [1, 2, 3, 4, 5]
  const named = ranks.filter(
    (rank) =>
      (rank === 1 && hasAxes) ||
      sections.some(({ axisId }) => axisId === `A${rank}`) ||
      parameters.lines('CGN').some((line) => line.code(`VENTILABLE AXE ${rank}`) === 'X'),
  )
  const ids = new Set(sections.map(({ id }) => id))
  const axes = ranks.slice(0, named.at(-1) ?? 0).map((rank) => {
    const defaults = parameters.lines('PS2').map((line) => line.text(`SECT${rank}ATTEND`))
    const section = sectionKey(`A${rank}`, defaults.findLast((code) => code !== '') ?? '')
    const defaultSectionId = ids.has(section) ? section : null
    return { id: `A${rank}`, code: `A${rank}`, name: `Axe ${rank}`, defaultSectionId }
  })
  return { axes, sections: axes.flatMap((axis) => sections.filter(({ axisId }) => axisId === axis.id)) }
}

export function isSiren(text: string): boolean {
  return /^(?:\d{9}|\d{14})$/.test(text)
}

/** `street`, `complement` and `postalCode` are the names of fields, which differ between records. */
export function addressOf(line: TraLine, street: string, complement: string, postalCode: string): Address {
  return {
    ...noAddress,
    streetName: line.valueOrNull(street),
    complement: line.valueOrNull(complement),
    postalCode: line.valueOrNull(postalCode),
    city: line.valueOrNull('VILLE'),
    country: line.valueOrNull('PAYS'),
  }
}
