import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findAccess, loginFile, readProfiles, removeAccess, writeAccess } from '../../src/cli/access.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'grandlivre-access-'))
})
afterEach(() => rmSync(home, { recursive: true }))

const access = { baseUrl: 'https://ledger.example', token: 'glv_api_1', secret: 'glv_secret_1' }
const variables = {
  GRANDLIVRE_URL: 'https://other.example',
  GRANDLIVRE_TOKEN: 'glv_api_2',
  GRANDLIVRE_SECRET: 'glv_secret_2',
}
const permissionsOf = (path: string) => statSync(path).mode & 0o777

test('a saved login file can be read again, and only its owner has permission to read it', async () => {
  const env = { HOME: home }
  const path = await writeAccess(env, access)
  expect(path).toBe(join(home, '.config/grandlivre/access.json'))
  expect([permissionsOf(path), permissionsOf(dirname(path))]).toEqual([0o600, 0o700])
  expect(findAccess(env)).toEqual({ ...access, from: path })
  await writeAccess(env, { ...access, society: '111' })
  expect(findAccess(env)).toEqual({ ...access, society: '111', from: path })
  expect(readdirSync(dirname(path))).toEqual(['access.json'])
})

test('the login file goes to XDG_CONFIG_HOME if that is set', () => {
  expect(loginFile({ HOME: home, XDG_CONFIG_HOME: '/etc/x' })).toBe('/etc/x/grandlivre/access.json')
})

test('access in the environment wins over the login file, and the two are never mixed', async () => {
  await writeAccess({ HOME: home }, { ...access, society: '111' })
  const { GRANDLIVRE_URL: baseUrl, GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } = variables
  expect(findAccess({ HOME: home, ...variables })).toEqual({ baseUrl, token, secret, from: 'environment' })
  expect(() => findAccess({ HOME: home, GRANDLIVRE_URL: baseUrl })).toThrow(
    'GRANDLIVRE_URL is set, and GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET are not',
  )
})

test('a folder is taken from the option, then the environment, then the file', async () => {
  const env = { HOME: home }
  await writeAccess(env, { ...access, society: '111' })
  expect(findAccess(env).society).toBe('111')
  expect(findAccess({ ...env, GRANDLIVRE_SOCIETY: '112' }).society).toBe('112')
  expect(findAccess({ ...env, GRANDLIVRE_SOCIETY: '112' }, '113').society).toBe('113')
  expect(findAccess({ ...env, ...variables, GRANDLIVRE_SOCIETY: '' }).society).toBeUndefined()
})

test('a profile chosen by name uses its own folder and ignores the folder in the environment', async () => {
  const env = { HOME: home, ...variables, GRANDLIVRE_SOCIETY: '112' }
  await writeAccess(env, access, 'paris')
  await writeAccess(env, { ...access, society: '111' }, 'lyon')
  expect(findAccess(env, undefined, 'lyon')).toMatchObject({ token: 'glv_api_1', society: '111' })
  expect(findAccess(env, undefined, 'paris').society).toBeUndefined()
  expect(findAccess(env, '113', 'lyon').society).toBe('113')
})

test.each([0o640, 0o604, 0o620])(
  'a login file with permissions %o is refused, and the error names the command that repairs it',
  async (mode) => {
    const path = await writeAccess({ HOME: home }, access)
    chmodSync(path, mode)
    expect(() => findAccess({ HOME: home })).toThrow(
      expect.objectContaining({
        message: `Other users can read or write ${path}, which holds secrets`,
        remedy: [`Run chmod 600 '${path}'.`],
      }),
    )
  },
)

test('the error for a missing or broken login file names it and says what to do', async () => {
  expect(() => findAccess({ HOME: home })).toThrow('There is no access to a ledger yet')
  const path = await writeAccess({ HOME: home }, access)
  for (const [text, message] of [
    ['{', 'is not JSON'],
    ['{"token":"t"}', 'lacks baseUrl, token or secret'],
    ['null', 'lacks baseUrl, token or secret'],
  ] as const) {
    writeFileSync(path, text)
    expect(() => findAccess({ HOME: home })).toThrow(`${path} ${message}`)
  }
})

test('an interrupted login leaves the file as it was', async () => {
  const path = await writeAccess({ HOME: home }, access)
  // The draft cannot be written because its file exists already.
  writeFileSync(`${path}.${process.pid}`, '')
  await expect(writeAccess({ HOME: home }, { ...access, token: 'other' })).rejects.toThrow('EEXIST')
  expect(JSON.parse(readFileSync(path, 'utf8')).token).toBe('glv_api_1')
})

test('logins at the same time all keep their profiles, and a leftover lock stops none of them', async () => {
  const env = { HOME: home }
  const names = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6']
  const lock = `${await writeAccess(env, access)}.lock`
  writeFileSync(lock, '')
  utimesSync(lock, 0, 0)
  await Promise.all(names.map((name) => writeAccess(env, access, name)))
  expect([...readProfiles(loginFile(env)).keys()]).toEqual(expect.arrayContaining(['default', ...names]))
  await Promise.all(names.map((name) => removeAccess(env, name)))
  expect([...readProfiles(loginFile(env)).keys()]).toEqual(['default'])
  expect(readdirSync(dirname(lock))).toEqual(['access.json'])
})

test('the error names a folder that is in place of the login file', () => {
  const path = loginFile({ HOME: home })
  mkdirSync(path, { recursive: true })
  expect(() => findAccess({ HOME: home })).toThrow(`${path} cannot be read: EISDIR`)
})

test('the last profile of a login file can be removed, and removing it again is refused', async () => {
  const path = await writeAccess({ HOME: home }, access)
  expect(await removeAccess({ HOME: home }, 'default')).toBe(path)
  await expect(removeAccess({ HOME: home }, 'default')).rejects.toThrow(`${path} has no profile default`)
})
