import { describe, expect, test } from 'vitest'
import type { TokenGroup } from '../../src/auth/callers.sql.ts'
import {
  authorize,
  folderOf,
  knownCaller,
  namesDisagree,
  type Principal,
  readCredentials,
} from '../../src/auth/principal.ts'
import { AppError } from '../../src/errors.ts'

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof AppError) return error.code
    throw error
  }
  return 'no error'
}

const credentials = { token: 'glv_api_x', secret: 's' }
const company: Principal = {
  schemaId: '1',
  thirdPartyId: '3',
  kind: 'partner',
  tokenId: '4',
  level: 'api',
  firmId: '2',
  folderId: '5',
  groups: null,
}
const facts = { ...company, disconnectedReason: null, underMaintenance: false }
const firm: Principal = { ...company, level: 'firm', folderId: null }

describe('the headers', () => {
  test.each([
    [undefined, 's', 'ERR-INVALID-AUTH-HEADER'],
    ['', 's', 'ERR-INVALID-AUTH-HEADER'],
    ['Bearer', 's', 'ERR-INVALID-AUTH-HEADER'],
    ['Bearer ', 's', 'ERR-INVALID-AUTH-HEADER'],
    ['Basic dXNlcjpwYXNz', 's', 'ERR-INVALID-AUTH-HEADER'],
    ['Bearer a b', 's', 'ERR-INVALID-AUTH-HEADER'],
    ['Bearer a, Bearer b', 's', 'ERR-INVALID-AUTH-HEADER'],
    ['glv_api_x', 's', 'ERR-INVALID-AUTH-HEADER'],
    [undefined, undefined, 'ERR-INVALID-AUTH-HEADER'],
    ['Bearer glv_api_x', undefined, 'ERR-SECRET-HEADER-NOT-SET'],
    ['Bearer glv_api_x', '', 'ERR-SECRET-HEADER-NOT-SET'],
    ['Bearer glv_api_x', '  ', 'ERR-SECRET-HEADER-NOT-SET'],
    ['Bearer glv_api_x', 's', 'no error'],
    ['bearer  glv_api_x', 's', 'no error'],
  ])('Authorization %j with secret %j: %s', (authorization, secret, code) => {
    expect(codeOf(() => readCredentials(authorization, secret))).toBe(code)
  })

  test('the token is the text after Bearer', () => {
    expect(readCredentials('Bearer glv_api_x', 's')).toEqual(credentials)
  })
})

describe('the order of the checks', () => {
  const everythingWrong = { ...facts, disconnectedReason: 'unpaid', underMaintenance: true }

  test('an unknown secret is reported before an unknown token', () => {
    expect(codeOf(() => knownCaller(credentials, undefined))).toBe('ERR-INVALID-SECRET')
  })

  test.each([
    ['glv_api_x', 'ERR-API-TOKEN-NOT-FOUND'],
    ['glv_firm_x', 'ERR-FIRM-TOKEN-NOT-FOUND'],
    ['anything', 'ERR-API-TOKEN-NOT-FOUND'],
  ])('an unknown token %s is reported before a disconnection: %s', (token, code) => {
    const caller = { ...everythingWrong, tokenId: null }
    expect(codeOf(() => knownCaller({ token }, caller))).toBe(code)
  })

  test('a disconnection, with its reason, is reported before a wrong level', () => {
    expect(() => authorize(everythingWrong, { levels: ['firm'], groups: [] })).toThrow('unpaid')
    expect(codeOf(() => authorize(everythingWrong, { levels: ['firm'], groups: [] }))).toBe(
      'ERR-THIRD-PARTY-DISCONNECTED',
    )
  })

  test('a wrong level is reported before maintenance', () => {
    expect(
      codeOf(() => authorize({ ...facts, underMaintenance: true }, { levels: ['firm'], groups: [] })),
    ).toBe('ERR-FORBIDDEN-ROUTE')
    expect(
      codeOf(() => authorize({ ...facts, underMaintenance: true }, { levels: ['api'], groups: [] })),
    ).toBe('ERR-API-UNDER-MAINTENANCE')
  })

  test('missing groups are reported after the level and before maintenance; null means all groups', () => {
    const withGroups = (groups: TokenGroup[] | null) => ({
      ...facts,
      underMaintenance: true,
      groups,
    })
    const route = { levels: ['api'], groups: ['movements', 'resources'] } as const
    expect(codeOf(() => authorize(withGroups(['resources']), route))).toBe('ERR-FORBIDDEN-ROUTE')
    expect(() => authorize(withGroups(['resources']), route)).toThrow('without the group movements,')
    expect(() => authorize(withGroups(['webhooks']), route)).toThrow('the groups movements and resources,')
    expect(() => authorize(withGroups(['webhooks']), { ...route, levels: ['firm'] })).toThrow('this level')
    for (const groups of [null, [...route.groups]])
      expect(codeOf(() => authorize(withGroups(groups), route))).toBe('ERR-API-UNDER-MAINTENANCE')
  })

  test('a caller who passes all checks becomes a principal', () => {
    expect(authorize(facts, { levels: ['api', 'firm'], groups: [] })).toEqual(company)
  })
})

