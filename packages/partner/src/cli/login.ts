/**
 * `grandlivre login` checks an access and keeps it in the login file. `profiles` lists or removes the kept accesses.
 */
import { readFile } from 'node:fs/promises'
import { command, type Given } from '../../../terminal/src/command.ts'
import { UsageError } from '../../../terminal/src/command-errors.ts'
import { table } from '../../../terminal/src/table.ts'
import { checkedBaseUrl } from '../client/requests.ts'
import {
  type Access,
  defaultProfile,
  inGivenWords,
  isOnThisMachine,
  loginFile,
  profileKind,
  readProfiles,
  removeAccess,
  variablesSet,
  writeAccess,
} from './access.ts'
import type { CommandCall } from './command.ts'
import { localFailure } from './exit-codes.ts'
import { factsOf, identify } from './identity.ts'

const options = {
  from: { value: 'file', help: 'read the access from a credentials.json, such as the demo writes' },
  firm: { help: 'with --from: take the token of the firm, which opens all its folders' },
  url: { value: 'address', help: 'https://host' },
  replace: { help: 'replace another access that the profile has' },
} as const

type Login = Given<unknown, typeof options>

export const login = command({
  name: 'login',
  summary: 'check an access and keep it for the other commands',
  about: `Asks for the address of the service, the access token and the partner secret,
checks them, and keeps them in a file that only you can read. The environment
(GRANDLIVRE_URL, GRANDLIVRE_TOKEN, GRANDLIVRE_SECRET) wins over this file.

No option takes the token or the secret: other users of this machine could see
them. A script pipes the answers, one a line.

The file can keep several accesses, such as those of several firms, each under
the name that --profile gives. Without --profile the name is default.`,
  options,
  examples: [
    'grandlivre login --url https://ledger.example.com',
    'grandlivre login --profile paris --url https://ledger.example.com',
  ],
  run: runLogin,
})

async function runLogin(call: CommandCall, given: Login): Promise<void> {
  const { terminal, env, json, profile = defaultProfile } = call
  const access = await accessFrom(call, given)
  const kept = readProfiles(loginFile(env)).get(profile)
  const isSameService = kept?.baseUrl === access.baseUrl
  // The demo writes new credentials whenever its data is made again, so replacing the old ones loses nothing.
  const isOfDemo = isSameService && given.from !== undefined && isOnThisMachine(access.baseUrl)
  const isLost = kept && !isOfDemo && !(isSameService && kept.token === access.token)
  if (isLost && !given.replace)
    throw localFailure(`The profile ${profile} holds another access, to ${kept.baseUrl}`, [
      'Keep the new one beside it with --profile <name>, or give --replace.',
    ])
  const identity = await identify(call, access)
  const path = await writeAccess(env, access, profile)
  if (json) terminal.json({ ...identity, file: path })
  else {
    const facts = Object.entries(factsOf(identity)).map(
      ([name, text]) => `${name[0]!.toUpperCase()}${`${name.slice(1)}:`.padEnd(8)}${text}`,
    )
    const named = call.profile === undefined ? '' : `, profile ${profile}`
    terminal.print([`Service: ${identity.baseUrl}`, ...facts, `Kept in ${path}${named}`])
  }
  const set = variablesSet(env)
  if (set.length > 0 && call.profile === undefined)
    terminal.note(
      `${set.join(', ')} of this environment win${set.length > 1 ? '' : 's'} over the file: unset to use it.`,
    )
}

async function accessFrom(
  { society, terminal, signal }: CommandCall,
  { from, firm, url }: Login,
): Promise<Access & { from?: string }> {
  if (from !== undefined && url !== undefined)
    throw new UsageError('--from names a file that has the address: leave out --url')
  if (from !== undefined) return readCredentials(from, society, firm)
  if (firm) throw new UsageError('--firm chooses a token of --from: give --from, too')
  const baseUrl = url ?? (await answerTo('Address of the service (https://...):'))
  try {
    checkedBaseUrl(baseUrl)
  } catch (error) {
    throw inGivenWords(error)
  }
  const token = await answerTo('Access token (not shown):', true)
  const secret = await answerTo('Partner secret (not shown):', true)
  return { baseUrl, token, secret, society }

  async function answerTo(question: string, hidden = false): Promise<string> {
    const answer = await terminal.ask(question, { hidden, signal })
    if (answer === '') throw new UsageError(`No answer to "${question}"`)
    return answer
  }
}

/** Reads the credentials that the demo writes. If a society is given, takes the token of the firm. */
async function readCredentials(path: string, society?: string, isOfFirm = society !== undefined) {
  const text = await readFile(path, 'utf8').catch((cause: Error) => {
    throw localFailure(`--from: ${path} cannot be read: ${cause.message}`, undefined, { cause })
  })
  let credentials: unknown
  try {
    credentials = JSON.parse(text)
  } catch {
    // A text that is not JSON is refused below, with the name of the file.
  }
  if (typeof credentials !== 'object' || credentials === null)
    throw localFailure(`--from: ${path} is not a JSON object`)
  const textIn = (name: string) => {
    const value = (credentials as Record<string, unknown>)[name]
    if (typeof value !== 'string') throw localFailure(`--from: ${path} has no text in ${name}`)
    return value
  }
  return {
    baseUrl: textIn('baseUrl'),
    token: textIn(isOfFirm ? 'firmToken' : 'companyToken'),
    secret: textIn('thirdPartySecret'),
    ...{ society, from: path },
  }
}

const list = command({
  name: 'profiles',
  summary: 'list the accesses that login kept',
  about: `Lists the profiles of the file that grandlivre login wrote: name, address, level
of the token, and folder. Tokens and secrets are not shown.`,
  async run({ terminal, env, json }: CommandCall) {
    const profiles = [...readProfiles(loginFile(env))].map(([profile, { baseUrl, token, society }]) => ({
      profile,
      baseUrl,
      level: token.startsWith('glv_firm_') ? 'firm' : 'company',
      society: society ?? null,
    }))
    if (json) for (const profile of profiles) terminal.json(profile)
    else {
      const lines = profiles.map((profile) => Object.values(profile).map((cell) => cell ?? ''))
      terminal.print(table(['profile', 'address', 'level', 'folder'], lines))
    }
    const set = variablesSet(env)
    if (set.length > 0) terminal.note(`The environment wins over the default profile: ${set.join(', ')}.`)
  },
})

const remove = command({
  name: 'profiles remove',
  summary: 'remove one of the accesses that login kept',
  about: `Removes a profile from the file that grandlivre login wrote. If no other profile
is left, removes the file. The token stays valid: ask the operators of the
service to revoke it.`,
  arguments: { name: { is: profileKind, help: 'the profile; default after a login without --profile' } },
  async run({ terminal, env, json }: CommandCall, { name: profile }) {
    const file = await removeAccess(env, profile)
    if (json) terminal.json({ file, profile })
    else terminal.print(`Removed profile ${profile} from ${file}`)
  },
})

export const profiles = [list, remove]
