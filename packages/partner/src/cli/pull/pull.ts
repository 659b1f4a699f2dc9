/** `grandlivre pull` writes the movements of a year or period, or a full export, into a file. */
import { readFile, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { countText, rateText, secondsText, sizeText } from '../../../../terminal/src/amounts.ts'
import { command, type Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { queryValues } from '../../client/api/routes.ts'
import { partOf, stateFileOf } from '../../client/files/part-file.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { isOnThisMachine } from '../access.ts'
import type { CommandCall } from '../command.ts'
import { localFailure } from '../exit-codes.ts'
import { folderOf } from '../identity.ts'
import { explained } from './failures.ts'
import { compressionNamed, compressionOf, isStateOfPull } from './part-file.ts'
import { pullMovements } from './pull-movements.ts'
import { type Exercice, findExercice, selectionOptions, wantedMovements } from './selection.ts'
import { besideOutput, isOutput, writeExport, writeMovements } from './to-output.ts'

const valuesOf = queryValues['/mad/all']
/** The formats in lower case, as people write them. */
const formats = valuesOf.format.map((name) => name.toLowerCase() as Lowercase<typeof name>)

/** Options that only apply with --all. */
const exportOptions = {
  format: { value: 'format', choices: formats, help: 'format of a full export; fec needs --exercice' },
  journals: { value: 'ids', several: true, help: 'with --all: only these journals' },
  encoding: { value: 'name', choices: valuesOf.encoding, help: 'encoding of a FEC; otherwise ISO 8859-15' },
  columns: {
    value: 'columns',
    choices: valuesOf.columns,
    help: 'columns of a FEC; extended has all those of the imported file',
  },
} as const

const options = {
  ...selectionOptions,
  out: {
    value: 'file',
    required: true,
    help: 'compressed if it ends in .gz or .zst; - is standard output',
  },
  force: { help: 'replace the file, and discard an unfinished one of another pull' },
  wire: {
    value: 'encoding',
    choices: ['identity', 'gzip', 'zstd'],
    help: 'compression on the network; otherwise zstd, or identity on the same machine',
  },
  all: { help: 'a full export instead, with --format' },
  ...exportOptions,
} as const

type Pull = Given<unknown, typeof options>

export const pull = command({
  name: 'pull',
  summary: 'pull the movements of a year, or a full export, into a file',
  about: `Pulls movements into a file, one as JSON on each line, and proves that the file
is whole by what the service states about it. The file appears when it is
proven. A pull that was interrupted or killed goes on when the same command is
run again; <file>.part and <file>.part.json hold what it has. If the ledger
changed in between, it begins again.

Name the movements by --exercice, or by --from and --to. A full export (--all)
is a file that the service makes first: the whole folder with its accounts,
journals and drafts. --exercice, --from, --to and --journals choose a part of
it, if the format has parts.

With --out - the content goes to standard output, uncompressed, and everything
else to standard error. Only exit code 0 means that all of it came and is
proven. A transfer that was cut off cannot be continued. A full export is proven
in the folder for temporary files (TMPDIR) before its first byte is written.`,
  options,
  examples: [
    'grandlivre pull --exercice 2025 --out 2025.ndjson.zst',
    'grandlivre pull --from 2025-01-01 --to 2025-03-31 --out quarter.ndjson',
    'grandlivre pull --all --format csv --out folder.csv.gz',
    'grandlivre pull --exercice 2025 --out - | gzip > 2025.ndjson.gz',
  ],
  run: runPull,
})

async function runPull(caller: CommandCall, given: Pull): Promise<void> {
  const { out } = given
  const call = isOutput(out) ? { ...caller, terminal: besideOutput(caller.terminal) } : caller
  const { terminal, signal, json } = call
  const pulling = given.all ? exportPull(given) : movementPull(given)
  await checkOut(given)
  const started = performance.now()
  const society = await folderOf(call)
  const ledger = call.ledger(society)
  const { exercice: word } = given
  const exercice = word === undefined ? undefined : await findExercice(word, ledger, signal)
  const pulled = await pulling(call, ledger, society, exercice).catch((error) => {
    throw explained(error, out, signal)
  })
  const ms = performance.now() - started
  const { rows, contentBytes, fileBytes, facts, more, lines } = pulled
  if (json) return terminal.json({ ...facts, seconds: ms / 1000, society, ...more })
  const content = sizeText(contentBytes)
  const size = fileBytes === contentBytes ? content : `${content} in ${sizeText(fileBytes)}`
  const summary = `${countText(rows)} movements, ${size}, ${secondsText(ms)}, ${rateText(contentBytes, ms)}`
  terminal.print([out, summary, ...lines])
}

/** @throws {UsageError} unless the options describe a full export */
function exportPull(given: Pull) {
  const { format, exercice, from: startDate, to: endDate, journals, encoding, columns } = given
  if (format === undefined) throw new UsageError(`--all needs --format: ${formats.join(', ')}`)
  const others = Object.keys(selectionOptions).filter((name) => !['exercice', 'from', 'to'].includes(name))
  const foreign = [...others, 'wire'].find((name) => name in given)
  if (foreign !== undefined)
    throw new UsageError(`--${foreign} selects movements, and --all pulls a full export`)
  if (format === 'fec' && exercice === undefined)
    throw new UsageError('A FEC is of one exercice: add --exercice <id or year>')
  const journalIds = journals?.flatMap((ids) => ids.split(','))
  const wanted = { format, journalIds, startDate, endDate, encoding, columns }
  return async (
    { terminal, signal }: CommandCall,
    ledger: Grandlivre,
    _society: string,
    exercice?: Exercice,
  ) => {
    terminal.progress('Waiting for the service to make the export')
    const made = await ledger.fullExport(
      { ...wanted, idExercice: exercice?.producerId, compression: compressionNamed(given.out) },
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
    const downloaded = isOutput(given.out)
      ? await writeExport({ terminal, signal }, download)
      : await download(given.out)
    const { rows, totals, notes: counts = {} } = made.status
    const notes = Object.entries(counts).map(([kind, count]) => `${kind} ${countText(count)}`)
    const content = downloaded.isContentVerified
      ? ' and its content have the SHA-256 that the service states'
      : ' have the SHA-256 that the service states; this Node cannot decompress the content'
    return {
      ...{ rows, contentBytes: downloaded.contentBytes, fileBytes: downloaded.bytes },
      facts: { ...made.status, ...downloaded, file: shownPath(given.out) },
      more: {},
      lines: [
        `Debit    ${totals.debit}, credit ${totals.credit}`,
        ...(notes.length > 0 ? [`Notes    ${notes.join(', ')}`] : []),
        `SHA-256  ${downloaded.sha256}`,
        `Whole:   the file's bytes${content}`,
      ],
    }
  }
}

/** @throws {UsageError} unless the options describe one selection of movements */
function movementPull(given: Pull) {
  const foreign = Object.keys(exportOptions).find((name) => name in given)
  if (foreign !== undefined) throw new UsageError(`--${foreign} is of a full export: add --all`)
  const selectionOf = wantedMovements(given)
  const { out, wire, force = false } = given
  return async (
    { terminal, signal }: CommandCall,
    ledger: Grandlivre,
    society: string,
    exercice?: Exercice,
  ) => {
    const { period } = exercice ?? {}
    if (period) terminal.note(`Exercice ${exercice!.producerId}, ${period.start} to ${period.end}`)
    const { baseUrl } = ledger.requests
    const selection = selectionOf(exercice)
    const source = { baseUrl, society, selection: { ...selection } }
    const encoding = wire ?? (isOnThisMachine(baseUrl) ? 'identity' : undefined)
    const order = { out, selection, source, force, encoding, ledger, terminal, signal }
    const pulled = await (isOutput(out) ? writeMovements(order) : pullMovements(order))
    const { rows, bytes, fileBytes, sha256, cursor, provedBy } = pulled
    const proof =
      provedBy === 'trailers'
        ? "the answer's row count and SHA-256 are those of the file"
        : 'its lines were compared with the blocks of the ledger'
    return {
      ...{ rows, contentBytes: bytes, fileBytes },
      facts: { file: shownPath(out), ...pulled },
      more: { selection, period },
      lines: [`SHA-256  ${sha256}`, `Cursor   ${cursor}`, `Whole:   ${proof}`],
    }
  }
}

/** The file as results name it: its full path, or - for standard output. */
const shownPath = (out: string) => (isOutput(out) ? out : resolve(out))

/** @throws {Failure} if the file cannot be made there */
async function checkOut({ out, all, force }: Pull): Promise<void> {
  if (isOutput(out)) return
  if (!all) compressionOf(out)
  const found = await stat(out).catch(() => undefined)
  if (found?.isDirectory())
    throw localFailure(`${out} is a folder`, `Name a file in it: --out ${out}/2025.ndjson`)
  if (found && !force)
    throw localFailure(`${out} exists`, 'Choose another --out, or give --force to replace it.')
  const folder = dirname(out)
  const parent = await stat(folder).catch(() => undefined)
  if (!parent?.isDirectory())
    throw localFailure(`There is no folder ${folder}`, `Run mkdir -p '${folder}' first.`)
  if (all && !force && isStateOfPull(await readFile(stateFileOf(out), 'utf8').catch(() => '')))
    throw localFailure(
      `${partOf(out)} is an unfinished pull of movements`,
      'Finish that one first, choose another --out, or give --force to discard it.',
    )
}