describe('the folder of a request', () => {
  test.each<[string, Principal, string | undefined, string | undefined, string | undefined]>([
    ['a company token means its own folder', company, undefined, undefined, '5'],
    ['a company token may name it in the header', company, '5', undefined, '5'],
    ['a company token may name it with leading zeros', company, '005', undefined, '5'],
    ['an empty header counts as none', company, ' ', undefined, '5'],
    ['a company token may name it in the parameter', company, undefined, '5', '5'],
    ['a company token may name it in both', company, '5', '5', '5'],
    ['another folder is forbidden', company, '6', undefined, 'ERR-FORBIDDEN-ACCESS'],
    ['another folder in the parameter is forbidden', company, undefined, '6', 'ERR-FORBIDDEN-ACCESS'],
    ['another folder is forbidden whatever the parameter says', company, '6', '5', 'ERR-FORBIDDEN-ACCESS'],
    ['an invalid id counts as another folder', company, 'abc', undefined, 'ERR-FORBIDDEN-ACCESS'],
    ['a malformed parameter is left to validation', company, undefined, 'malformed', '5'],
    ['a firm token must name a folder', firm, undefined, undefined, 'ERR-SOCIETY-ID-REQUIRED'],
    ['an empty header names no folder', firm, '', undefined, 'ERR-SOCIETY-ID-REQUIRED'],
    ['a firm token may name it in the header', firm, '7', undefined, '7'],
    ['a firm token may name it in the parameter', firm, undefined, '7', '7'],
    ['a firm token may name it in both', firm, '7', '7', '7'],
    ['the largest possible id', firm, '9007199254740991', undefined, '9007199254740991'],
    ['a larger id is left to the database', firm, '9007199254740992', undefined, '9007199254740992'],
    ['an invalid id is not found', firm, 'abc', undefined, 'ERR-FOLDER-NOT-FOUND'],
    ['an id of 17 digits is not found', firm, '7'.padStart(17, '0'), undefined, 'ERR-FOLDER-NOT-FOUND'],
    ['16 digits with leading zeros are an id', firm, '7'.padStart(16, '0'), undefined, '7'],
    ['a malformed parameter is left to validation', firm, undefined, 'malformed', undefined],
    ['an invalid id in the header is not found', firm, 'abc', 'malformed', 'ERR-FOLDER-NOT-FOUND'],
  ])('%s', (_sentence, principal, societyId, accountingFolderId, expected) => {
    const names = { societyId, accountingFolderId }
    if (expected?.startsWith('ERR-')) expect(codeOf(() => folderOf(principal, names))).toBe(expected)
    else expect(folderOf(principal, names)).toBe(expected)
  })

  test.each<[string | undefined, string | undefined, boolean]>([
    ['5', '6', true],
    ['5', '5', false],
    [' 005 ', '5', false],
    ['5', undefined, false],
    [' ', '5', false],
    [undefined, '5', false],
    ['5', 'malformed', false],
  ])('the header %j and the parameter %j disagree: %s', (societyId, accountingFolderId, disagree) => {
    expect(namesDisagree({ societyId, accountingFolderId })).toBe(disagree)
  })
})
