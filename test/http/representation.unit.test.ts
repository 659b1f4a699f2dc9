/** Which representation a request gets, and how ETags name it. */
import { expect, test } from 'vitest'
import {
  etagOf,
  holdsEtag,
  namesSelection,
  representationFor,
  wantsSha256,
} from '../../src/http/representation.ts'
import { attachment } from '../../src/store/attachment.ts'

function representationOf(accept?: string, acceptEncoding?: string) {
  const headers: Record<string, string | undefined> = { accept, 'accept-encoding': acceptEncoding }
  return representationFor({ req: { header: (name?: string) => headers[name!] } as never })
}

test.each([
  [undefined, undefined, 'json', 'identity'],
  ['', undefined, 'json', 'identity'],
  ['*/*', '*', 'json', 'zstd'],
  ['application/json', 'gzip', 'json', 'gzip'],
  ['APPLICATION/X-NDJSON', 'GZIP', 'ndjson', 'gzip'],
  ['application/json; charset=utf-8', undefined, 'json', 'identity'],
  ['application/x-ndjson;charset="UTF-8";q=0.9, application/json;q=0.1', undefined, 'ndjson', 'identity'],
  ['application/json;charset=iso-8859-1, application/x-ndjson;q=0.1', undefined, 'ndjson', 'identity'],
  ['application/x-ndjson, application/json', undefined, 'ndjson', 'identity'],
  ['application/json, application/x-ndjson', undefined, 'json', 'identity'],
  ['application/x-ndjson;q=0.9, application/json;q=0.8', undefined, 'ndjson', 'identity'],
  ['application/json;q=0, */*', undefined, 'ndjson', 'identity'],
  ['text/html, */*;q=0.1', 'deflate, gzip;q=0.5, br', 'json', 'gzip'],
  ['application/*', 'gzip, zstd', 'json', 'zstd'],
  ['*/*', 'gzip;q=1.0, zstd;q=0.9', 'json', 'gzip'],
  ['*/*', 'gzip;q=0', 'json', 'identity'],
  ['*/*', 'br, deflate', 'json', 'identity'],
  ['*/*', 'identity;q=0, br', 'json', 'identity'],
  ['*/*', 'identity, gzip;q=0.5', 'json', 'identity'],
  ['*/*', '', 'json', 'identity'],
])('Accept %j with Accept-Encoding %j gives %s, %s', (accept, acceptEncoding, form, encoding) => {
  expect(representationOf(accept, acceptEncoding)).toEqual({ form, encoding })
})

test.each([
  'text/html',
  'application/xml, text/*',
  'application/json;q=0',
  '*/*;q=0',
  'application/json;charset=iso-8859-1',
  'application/json;charset=utf-8;q=0',
])('Accept %j is refused', (accept) => {
  expect(() => representationOf(accept)).toThrow('This route serves')
})

test('an ETag is strong, and differs for each media type, encoding and position', () => {
  const tags = (['json', 'ndjson'] as const).flatMap((form) =>
    (['identity', 'gzip', 'zstd'] as const).flatMap((encoding) =>
      [[], ['after-1'], ['after-12']].map((parts) => etagOf('tag', { form, encoding }, parts)),
    ),
  )
  expect(new Set(tags).size).toBe(18)
  for (const tag of tags) expect(tag).toMatch(/^"[!#-~]+"$/)
})

test('If-None-Match needs the exact ETag; If-Match accepts any ETag of the same selection', () => {
  const tag = etagOf('tag', { form: 'json', encoding: 'gzip' }, [])
  const other = etagOf('tag', { form: 'ndjson', encoding: 'identity' }, ['after-7', 'entries-x'])
  const foreign = etagOf('tagg', { form: 'json', encoding: 'gzip' }, [])
  for (const header of [tag, ` ${tag} `, `W/${tag}`, `${other},${tag}`, `"a,b" , ${tag}`, '*', ' * '])
    expect([holdsEtag(header, tag), namesSelection(header, 'tag')], header).toEqual([true, true])
  expect([holdsEtag(other, tag), namesSelection(other, 'tag')]).toEqual([false, true])
  for (const header of [foreign, '', '""', 'tag', '"*"', `"${tag.slice(2)}`, '"tag-x.json"'])
    expect([holdsEtag(header, tag), namesSelection(header, 'tag')], header).toEqual([false, false])
  expect(holdsEtag(undefined, tag)).toBe(false)
})

test.each([
  ['plain_1.json', 'attachment; filename="plain_1.json"'],
  [
    'Été & Œuf.json',
    `attachment; filename="Ete_uf.json"; filename*=UTF-8''%C3%89t%C3%A9%20%26%20%C5%92uf.json`,
  ],
  [`"a'b\\c(1)*.json`, `attachment; filename="_a_b_c_1_.json"; filename*=UTF-8''%22a%27b%5Cc%281%29%2A.json`],
  ['a\r\nX: b.json', `attachment; filename="a_X_b.json"; filename*=UTF-8''a%0D%0AX%3A%20b.json`],
  ['😀.json', `attachment; filename="_.json"; filename*=UTF-8''%F0%9F%98%80.json`],
])('Content-Disposition can name the file %j', (name, header) => {
  expect(attachment(name)).toBe(header)
})

test('only a preference of 0 for sha-256 omits the digest', () => {
  for (const header of [
    'sha-256=0',
    'sha-256=00',
    ' sha-512=10 ,\tsha-256=0 ',
    'sha-256=0;note="x", sha-512=3',
    'sha-256=0;note="a, b"',
    'sha-256=5, sha-256=0',
    'sha-512="a, b", unixsum, md5=(1 2);q=1, sha-256=0',
  ])
    expect(wantsSha256(header), header).toBe(false)
  for (const header of [
    undefined,
    '',
    'sha-256',
    'sha-256=',
    'sha-256=1',
    'sha-256=10',
    'sha-256=0, sha-256=5',
    'sha-512=0',
    'x-sha-256=0',
    'sha-256 = 0',
    'sha-256=0.5',
    'sha-256=?0',
    'sha-256="0"',
    'SHA-256=0',
    'sha-256=-1',
    'sha-256=11',
    'sha-256=(0)',
    // Of two equal members of a dictionary the last one counts; text inside a string is not a member.
    'sha-256=0, sha-256',
    'sha-512="a, sha-256=0, b"',
    'sha-256=5;note="a, sha-256=0,"',
    // One malformed member makes the whole header void.
    'sha-512=, sha-256=0',
    'sha-256=0,',
    'sha-256=0; ',
    'sha-256=0, é',
  ])
    expect(wantsSha256(header), header).toBe(true)
})
