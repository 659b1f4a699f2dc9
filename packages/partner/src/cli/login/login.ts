/** `grandlivre login`: checks an access and keeps it in the login file. */
import { readFile } from 'node:fs/promises'
import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import { type Access, variablesSet, writeAccess } from '../access.ts'
import { type Call, type Command, textOf } from '../command.ts'
import { describe, identify } from './identity.ts'

export const login: Command = {
  name: 'login',
  summary: 'check an access and keep it for the other commands',
  usage: `Usage: grandlivre login [options]

Asks for the address of the service, the access token and the partner secret,
checks them, and keeps them in a file that only you can read. The environment
(GRANDLIVRE_URL, GRANDLIVRE_TOKEN, GRANDLIVRE_SECRET) wins over this file.

Options:
  --from <file>     take them from a credentials.json, such as the demo writes
  --url <address>   https://host
  --token <token>   glv_api_... or glv_firm_...
  --secret <text>   the partner secret

Other users of this machine can see the options of a running command. Leave out
--token and --secret to be asked for them; a script can pipe the answers, one a
line.

Example:
  grandlivre login --url https://ledger.example.com`,
  options: {
    from: { type: 'string' },
    url: { type: 'string' },
    token: { type: 'string' },
    secret: { type: 'string' },
  },
  run: runLogin,
}

async function runLogin(call: Call): Promise<void> {
  const { terminal, env, json, signal } = call
  const access = await accessFrom(call)
  const identity = await identify(access, signal)
  const path = await writeAccess(env, access)
  if (json) terminal.json({ ...identity, file: path })
  else {
    for (const line of describe(identity)) terminal.print(line)
    terminal.print(`Kept in ${path}`)
  }
  const set = variablesSet(env)
  if (set.length > 0)
    terminal.note(
      `${set.join(', ')} of this environment win${set.length > 1 ? '' : 's'} over the file: unset to use it.`,
    )
}

async function accessFrom({ values, terminal, signal }: Call): Promise<Access> {
  const society = textOf(values, 'society')
  const from = textOf(values, 'from')
  const named = ['url', 'token', 'secret'].filter((name) => values[name] !== undefined)
  if (from !== undefined && named.length > 0)
    throw new UsageError(`--from holds everything: leave out --${named.join(' and --')}`)
  if (from !== undefined) return readCredentials(from, society)
  const baseUrl = textOf(values, 'url') ?? (await answerTo('Address of the service (https://...):'))
  const token = textOf(values, 'token') ?? (await answerTo('Access token (not shown):', true))
  const secret = textOf(values, 'secret') ?? (await answerTo('Partner secret (not shown):', true))
  return { baseUrl, token, secret, ...(society === undefined ? {} : { society }) }

  async function answerTo(question: string, hidden = false): Promise<string> {
    const answer = await terminal.ask(question, { hidden, signal })
    if (answer === '') throw new UsageError(`No answer to "${question}"`)
    return answer
  }
}

/** The credentials that the service writes for its demo folder. A society needs the token of the firm. */
async function readCredentials(path: string, society: string | undefined): Promise<Access> {
  const text = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new Failure(`--from: ${path} cannot be read: ${cause.message}`, undefined, { cause })
  })
  const { baseUrl, companyToken, firmToken, thirdPartySecret } = parse(text, path)
  const token = society === undefined ? companyToken : firmToken
  for (const [name, value] of Object.entries({
    baseUrl,
    [society ? 'firmToken' : 'companyToken']: token,
    thirdPartySecret,
  }))
    if (typeof value !== 'string') throw new Failure(`--from: ${path} has no text in ${name}`)
  return {
    baseUrl: baseUrl as string,
    token: token as string,
    secret: thirdPartySecret as string,
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
  throw new Failure(`--from: ${path} is not a JSON object`)
}
