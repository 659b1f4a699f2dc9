/** Answers that the service would not give. Each gets one error that names what is wrong, without words of the runtime. */
import { beforeAll, expect, test } from 'vitest'
import { Grandlivre } from '../../src/client/grandlivre.ts'
import { grandlivre, writeCredentials } from '../support/cli/command-line.ts'
import { proxiedStage } from '../support/cli/proxied-stage.ts'

const { its, at } = proxiedStage()
beforeAll(() => writeCredentials(at('credentials.json'), its.company))

const runtimeWords =
  /Cannot |undefined|NaN|BigInt|argument must|Invalid (time|URL|Date)|is not (a function|iterable|an object)|mismatch|Unexpected token/

const pull = ['pull', '--exercice', 'N', '--out', at('year.ndjson')]
const pullAll = ['pull', '--all', '--format', 'json', '--out', at('all.json')]
const whoAmI = ['login', '--from', at('credentials.json')]
const listen = ['listen', 'http://localhost:9/hook', '--count', '1']
const doctor = ['webhook', 'doctor', '1000']
const subscription = { id: 1000, postUrl: 'http://localhost/', onEvents: ['ledger'], accountingFolderId: [] }
const attempt = { at: 0, status: 500, milliseconds: 1, answer: null, error: null }
const ping = { ...attempt, receiverDate: null, disabled: null, fault: null }
const known = { '/webhook/1000': subscription, '/ping': ping }
const digest = '0'.repeat(64)
const done = {
  ...{ id: 'export_1', status: 'DONE', rows: 1 },
  ...{ size: 1, fileSha256: digest, contentSize: 1, sha256: digest },
}
const sync = ['sync', '--to', at('copy.sqlite')]

/** The message for an answer to this request. */
const not = (request: string, what: string) => `${request} was not answered as the service does: ${what}`

/** Command, answers by the ends of paths, and what the error says. */
const cases: [string[], Record<string, unknown>, string][] = [
  // No database can store these names.
  ...['a\0b', 'a\ud800b'].map((name): [string[], Record<string, unknown>, string] => [
    sync,
    { '/mad/ledgers': [{ society: '1', firm: { id: '1', name }, name: 'x', reference: null, cursor: 'c' }] },
    not('GET /mad/ledgers', 'answer[0].firm.name is no text'),
  ]),
  [
    sync,
    {
      '/mad/ledgers': [
        { society: '1', firm: { id: '1', name: 'x' }, name: 'x', reference: null, cursor: 'c' },
      ],
    },
    not('GET /mad/ledgers', 'answer[0].employees is no boolean'),
  ],
  [whoAmI, { '/key/info': {} }, not('GET /key/info', 'answer.target is no object')],
  [whoAmI, { '/key/info': { target: { type: 'api', societyId: 'x' } } }, 'answer.target.societyId is no id'],
  [
    whoAmI,
    { '/key/info': { target: { type: 'api', societyId: 1 }, groups: 5, expiresAt: {} } },
    'The header x-rate-limit-total did not come',
  ],
  [whoAmI, { '/society': {} }, not('GET /society', 'answer is no list')],
  [whoAmI, { '/society': [{ id: '1', name: 5, reference: null }] }, 'answer[0].name is no text'],
  [pull, { '/society': [null] }, 'answer[0] is no object'],
  [pull, { '/mad/exercices': null }, not('GET /mad/exercices', 'answer is no list')],
  [pull, { '/mad/exercices': [{ producerId: '1', name: 'N' }] }, 'answer[0].period is no object'],
  [pull, { '/blocks': [{ from: '0', to: '9', rows: 1, sha256: ['x'] }] }, 'answer[0].sha256 is no SHA-256'],
  [pull, { '/blocks': [{ from: 'x', to: '9', rows: 1, sha256: digest }] }, 'answer[0].from is no id'],
  [pullAll, { '/mad/all': null }, not('GET /mad/all', 'answer is no object')],
  [pullAll, { '/mad/all': done }, 'The status of export_1 is not that of a file: status.url is no address'],
  [pullAll, { '/mad/all': { ...done, url: 'x' } }, 'status.url is no address'],
  [pullAll, { '/mad/all': { ...done, url: 'http://x', size: '1' } }, 'status.size is no number'],
  [pullAll, { '/mad/all': { ...done, url: 'http://x' } }, 'status.totals is no object'],
  [['webhook', 'list'], { '/webhook': 'x' }, not('GET /webhook', 'answer is no list')],
  [['webhook', 'list'], { '/webhook': [{ id: 1, postUrl: null }] }, 'answer[0].onEvents is no list'],
  [
    doctor,
    { '/webhook/1000': { ...subscription, postUrl: 'http://[' } },
    not('GET /webhook/1000', 'answer.postUrl is no address'),
  ],
  [doctor, { ...known, '/ping': {} }, not('POST /webhook/1000/ping', 'answer.at is no number')],
  [doctor, { ...known, '/ping': { ...ping, disabled: {} } }, 'answer.disabled.since is no number'],
  [doctor, { ...known, '/ping': { ...ping, at: 1e300 } }, 'answer.at is no number'],
  [
    doctor,
    { ...known, '/deliveries': [{ id: '1', state: 'pending' }] },
    'answer[0].nextAttemptAt is no number',
  ],
  [listen, { '/openapi.json': {} }, not('GET /openapi.json', 'answer.components is no object')],
  [listen, { '/webhook': { id: 5 } }, not('POST /webhook', 'answer.postUrl is no address')],
  [listen, { '/events': [{ sequence: 'x', event: {} }] }, 'answer[0].sequence is no id'],
  [listen, { '/events': [{ sequence: '1', event: { data: null } }] }, 'answer[0].event.data is no object'],
  [listen, { '/events': [] }, 'The header x-latest-sequence did not come'],
  [
    whoAmI,
    { '/society': { error: { code: 'X', message: 'Refused', details: { issues: [null, 5, {}] } } } },
    'answer is no list',
  ],
]
test.each(cases)(
  'the command %j exits with 5 and names what is wrong with the answers %o',
  async (command, bodies, expected) => {
    its.proxy.fault = (path) => {
      const [asked] = path.split('?')
      const end = Object.keys(bodies).find((each) => asked!.endsWith(each))
      if (end === undefined) return path.includes('/mad/movements?') ? { kind: 'noTrailers' } : undefined
      const headers = { 'Content-Type': 'application/json', ETag: '"1"' }
      return { kind: 'answer', status: 200, headers, body: JSON.stringify(bodies[end]) }
    }
    const { code, error } = await grandlivre(its.company, command)
    expect([code, error]).toEqual([5, expect.stringContaining(expected)])
    expect(error).not.toMatch(runtimeWords)
  },
)

