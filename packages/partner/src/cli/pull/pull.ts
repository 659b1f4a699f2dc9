/** `grandlivre pull`: movements of a year or period, or a full export, into a file. */

import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { countText, rateText, secondsText, sizeText } from '../../../../terminal/src/amounts.ts'
import { command, type Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { isOnThisMachine } from '../access.ts'
import type { Call } from '../command.ts'
import { localFailure } from '../exit-codes.ts'
import { folderOf } from '../folder.ts'
import { compressionOf } from './compression.ts'
import { explained } from './failures.ts'
import { exportOptions, pullAll, wantedExport } from './pull-all.ts'
import { type Order, type Pulled, pullMovements } from './pull-movements.ts'
import { type Exercice, selectionOf, selectionOptions, type Wanted, wantedOf } from './selection.ts'
import { besideOutput, isOutput, shownPath, writeMovements } from './to-output.ts'

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
    help: 'how the answer travels; zstd otherwise, identity on the same machine',
  },
  all: { help: 'a full export instead, with --format' },
  ...exportOptions,
} as const

type Pull = Given<unknown, typeof options>

export const pull = command({
  name: 'pull',
  summary: 'pull the movements of a year, or a full export, into a file',
  about: `Pulls movements into a file, one as JSON on each line, and proves that the file
is whole: it compares it with what the service says of it. The file appears when
it is proven. A pull that was interrupted or killed goes on when the same
command is run again; <file>.part and <file>.part.json hold what it has. If the
ledger changed in between, it begins again.

Name the movements by --exercice, or by --from and --to. A full export (--all)
is a file that the service makes first: the whole folder with its accounts,
journals and drafts. --exercice, --from, --to and --journals choose a part of
it, where the format has parts.

--out - writes to standard output, uncompressed, and everything else to standard
error. Only exit code 0 says that all of it came and is proven; what was cut off
cannot be continued. A full export is proven in the folder for temporary files
(TMPDIR) before its first byte is written.`,
  options,
  examples: [
    'grandlivre pull --exercice 2025 --out 2025.ndjson.zst',
    'grandlivre pull --from 2025-01-01 --to 2025-03-31 --out quarter.ndjson',
    'grandlivre pull --all --format csv --out folder.csv.gz',
    'grandlivre pull --exercice 2025 --out - | gzip > 2025.ndjson.gz',
  ],
  run: runPull,
})

async function runPull(caller: Call, given: Pull): Promise<void> {
  const force = given.force === true
  const call = isOutput(given.out) ? { ...caller, terminal: besideOutput(caller.terminal) } : caller
  if (given.all) {
    const wanted = wantedExport(given)
    return pullAll(call, wanted, await checkedOut(given, force), force)
  }
  const foreign = Object.keys(exportOptions).find((name) => name in given)
  if (foreign !== undefined) throw new UsageError(`--${foreign} is of a full export: add --all`)
  const wanted = wantedOf(given)
  return pullSelection(call, wanted, await checkedOut(given, force), { force, encoding: given.wire })
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
  const surroundings = { ledger, terminal, signal }
  const pulled = await (isOutput(out) ? writeMovements : pullMovements)(order, surroundings).catch(
    (error) => {
      throw explained(error, out, signal)
    },
  )
  const ms = performance.now() - started
  if (json) {
    const { period } = exercice ?? {}
    return terminal.json({
      file: shownPath(out),
      ...pulled,
      seconds: ms / 1000,
      society,
      selection,
      period,
    })
  }
  terminal.print(summaryOf(out, pulled, ms))
}

/** @returns the path, if a file can be made there, or - */
async function checkedOut({ out, all }: Pull, force: boolean): Promise<string> {
  if (isOutput(out)) return out
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
      : 'its lines were compared with the blocks of the ledger'
  return [
    out,
    `${countText(rows)} movements, ${size}, ${secondsText(ms)}, ${rateText(bytes, ms)}`,
    `SHA-256  ${sha256}`,
    `Cursor   ${cursor}`,
    `Whole:   ${proof}`,
  ]
}
