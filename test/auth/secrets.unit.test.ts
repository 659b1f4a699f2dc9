import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadMasterKeys } from '../../src/auth/master-key.sql.ts'
import { decrypt, encrypt, makeSigningSecret, makeToken } from '../../src/auth/secrets.ts'

test('tokens and secrets name their kind and hold 256 random bits', () => {
  expect(makeToken('api')).toMatch(/^glv_api_[\w-]{43}$/)
  expect(makeToken('firm')).toMatch(/^glv_firm_[\w-]{43}$/)
  expect(makeToken('secret')).toMatch(/^glv_secret_[\w-]{43}$/)
  expect(makeSigningSecret()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(new Set(Array.from({ length: 100 }, () => makeToken('api'))).size).toBe(100)
})

describe('an encrypted secret', () => {
  const key = randomBytes(32)

  test('decrypts if its key is among those given, and is encrypted differently each time', () => {
    const secret = makeToken('secret')
    expect(decrypt(encrypt(secret, key), [randomBytes(32), key])).toBe(secret)
    expect(encrypt(secret, key)).not.toEqual(encrypt(secret, key))
    expect(encrypt(secret, key).includes(secret.slice(11))).toBe(false)
  })

  test('is refused with other keys, or if any byte was changed or is missing', () => {
    const sealed = encrypt('glv_secret_x', key)
    const message = /MASTER_KEY is not the key/
    expect(() => decrypt(sealed, [randomBytes(32), randomBytes(32)])).toThrow(message)
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at]! ^= 1
      expect(() => decrypt(changed, [key])).toThrow(message)
      expect(() => decrypt(sealed.subarray(0, at), [key])).toThrow(message)
    }
  })
})

describe('the master key', () => {
  let dataDir: string

  beforeEach(async () => {
    dataDir = join(await mkdtemp(join(tmpdir(), 'grandlivre-key-')), 'made', 'by', 'need')
  })

  afterEach(() => rm(join(dataDir, '../../..'), { recursive: true }))

  test('is the key in the settings, if there is one, and no file is written', async () => {
    const masterKey = randomBytes(32)
    expect(await loadMasterKeys({ masterKey, dataDir })).toEqual([masterKey])
    await expect(readdir(dataDir)).rejects.toThrow('ENOENT')
  })

  test('is neither created when its file is missing nor replaced when the file holds something else', async () => {
    const path = join(dataDir, 'master.key')
    await expect(loadMasterKeys({ masterKey: undefined, dataDir })).rejects.toThrow(
      /is missing, and .* Put the former file back/,
    )
    await mkdir(dataDir, { recursive: true })
    for (const content of ['', 'abc', `${'0'.repeat(63)}g`]) {
      await writeFile(path, content)
      await expect(loadMasterKeys({ masterKey: undefined, dataDir })).rejects.toThrow(
        `${path} must hold 64 hexadecimal digits`,
      )
      expect(await readFile(path, 'utf8')).toBe(content)
    }
  })
})
