import { expect, test } from 'vitest'
import { readTarget } from '../../../src/cli/listen/listen.ts'

test('addresses of this machine are accepted in every notation', () => {
  for (const address of [
    'http://localhost:3000/hook',
    'https://localhost',
    'http://app.localhost:3000/',
    'http://127.0.0.1:1/x?y=z',
    'http://127.1/',
    'http://0x7f000001/',
    'http://[::1]:3000/',
    'http://[0:0:0:0:0:0:0:1]/',
  ])
    expect(readTarget(address, false).href).toBe(new URL(address).href)
})

test('other addresses are accepted only with --allow-remote', () => {
  for (const address of [
    'http://example.com/hook',
    'https://10.0.0.7/',
    'http://localhost.example.com/',
    'http://127.0.0.1.example.com/',
    'http://[::ffff:127.0.0.1]/',
    'http://notlocalhost/',
  ]) {
    expect(() => readTarget(address, false)).toThrow(/is not this machine.*--allow-remote/)
    expect(readTarget(address, true).href).toBe(new URL(address).href)
  }
})

test('text that is no address is refused, and the error shows what an address looks like', () => {
  for (const text of ['', 'localhost:3000', '3000', 'ftp://localhost/', 'http://', '/hook'])
    expect(() => readTarget(text, true)).toThrow('is no address of a receiver')
  expect(() => readTarget('http://me:secret@localhost/', true)).toThrow('user name or password')
})
