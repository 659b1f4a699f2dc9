/** Counts what a TRA file has and an import leaves out. */
import type { TraLine } from '../../formats/tra/check/parse.ts'
import { layouts, noDay, type TraField, type TraLayout } from '../../formats/tra/layouts.ts'

/** Exports fill the fields that have a source; an import reads these and no others. */
const unreadFields = new Map<TraLayout, TraField[]>(
  Object.values(layouts).map((layout) => [
    layout,
    layout.fields.filter(({ name, from }) => from === undefined && name !== 'FIXE' && name !== 'IDENTIFIANT'),
  ]),
)

export class UnreadFields {
  /** Lines that have a value there, by record and field: `ENTRY.QTE1`. */
  readonly counts = new Map<string, number>()

  /** Counts the fields of a line that are not read. */
  addLine(line: TraLine): void {
    for (const field of unreadFields.get(line.layout)!) if (!isEmpty(line, field)) this.add(line, field.name)
  }

  /** Counts a value that is not taken as it is. */
  add({ layout }: TraLine, field: string): void {
    const name = `${layout.record}.${field}`
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }
}

function isEmpty(line: TraLine, field: TraField): boolean {
  if (line.isBlank(field)) return true
  const columns = line.columns(field)
  return columns === noDay || (field.length === 1 && columns === '-')
}
