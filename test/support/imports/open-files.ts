/** The fixtures of MAD and TRA files with open exercices, because an import changes no closed one. */
import { readFixture } from '../fixtures/fixture-files.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads into the file as it likes
export type MadFile = any

export function readOpenMad(): MadFile {
  const file = JSON.parse(readFixture('ledger.mad.json').toString('utf8'))
  for (const exercice of file.data.exercices) Object.assign(exercice, { state: 'open' }).period.closed = null
  return file
}

export function readOpenTra(): Buffer {
  const text = readFixture('ledger.tra').toString('latin1')
  return Buffer.from(text.replaceAll(/^(\*{3}EXO.{19})CDE(.*)$/gm, '$1OUV$2'), 'latin1')
}
