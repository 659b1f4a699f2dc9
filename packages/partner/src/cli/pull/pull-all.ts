/** `grandlivre pull --all`: a full export, made by the service and downloaded. */
import { readFile } from 'node:fs/promises'
import { countText, rateText, secondsText, sizeText } from '../../../../terminal/src/amounts.ts'
import type { Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { queryValues } from '../../client/api/routes.ts'
import type { Downloaded } from '../../client/files/download.ts'
import { partOf, stateFileOf } from '../../client/files/part-file.ts'
import type { DoneExport, FullExportSelection } from '../../client/full-export.ts'
import type { Call } from '../command.ts'
import { localFailure } from '../exit-codes.ts'
import { folderOf } from '../folder.ts'
import { compressionNamed } from './compression.ts'
import { explained } from './failures.ts'
import { isStateOfPull } from './part-file.ts'
import { findExercice, selectionOptions } from './selection.ts'
import { isOutput, shownPath, writeFile } from './to-output.ts'

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

type Wanted = Omit<FullExportSelection, 'compression'> & { year: string | undefined }

/** @throws {UsageError} unless the options make a full export */
export function wantedExport(given: Given<unknown, typeof selectionOptions & typeof exportOptions>): Wanted {
  const { format, exercice, from: startDate, to: endDate, journals, encoding, columns } = given
  if (format === undefined) throw new UsageError(`--all needs --format: ${formats.join(', ')}`)
  const others = Object.keys(selectionOptions).filter((name) => !['exercice', 'from', 'to'].includes(name))
  const foreign = [...others, 'wire'].find((name) => name in given)
  if (foreign !== undefined)
    throw new UsageError(`--${foreign} selects movements, and --all pulls a full export`)
  if (format === 'fec' && exercice === undefined)
    throw new UsageError('A FEC is of one exercice: add --exercice <id or year>')
  return {
    format,
    year: exercice,
    journalIds: journals?.flatMap((ids) => ids.split(',')),
    ...{ startDate, endDate, encoding, columns },
  }
}

/** @param out where a file may be made */
export async function pullAll(call: Call, { year, ...wanted }: Wanted, out: string, force: boolean) {
  const { terminal, signal, json } = call
  const started = performance.now()
  if (!isOutput(out)) await refuseOther(out, force)
  const society = await folderOf(call.ledger().requests, call.access().society, signal)
  const ledger = call.ledger(society)
  const exercice = year === undefined ? undefined : await findExercice(year, ledger.requests, signal)
  const compression = compressionNamed(out)
  terminal.progress('Waiting for the service to make the export')
  try {
    const made = await ledger.fullExport(
      {
        ...wanted,
        idExercice: exercice?.producerId,
        compression: compression === 'none' ? undefined : compression,
      },
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
    const downloaded = isOutput(out) ? await writeFile(call, download) : await download(out)
    const ms = performance.now() - started
    if (json)
      return terminal.json({
        ...made.status,
        ...downloaded,
        file: shownPath(out),
        seconds: ms / 1000,
        society,
      })
    terminal.print(summaryOf(out, made.status, downloaded, ms))
  } catch (error) {
    throw explained(error, out, signal)
  }
}

/** A pull of movements that is unfinished under this name. */
async function refuseOther(out: string, force: boolean): Promise<void> {
  const state = await readFile(stateFileOf(out), 'utf8').catch(() => '')
  if (isStateOfPull(state) && !force)
    throw localFailure(
      `${partOf(out)} is an unfinished pull of movements`,
      'Finish that one first, choose another --out, or give --force to discard it.',
    )
}

function summaryOf(out: string, status: DoneExport, downloaded: Downloaded, ms: number): string[] {
  const { bytes, contentBytes, sha256, isContentVerified } = downloaded
  const size = bytes === contentBytes ? sizeText(bytes) : `${sizeText(contentBytes)} in ${sizeText(bytes)}`
  const notes = Object.entries(status.notes ?? {}).map(([kind, count]) => `${kind} ${countText(count)}`)
  return [
    out,
    `${countText(status.rows)} movements, ${size}, ${secondsText(ms)}, ${rateText(contentBytes, ms)}`,
    `Debit    ${status.totals.debit}, credit ${status.totals.credit}`,
    ...(notes.length > 0 ? [`Notes    ${notes.join(', ')}`] : []),
    `SHA-256  ${sha256}`,
    isContentVerified
      ? "Whole:   the file's bytes and its content have the SHA-256 that the service states"
      : "Whole:   the file's bytes have the SHA-256 that the service states; this Node cannot decompress the content",
  ]
}
