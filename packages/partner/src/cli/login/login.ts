/** `grandlivre login`: checks an access and keeps it in the login file. */

import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { command, type Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { checkedBaseUrl } from '../../client/requests.ts'
import {
  type Access,
  defaultProfile,
  inGivenWords,
  isOnThisMachine,
  loginFile,
  readProfiles,
  variablesSet,
  writeAccess,
} from '../access.ts'
import type { Call } from '../command.ts'
import { localFailure } from '../exit-codes.ts'
import { factsOf, identify } from './identity.ts'

const options = {
  from: { value: 'file', help: 'take them from a credentials.json, such as the demo writes' },
  firm: { help: 'with --from: the token of the firm, which opens all its folders' },
  url: { value: 'address', help: 'https://host' },
} as const

const replace = { help: 'take the place of another access that the profile has' } as const

type Login = Given<unknown, typeof options>

export const login = command({
  name: 'login',
  summary: 'check an access and keep it for the other commands',
  about: `Asks for the address of the service, the access token and the partner secret,
checks them, and keeps them in a file that only you can read. The environment
(GRANDLIVRE_URL, GRANDLIVRE_TOKEN, GRANDLIVRE_SECRET) wins over this file.

Token and secret are never options, which other users of this machine could
see: a script pipes the answers, one a line.

One file keeps several accesses, each under the name that --profile gives it:
those of several firms, say. Without --profile it is the profile default.`,
  options: { ...options, replace },
  examples: [
    'grandlivre login --url https://ledger.example.com',
    'grandlivre login --profile paris --url https://ledger.example.com',
  ],
  run: runLogin,
})

async function runLogin(
  call: Call,
  { replace: replaces, ...given }: Login & { replace?: true },
): Promise<void> {
  const { terminal, env, json, profile = defaultProfile } = call
  const access = await accessFrom(call, given)
  const kept = readProfiles(loginFile(env)).get(profile)
  // The demo writes new credentials each time that its data is made again.
  const isOfDemo =
    kept && given.from !== undefined && isOnThisMachine(kept.baseUrl) && kept.baseUrl === access.baseUrl
  const isLost = kept && !isOfDemo && !isDeepStrictEqual(tokenOf(kept), tokenOf(access))
  if (isLost && !replaces)
    throw localFailure(`The profile ${profile} holds another access, to ${kept.baseUrl}`, [
      'Keep this one beside it with --profile <name>, or give --replace.',
    ])
  const identity = await identify(call, access)
  const path = await writeAccess(env, access, profile)
  if (json) terminal.json({ ...identity, file: path })
  else {
    terminal.print(`Service: ${identity.baseUrl}`)
    for (const [name, text] of Object.entries(factsOf(identity)))
      terminal.print(`${name[0]!.toUpperCase()}${`${name.slice(1)}:`.padEnd(8)}${text}`)
    terminal.print(`Kept in ${path}${call.profile === undefined ? '' : `, profile ${profile}`}`)
  }
  const set = variablesSet(env)
  if (set.length > 0 && call.profile === undefined)
    terminal.note(
      `${set.join(', ')} of this environment win${set.length > 1 ? '' : 's'} over the file: unset to use it.`,
    )
}

const tokenOf = ({ baseUrl, token }: Access) => [baseUrl, token]

async function accessFrom({ society, terminal, signal }: Call, { from, firm, url }: Login): Promise<Access> {
  if (from !== undefined && url !== undefined)
    throw new UsageError('--from holds everything: leave out --url')
  if (from !== undefined) return readCredentials(from, society, firm)
  if (firm) throw new UsageError('--firm chooses a token of --from: without it, the answer says which')
  const baseUrl = url ?? (await answerTo('Address of the service (https://...):'))
  try {
    checkedBaseUrl(baseUrl)
  } catch (error) {
    throw inGivenWords(error)
  }
  const token = await answerTo('Access token (not shown):', true)
  const secret = await answerTo('Partner secret (not shown):', true)
  return { baseUrl, token, secret, ...(society === undefined ? {} : { society }) }

  async function answerTo(question: string, hidden = false): Promise<string> {
    const answer = await terminal.ask(question, { hidden, signal })
    if (answer === '') throw new UsageError(`No answer to "${question}"`)
    return answer
  }
}

/** The credentials that the service writes for its demo folder. A society needs the token of the firm. */
async function readCredentials(
  path: string,
  society: string | undefined,
  isOfFirm = society !== undefined,
): Promise<Access & { from: string }> {
  const text = await readFile(path, 'utf8').catch((cause: Error) => {
    throw localFailure(`--from: ${path} cannot be read: ${cause.message}`, undefined, { cause })
  })
  const { baseUrl, companyToken, firmToken, thirdPartySecret } = parse(text, path)
  const token = isOfFirm ? firmToken : companyToken
  for (const [name, value] of Object.entries({
    baseUrl,
    [isOfFirm ? 'firmToken' : 'companyToken']: token,
    thirdPartySecret,
  }))
    if (typeof value !== 'string') throw localFailure(`--from: ${path} has no text in ${name}`)
  return {
    baseUrl: baseUrl as string,
    token: token as string,
    secret: thirdPartySecret as string,
    from: path,
    ...(society === undefined ? {} : { society }),
  }
}

function parse(text: string, path: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Named below.
  }
  throw localFailure(`--from: ${path} is not a JSON object`)
}
