/**
 * `--out -` writes the content to standard output, and everything else to standard error. Written bytes cannot be taken
 * back: the exit code says whether they are proven, and a later run starts from the beginning.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countText, sizeText } from '../../../../terminal/src/amounts.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { printableJson } from '../../../../terminal/src/printable.ts'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import { GrandlivreError } from '../../client/errors.ts'
import { localFailure } from '../exit-codes.ts'
import type { MovementPull, PulledMovements } from './pull-movements.ts'

export const isOutput = (out: string) => out === '-'

/** @throws {UsageError} if standard output is a terminal */
export function besideOutput(terminal: Terminal): Terminal {
  if (!terminal.bytes)
    throw new UsageError(
      '--out - writes bytes, and a terminal would obey control characters in them: use a pipe, or name a file',
    )
  return { ...terminal, print: terminal.warn, json: (value) => terminal.warn(printableJson(value)) }
}

const unproven =
  'Discard what came: it is not proven and cannot be continued. Run the command again, or name a file.'

/** Compares all lines with the blocks of the ledger as they pass, even if the connection breaks in between. */
export async function writeMovements(pull: MovementPull): Promise<PulledMovements> {
  const { selection, encoding, ledger, terminal, signal } = pull
  const stream = ledger.movements(selection, { signal, encoding, proof: 'blocks' })
  const { progress } = stream
  const hash = createHash('sha256')
  try {
    for await (const chunk of stream.chunks()) {
      hash.update(chunk)
      await writeToOutput(terminal, chunk, signal)
      terminal.progress(`${countText(progress.rows)} movements, ${sizeText(progress.bytes)}`)
    }
  } catch (error) {
    if (!(error instanceof GrandlivreError) || progress.bytes === 0) throw error
    const { code, message, status, requestId } = error
    throw new GrandlivreError(code, message, { status, requestId, remedy: unproven, cause: error })
  }
  const { rows, bytes, wireBytes, connections, cursor = '' } = progress
  const sha256 = hash.digest('hex')
  return { rows, bytes, fileBytes: bytes, sha256, cursor, provedBy: 'blocks', wireBytes, connections }
}

/**
 * Downloads a file into the temporary folder and proves it there, before its first byte is written to standard output.
 */
export async function writeExport<Result>(
  { terminal, signal }: Pick<MovementPull, 'terminal' | 'signal'>,
  download: (file: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-')).catch((cause: Error) => {
    throw localFailure(
      `The folder for temporary files, ${tmpdir()}, cannot be used: ${cause.message}`,
      'Set TMPDIR to a folder that is there and that you can write to, or name a file.',
      { cause },
    )
  })
  try {
    const file = join(folder, 'export')
    const result = await download(file)
    for await (const chunk of createReadStream(file, { signal })) await writeToOutput(terminal, chunk, signal)
    return result
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function writeToOutput({ bytes }: Terminal, chunk: Uint8Array, signal: AbortSignal): Promise<void> {
  await bytes!(chunk, signal).catch((cause: Error) => {
    signal.throwIfAborted()
    throw localFailure(`Standard output takes no more: ${cause.message}`, unproven, { cause })
  })
}
