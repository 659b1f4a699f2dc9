/** `grandlivre pull`: movements of a year or period, or a full export, into a file. */
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { countText, rateText, secondsText, sizeText } from '../../../../terminal/src/amounts.ts'
import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import { isOnThisMachine } from '../access.ts'
import { type Call, type Command, textOf, type Values } from '../command.ts'
import { folderOf } from '../folder.ts'
import { compressionOf } from './compression.ts'
import { explained } from './failures.ts'
import { exportOptions, formats, pullAll, wantedExport } from './pull-all.ts'
import { type Order, type Pulled, pullMovements } from './pull-movements.ts'
import { type Exercice, oneOf, selectionOf, selectionOptions, type Wanted, wantedOf } from './selection.ts'

export const pull: Command = {
  name: 'pull',
  summary: 'pull the movements of a year, or a full export, into a file',
  usage: `Usage: grandlivre pull --exercice <id or year> --out <file>
       grandlivre pull --from <day> --to <day> --out <file>
       grandlivre pull --all --format <format> --out <file>

Pulls movements into a file, one as JSON on each line, and proves that the file
is whole: it compares it with what the service says of it. The file appears when
it is proven. A pull that was interrupted or killed goes on when the same
command is run again; <file>.part and <file>.part.json hold what it has. If the
ledger changed in between, it begins anew.

Options:
  --exercice <id or year>  an id; a calendar year in which one exercice starts
                           or ends; or N, N-1 ... as the service names them
  --from, --to <day>       a period instead, YYYY-MM-DD, both days included,
                           of less than 12 months
  --date-filter <date>     the date that the period compares: document
                           (default), accounting or platform
  --draft                  only drafts, instead of only validated entries
  --class-account <roots>  only accounts that begin so: 60,61. Can be repeated
  --lettering <state>      only none, partial or complete
  --source <code>          only entries of this source
  --out <file>             compressed if it ends in .gz or .zst
  --force                  replace the file, and discard an unfinished one of
                           another pull
  --wire <encoding>        how the answer travels: identity, gzip or zstd.
                           Default: zstd, identity on the same machine

A full export is a file that the service makes first: the whole folder with its
accounts, journals and drafts. It takes --out and --force, and:
  --format <format>        ${formats.join(', ')}; fec with --exercice
  --exercice, --from, --to, --journals <ids>
                           a part of the folder, where the format has parts
  --encoding utf-8         a FEC in UTF-8 instead of ISO 8859-15
  --columns extended       a FEC with all columns of the imported file

Examples:
  grandlivre pull --exercice 2025 --out 2025.ndjson.zst
  grandlivre pull --all --format csv --out folder.csv.gz`,
  options: {
    ...selectionOptions,
    out: { type: 'string' },
    force: { type: 'boolean' },
    wire: { type: 'string' },
    all: { type: 'boolean' },
    ...exportOptions,
  },
  run: runPull,
}

const encodings = ['identity', 'gzip', 'zstd'] as const

async function runPull(call: Call): Promise<void> {
  const { values } = call
  const force = values['force'] === true
  if (values['all'] === true) {
    wantedExport(values)
    return pullAll(call, await checkedOut(values, force), force)
  }
  const foreign = Object.keys(exportOptions).find((name) => values[name] !== undefined)
  if (foreign !== undefined) throw new UsageError(`--${foreign} is of a full export: add --all`)
  const wanted = wantedOf(values)
  const encoding = oneOf(encodings, values, 'wire')
  return pullSelection(call, wanted, await checkedOut(values, force), { force, encoding })
}

async function pullSelection(
  call: Call,
  wanted: Wanted,
  out: string,
  { force, encoding }: Pick<Order, 'force' | 'encoding'>,
): Promise<void> {
  const { terminal, signal, json } = call
  const started = performance.now()
  const society = await folderOf(call.ledger().requests, call.access().society, signal)
  const ledger = call.ledger(society)
  const { baseUrl } = ledger.requests
  const { selection, exercice } = await selectionOf(wanted, ledger.requests, signal)
  if (exercice) terminal.note(`Exercice ${exercice.producerId}, ${periodOf(exercice)}`)
  const order = {
    ...{ out, selection, force },
    source: { baseUrl, society, selection: { ...selection } },
    encoding: encoding ?? (isOnThisMachine(baseUrl) ? 'identity' : undefined),
  }
  const pulled = await pullMovements(order, { ledger, terminal, signal }).catch((error) => {
    throw explained(error, out, signal)
  })
  const ms = performance.now() - started
  if (json) {
    const { period } = exercice ?? {}
    return terminal.json({ file: resolve(out), ...pulled, seconds: ms / 1000, society, selection, period })
  }
  for (const line of summaryOf(out, pulled, ms)) terminal.print(line)
}

/** @returns the path, if a file can be made there */
async function checkedOut(values: Values, force: boolean): Promise<string> {
  const out = textOf(values, 'out')
  if (out === undefined) throw new UsageError('Name the file: --out <file>')
  if (values['all'] !== true) compressionOf(out)
  const found = await stat(out).catch(() => undefined)
  if (found?.isDirectory())
    throw new Failure(`${out} is a folder`, `Name a file in it: --out ${out}/2025.ndjson`)
  if (found && !force)
    throw new Failure(`${out} exists`, 'Choose another --out, or give --force to replace it.')
  const folder = dirname(out)
  const parent = await stat(folder).catch(() => undefined)
  if (!parent?.isDirectory())
    throw new Failure(`There is no folder ${folder}`, `Run mkdir -p '${folder}' first.`)
  return out
}

function periodOf({ period }: Exercice): string {
  return `${period.start} to ${period.end}`
}

function summaryOf(out: string, pulled: Pulled, ms: number): string[] {
  const { rows, bytes, fileBytes, sha256, cursor, provedBy } = pulled
  const size = fileBytes === bytes ? sizeText(bytes) : `${sizeText(bytes)} in ${sizeText(fileBytes)}`
  const proof =
    provedBy === 'trailers'
      ? "the answer's row count and SHA-256 are those of the file"
      : 'the file was compared with the blocks of the ledger'
  return [
    out,
    `${countText(rows)} movements, ${size}, ${secondsText(ms)}, ${rateText(bytes, ms)}`,
    `SHA-256  ${sha256}`,
    `Cursor   ${cursor}`,
    `Whole:   ${proof}`,
  ]
}
