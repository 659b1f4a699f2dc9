/** One sync at a time writes a file. */
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockFile } from '../../../../src/cli/sync/targets/lock.ts'

test('a lock without a name is being written while it is new, and left by a crash once it is old', () => {
  const out = mkdtempSync(join(tmpdir(), 'grandlivre-lock-'))
  const target = join(out, 'ledger.ndjson')
  const lock = `${target}.lock`
  writeFileSync(lock, '')
  expect(() => lockFile(target)).toThrow(`Another sync writes ${target}`)
  utimesSync(lock, 0, 0)
  const unlock = lockFile(target)
  unlock()
  expect(existsSync(lock)).toBe(false)
  rmSync(out, { recursive: true })
})
