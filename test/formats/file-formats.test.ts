/** A format is declared once. Whatever cannot read the declaration, such as the database, must agree with it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileRenderers } from '../../src/exports/render/file-renderers.ts'
import { framings } from '../../src/exports/render/framing.ts'
import {
  compressionNames,
  fileFormatNames,
  fileFormats,
  formatOptions,
  mediaTypeOf,
  mediaTypes,
  streamedForms,
} from '../../src/formats/file-formats.ts'

test('the database accepts exactly the declared formats, compressions and options', () => {
  const schema = readFileSync(join(import.meta.dirname, '../../src/db/schema.sql'), 'utf8')
  const table = /create table (?:grandlivre\.)?exports \([\s\S]*?\n\);/i.exec(schema)?.[0] ?? ''
  const declared = { format: fileFormatNames, compression: compressionNames, ...formatOptions }
  for (const [column, values] of Object.entries(declared)) {
    const check = new RegExp(`check \\(+${column}[^\\n]*`, 'i').exec(table)?.[0] ?? ''
    expect([...check.matchAll(/'([\w-]+)'/g)].map((match) => match[1]).toSorted()).toEqual(values.toSorted())
  }
})

test('each format has a renderer, and each streamed format its framing', () => {
  expect(Object.keys(fileRenderers).toSorted()).toEqual(fileFormatNames.toSorted())
  expect(Object.keys(framings).toSorted()).toEqual(streamedForms.toSorted())
  expect(mediaTypes).toEqual({
    json: 'application/json',
    ndjson: 'application/x-ndjson',
    ledgers: 'application/vnd.grandlivre.ledgers',
  })
  expect(framings.ndjson.terminator).toBe('\n')
})

test('a file is served with the media type that its file extension names', () => {
  for (const { ending, mediaType } of Object.values(fileFormats)) {
    expect(ending).toMatch(/^[a-z0-9]+$/)
    expect(mediaTypeOf(`exports/1/x.${ending}`)).toBe(mediaType)
    expect(mediaTypeOf(`exports/1/x.${ending}.gz`)).toBe('application/gzip')
    expect(mediaTypeOf(`exports/1/x.${ending}.zst`)).toBe('application/zstd')
  }
  expect(new Set(Object.values(fileFormats).map(({ ending }) => ending)).size).toBe(fileFormatNames.length)
  const others = ['x.tra.part', 'x', 'tra', 'json', 'x.gz', 'x.exe.zst', 'x.tra.gz.gz']
  expect(others.map(mediaTypeOf)).toEqual(others.map(() => undefined))
})