test.each([null, 'x', [], [null, 5, {}], { parameter: 'x' }])(
  'a refusal with the malformed issues %o keeps its message and its exit code',
  async (issues) => {
    const body = JSON.stringify({
      error: { code: 'ERR-VALIDATION', message: 'Refused', details: { issues } },
    })
    its.proxy.fault = () => ({ kind: 'answer', status: 400, body })
    const { code, error } = await grandlivre(its.company, whoAmI)
    expect([code, error]).toEqual([4, expect.stringMatching(/^Refused \(ERR-VALIDATION\)\n/)])
  },
)

test('the error for a malformed first line of changes names the wrong member', async () => {
  const [baseUrl, token, secret] = ['URL', 'TOKEN', 'SECRET'].map(
    (name) => its.company[`GRANDLIVRE_${name}`]!,
  )
  const ledger = new Grandlivre({ baseUrl: baseUrl!, token: token!, secret: secret! })
  const heads: [string, string][] = [
    ['{"cursor":"1","entries":[["x","2"]]}', 'line 1.entries[0].0 is no id'],
    ['{"cursor":"1","entries":[["1"]]}', 'line 1.entries[0].1 is no id'],
    ['{"cursor":1,"entries":[]}', 'line 1.cursor is no text'],
    ['null', 'line 1 is no object'],
    ['<html>', 'line 1.cursor is no text'],
  ]
  for (const [head, wrong] of heads) {
    const headers = { 'Content-Type': 'application/x-ndjson' }
    its.proxy.fault = () => ({ kind: 'answer', status: 200, headers, body: `${head}\n` })
    await expect(ledger.changes('1', { exercice: '11' })).rejects.toMatchObject({
      code: 'UNEXPECTED-ANSWER',
      message: `The changes do not begin as the service writes them: ${wrong}`,
    })
  }
  ledger.close()
})
