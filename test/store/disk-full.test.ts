/** A store on a disk of 4 MB: a small file system in memory, which needs the right to mount one. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { StoreError } from '../../src/store/store.ts'
import { openFolderStage } from '../support/stages/store-stage.ts'
import { download, exists, put, writePieces } from '../support/store-contract.ts'

const disk = mkdtempSync(join(tmpdir(), 'grandlivre-disk-'))
const mounted = mountSmallDisk()

function mountSmallDisk(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk], { stdio: 'ignore' })
    return true
  } catch {
    // The tests are skipped, and with them the clean-up after them.
    rmdirSync(disk)
    return false
  }
}

afterAll(() => {
  execFileSync('umount', ['-l', disk])
  rmdirSync(disk)
})

const title = mounted ? 'a full disk' : 'a full disk (needs the right to mount one)'
describe.skipIf(!mounted)(title, () => {
  test('is reported as a full disk, leaves no part of the file, and damages no other file', async () => {
    const { store, leftovers } = await openFolderStage(join(disk, 'files'))
    const small = randomBytes(1_000_000)
    await put(store, 'a/small.json', small)
    const writer = await store.create('a/large.json', 'application/json')
    const error = await writePieces(writer, randomBytes(8_000_000)).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(StoreError)
    expect(error.message).toContain('The disk is full')
    expect(error.retryable).toBe(false)
    await expect(writer.complete({ bytes: 8_000_000 })).rejects.toThrow('The disk is full')
    expect(await leftovers()).toEqual([join(disk, 'files/a/small.json')])
    expect(await exists(store, 'a/large.json')).toBe(false)
    expect((await download(store, 'a/small.json')).equals(small)).toBe(true)
    // There is free space again.
    await put(store, 'a/other.json', small)
    expect((await download(store, 'a/other.json')).equals(small)).toBe(true)
  })
})
