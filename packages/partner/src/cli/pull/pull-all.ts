/** `grandlivre pull --all`: a full export, made by the service and downloaded. */
import { countText, sizeText } from '../../../../terminal/src/amounts.ts'
import type { Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { queryValues } from '../../client/api/routes.ts'
import type { FullExportSelection } from '../../client/full-export.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import type { Call } from '../command.ts'
import { compressionNamed } from './compression.ts'
import { type Exercice, selectionOptions } from './selection.ts'
import { isOutput, writeFile } from './to-output.ts'

const valuesOf = queryValues['/mad/all']
/** As people write them. */
export const formats = valuesOf.format.map((name) => name.toLowerCase() as Lowercase<typeof name>)

/** Options that only --all takes. */
export const exportOptions = {
  format: { value: 'format', choices: formats, help: 'of a full export; fec with --exercice' },
  journals: { value: 'ids', several: true, help: 'with --all: only these journals' },
  encoding: { value: 'name', choices: valuesOf.encoding, help: 'of a FEC instead of ISO 8859-15' },
  columns: {
    value: 'columns',
    choices: valuesOf.columns,
    help: 'of a FEC: extended has all columns of the imported file',
  },
} as const

type ExportOptions = Given<unknown, typeof selectionOptions & typeof exportOptions>

/** @throws {UsageError} unless the options make a full export */
export function wantedExport(given: ExportOptions): Omit<FullExportSelection, 'compression' | 'idExercice'> {
  const { format, exercice, from: startDate, to: endDate, journals, encoding, columns } = given
  if (format === undefined) throw new UsageError(`--all needs --format: ${formats.join(', ')}`)
  const others = Object.keys(selectionOptions).filter((name) => !['exercice', 'from', 'to'].includes(name))
  const foreign = [...others, 'wire'].find((name) => name in given)
  if (foreign !== undefined)
    throw new UsageError(`--${foreign} selects movements, and --all pulls a full export`)
  if (format === 'fec' && exercice === undefined)
    throw new UsageError('A FEC is of one exercice: add --exercice <id or year>')
  const journalIds = journals?.flatMap((ids) => ids.split(','))
  return { format, journalIds, startDate, endDate, encoding, columns }
}

/** @param out where a file may be made, or - @returns its facts for --json, and lines about it */
export async function pullAll(
  { terminal, signal }: Call,
  ledger: Grandlivre,
  wanted: ReturnType<typeof wantedExport>,
  exercice: Exercice | undefined,
  out: string,
) {
  terminal.progress('Waiting for the service to make the export')
  const made = await ledger.fullExport(
    { ...wanted, idExercice: exercice?.producerId, compression: compressionNamed(out) },
    {
      signal,
      onProgress: ({ rows, rowsTotal, bytes }) =>
        terminal.progress(
          `The service exports: ${countText(rows)} movements, ${sizeText(bytes)}`,
          rowsTotal ? rows / rowsTotal : undefined,
        ),
    },
  )
  if (made.wasThere) terminal.note('The service had made this export within the last hour')
  const download = (file: string) =>
    made.download(file, {
      signal,
      onProgress: ({ bytes, size }) =>
        terminal.progress(`Downloading: ${sizeText(bytes)} of ${sizeText(size)}`, bytes / size),
      onRestart: (reason) => terminal.note(`${reason}: beginning again`),
    })
  const downloaded = isOutput(out) ? await writeFile({ terminal, signal }, download) : await download(out)
  const { rows, totals, notes: counts = {} } = made.status
  const notes = Object.entries(counts).map(([kind, count]) => `${kind} ${countText(count)}`)
  const content = downloaded.isContentVerified
    ? ' and its content have the SHA-256 that the service states'
    : ' have the SHA-256 that the service states; this Node cannot decompress the content'
  return {
    ...{ rows, contentBytes: downloaded.contentBytes, fileBytes: downloaded.bytes },
    facts: { ...made.status, ...downloaded },
    lines: [
      `Debit    ${totals.debit}, credit ${totals.credit}`,
      ...(notes.length > 0 ? [`Notes    ${notes.join(', ')}`] : []),
      `SHA-256  ${downloaded.sha256}`,
      `Whole:   the file's bytes${content}`,
    ],
  }
}
