/** Lines of entries, the lines of movements that they stand for, and their rows. */
import { expect, test } from 'vitest'
import { linesOf, movementLines } from '../../../src/cli/sync/lines/entry-lines.ts'
import { membersOf } from '../../../src/cli/sync/lines/members.ts'
import { centsOf, entryRows } from '../../../src/cli/sync/lines/rows.ts'
import { Pending } from '../../../src/cli/sync/settle.ts'

const hostile = String.raw`a\"}],\"entry\":{\\\"b\\`
const entry = (more = '', filed = '', debit = '0.1'): Buffer =>
  Buffer.from(
    `{"producerId":"7","attachments":{"a\\"}.pdf":{"type":"URL","value":"https://x/1"}},"date":"2025-01-31","dueDate":null,` +
      `"journal":{"producerId":"3","customerReferenceCode":"VE","name":"${hostile}","type":"Vente"},"currency":{"code":"EUR"},` +
      `"movements":[{"producerId":"8","description":"${hostile}","dueDate":null,"freeNumber":null,"invoiceNumber":"",` +
      `"value":{"credit":0,"debit":${debit},"amount":-${debit}},"attachments":{},"account":{"producerId":"4","number":"706","name":"n"},` +
      `"payment":null,"analytics":[],"lettering":{"state":"partial","value":"*AB"}${filed}}],` +
      `"additionalProducerProperties":{"source":{"name":"E","thirdParty":null},"partnerMetadata":{"partnerId":"p","json":{"entry":[1,{"producerId":"9"}]}},` +
      `"comment":null,"createdAt":1767287566,"accountedAt":"2025-01-31","validationDate":"2025-02-28"${more}}}`,
  )
const movement =
  `{"producerId":"8","description":"${hostile}","dueDate":null,"freeNumber":null,"invoiceNumber":"",` +
  `"value":{"credit":0,"debit":0.1,"amount":-0.1},"entry":{"producerId":"7","date":"2025-01-31","dueDate":null,"currency":{"code":"EUR"},` +
  `"journal":{"producerId":"3","customerReferenceCode":"VE","name":"${hostile}","type":"Vente"},` +
  `"additionalProducerProperties":{"source":{"name":"E","thirdParty":null},"partnerMetadata":{"partnerId":"p","json":{"entry":[1,{"producerId":"9"}]}},` +
  `"comment":null,"createdAt":1767287566,"accountedAt":"2025-01-31"},"attachments":{"a\\"}.pdf":{"type":"URL","value":"https://x/1"}}},` +
  `"attachments":{},"account":{"producerId":"4","number":"706","name":"n"},"payment":null,"analytics":[],"lettering":{"state":"partial","value":"*AB"}}\n`
const filed = ',"filed":{"pieceDate":"2025-01-15","auxiliaryNumber":"C1","auxiliaryName":"Client"}'
const part = { exercice: '11', draft: false }

test('the lines of movements are put together from the exact bytes of an entry', () => {
  expect(String(Buffer.concat(movementLines(entry())))).toBe(movement)
})

test('what only lines of entries have is not in them', () => {
  expect(String(Buffer.concat(movementLines(entry(',"ecritureNum":"12"', filed))))).toBe(movement)
})

test('rows have what an import kept as filed, and nothing of it from an older service', () => {
  const ends = (line: Buffer) => entryRows(line, part).movements[0]!.slice(-3)
  expect(ends(entry())).toEqual([null, null, null])
  expect(ends(entry(',"ecritureNum":null'))).toEqual(['2025-01-31', null, null])
  expect(ends(entry(',"ecritureNum":"12"', filed))).toEqual(['2025-01-15', 'C1', 'Client'])
  const blank = filed.replace('"2025-01-15"', 'null')
  expect(ends(entry(',"ecritureNum":"12"', blank))).toEqual([null, 'C1', 'Client'])
  expect(entryRows(entry(',"ecritureNum":"12"'), part).entry.at(-1)).toBe('12')
})

test('amounts are exact cents, also those that a double cannot hold', () => {
  const debit = (digits: string) => entryRows(entry('', '', digits), part).movements[0]![7]
  expect(debit('0.1')).toBe(10)
  expect(debit('1234567.89')).toBe(123456789)
  expect(debit('9007199254740993.17')).toBe(900719925474099317n)
  expect([centsOf('-0.5'), centsOf('-12'), centsOf('264.44')]).toEqual([-50n, -1200n, 26444n])
})

test('a partial lettering code has no star, and attachments are as in the CSV file', () => {
  const [row] = entryRows(entry(), part).movements
  expect(row!.slice(10, 14)).toEqual(['partial', 'AB', null, '{"entry":{"a\\"}.pdf":"https://x/1"}}'])
})

test('members are found by their bytes', () => {
  const json = Buffer.from(String.raw`{"a":1,"b":"x\\","c":[{"d":"]}"},2],"e":{}}`)
  expect(
    membersOf(json, 0).map(({ name, value, end }) => [name, json.toString('latin1', value, end)]),
  ).toEqual([
    ['a', '1'],
    ['b', String.raw`"x\\"`],
    ['c', '[{"d":"]}"},2]'],
    ['e', '{}'],
  ])
  expect(() => membersOf(Buffer.from('{"a":"'), 0)).toThrow('not whole')
})

test('lines end at line feeds', () => {
  expect([...linesOf(Buffer.from('a\nb\n'))].map(String)).toEqual(['a', 'b'])
})

test('changed entries are pending until a part has shown each of them', () => {
  const pending = new Pending()
  expect(pending.isEmpty).toBe(true)
  const ranges: [string, string][] = [
    ['5', '6'],
    ['9', '9'],
  ]
  pending.add(ranges, '1.1')
  for (const id of [5, 9]) pending.found(id)
  expect(pending.isEmpty).toBe(false)
  pending.found(6)
  expect(pending.isEmpty).toBe(true)
  // Another part names the same ones.
  pending.add([['5', '6']], '1.1')
  expect(pending.isEmpty).toBe(true)
  // It may have moved since it was shown.
  pending.add([['6', '6']], '1.2')
  expect(pending.isEmpty).toBe(false)
  pending.found(6)
  expect(pending.isEmpty).toBe(true)
  pending.add([['0', '9007199254740991']], '1.2')
  pending.found(1)
  expect(pending.isEmpty).toBe(false)
})
