import { describe, expect, test } from 'vitest'
import { JsonItems, pathOf } from '../../../src/formats/mad/read-items.ts'
import { JsonNumber } from '../../../src/formats/minor-units.ts'

/** Items of a text given in parts of some characters, as paths and JSON. */
function itemsOf(text: string, characters: number, isWanted = (_place: string) => true): [string, string][] {
  const items = new JsonItems(isWanted)
  const found = []
  for (let at = 0; at < text.length; at += characters)
    found.push(...items.add(text.slice(at, at + characters)))
  items.end()
  return found.map((item) => [pathOf(item), JSON.stringify(item.value)])
}

const text = JSON.stringify({
  metadata: { version: '1' },
  data: { folder: { a: [1, { b: null }] }, list: [{ x: 1.5 }, 'two', [3]], empty: [], flag: true },
  more: [1, 2],
})

describe('items', () => {
  test.each([1, 2, 3, 7, 1000])('are the same when read in pieces of %d characters', (characters) => {
    expect(itemsOf(text, characters)).toEqual([
      ['metadata', '{"version":"1"}'],
      ['data.folder', '{"a":[1,{"b":null}]}'],
      ['data.list[0]', '{"x":1.5}'],
      ['data.list[1]', '"two"'],
      ['data.list[2]', '[3]'],
      ['data.flag', 'true'],
      ['more', '[1,2]'],
    ])
  })

  test('are left out at places that are not wanted', () => {
    expect(itemsOf(text, 5, (place) => place === 'data.list').map(([path]) => path)).toEqual([
      'data.list[0]',
      'data.list[1]',
      'data.list[2]',
    ])
  })

  test('keep the digits of their numbers as written', () => {
    const [item] = new JsonItems(() => true).add('{"a":[92233720368547758.07,1.10,-0]}')
    expect(item!.value).toEqual(['92233720368547758.07', '1.10', '-0'].map((each) => new JsonNumber(each)))
    expect(JSON.stringify(item!.value)).toBe('[92233720368547758.07,1.10,-0]')
  })

  test('may have a member named __proto__', () => {
    const [item] = new JsonItems(() => true).add('{"a":{"__proto__":{"b":1}}}')
    expect(Object.keys(item!.value as object)).toEqual(['__proto__'])
    expect(JSON.stringify(item!.value)).toBe('{"__proto__":{"b":1}}')
  })

  test('have places that the name of a member cannot imitate', () => {
    const places = (text: string) => itemsOf(text, 1000).map(([path]) => path)
    expect(places('{"":{"data":1},"data.list":[1],"data":{"":[1],"a.b":{},"x":2}}')).toEqual([
      '[""]',
      '["data.list"]',
      'data[""][0]',
      'data["a.b"]',
      'data.x',
    ])
    const items = new JsonItems(() => true)
    items.add('{"":{},"data":')
    expect(() => items.end()).toThrow('the file ends before its JSON does, within data')
  })

  test('are refused if the file has more members than the reader remembers', () => {
    const many = (members: number) =>
      JSON.stringify({ data: Object.fromEntries(Array.from({ length: members }, (_, at) => [`m${at}`, at])) })
    expect(itemsOf(many(900), 1000).length).toBe(900)
    expect(() => itemsOf(many(1100), 1000)).toThrow('data has more than 1000 members')
  })

  test('are refused if nested too deeply', () => {
    const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}`
    expect(() => new JsonItems(() => true).add(deep)).toThrow('has more than 100 levels')
  })
})
