/** `grandlivre pull --all`: a full export, made by the service and downloaded. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { countText, rateText, secondsText, sizeText } from '../../../../terminal/src/amounts.ts'
import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import { queryValues } from '../../client/api/routes.ts'
import type { Downloaded } from '../../client/files/download.ts'
import type { DoneExport, FullExportSelection } from '../../client/full-export.ts'
import { type Call, textOf, type Values } from '../command.ts'
import { folderOf } from '../folder.ts'
import { compressionNamed } from './compression.ts'
import { explained } from './failures.ts'
import { isStateOfPull, partOf, stateFileOf } from './part-file.ts'
import { findExercice, oneOf, selectionOptions } from './selection.ts'

/** Options that only --all takes. */
export const exportOptions = {
  format: { type: 'string' },
  journals: { type: 'string', multiple: true },
  encoding: { type: 'string' },
  columns: { type: 'string' },
} as const

const valuesOf = queryValues['/mad/all']
/** As people write them. */
export const formats = valuesOf.format.map((name) => name.toLowerCase() as Lowercase<typeof name>)

/** @throws {UsageError} unless the options make a full export */
export function wantedExport(values: Values): Omit<FullExportSelection, 'compression'> & { year?: string } {
  const format = oneOf(formats, values, 'format')
  if (format === undefined) throw new UsageError(`--all needs --format: ${formats.join(', ')}`)
  const others = Object.keys(selectionOptions).filter((name) => !['exercice', 'from', 'to'].includes(name))
  const foreign = [...others, 'wire'].find((name) => values[name] !== undefined)
  if (foreign !== undefined)
    throw new UsageError(`--${foreign} selects movements, and --all pulls a full export`)
  const [exercice, startDate, endDate] = ['exercice', 'from', 'to'].map((name) => textOf(values, name))
  if (format === 'fec' && exercice === undefined)
    throw new UsageError('A FEC is of one exercice: add --exercice <id or year>')
  const journals = values['journals'] as string[] | undefined
  const encoding = oneOf(valuesOf.encoding, values, 'encoding')
  const columns = oneOf(valuesOf.columns, values, 'columns')
  return {
    format,
    ...(exercice === undefined ? {} : { year: exercice }),
    ...(startDate === undefined ? {} : { startDate }),
    ...(endDate === undefined ? {} : { endDate }),
    ...(journals === undefined ? {} : { journalIds: journals.flatMap((ids) => ids.split(',')) }),
    ...(encoding === undefined ? {} : { encoding }),
    ...(columns === undefined ? {} : { columns }),
  }
}

/** @param out where a file may be made */
export async function pullAll(call: Call, out: string, force: boolean): Promise<void> {
  const { values, terminal, signal, json } = call
  const started = performance.now()
  const { year, ...wanted } = wantedExport(values)
  await refuseOther(out, force)
  const society = await folderOf(call.ledger().requests, call.access().society, signal)
  const ledger = call.ledger(society)
  const exercice = year === undefined ? undefined : await findExercice(year, ledger.requests, signal)
  const compression = compressionNamed(out)
  try {
    const made = await ledger.fullExport(
      {
        ...wanted,
        ...(exercice === undefined ? {} : { idExercice: exercice.producerId }),
        ...(compression === 'none' ? {} : { compression }),
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
    const downloaded = await made.download(out, {
      signal,
      onProgress: ({ bytes, size }) =>
        terminal.progress(`Downloading: ${sizeText(bytes)} of ${sizeText(size)}`, bytes / size),
      onRestart: (reason) => terminal.note(`${reason}: beginning anew`),
    })
    const ms = performance.now() - started
    if (json)
      return terminal.json({ ...made.status, ...downloaded, file: resolve(out), seconds: ms / 1000, society })
    for (const line of summaryOf(out, made.status, downloaded, ms)) terminal.print(line)
  } catch (error) {
    throw explained(error, out, signal)
  }
}

/** A pull of movements that is unfinished under this name. */
async function refuseOther(out: string, force: boolean): Promise<void> {
  const state = await readFile(stateFileOf(out), 'utf8').catch(() => '')
  if (isStateOfPull(state) && !force)
    throw new Failure(
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
