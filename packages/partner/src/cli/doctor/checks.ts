/**
 * `grandlivre doctor` checks everything that a command needs, from the address of the service to the lock of a copy.
 */
import { access as checkAccess, constants, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { sizeText } from '../../../../terminal/src/amounts.ts'
import { command } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import { checkService } from '../../sync/run.ts'
import { version } from '../../version.ts'
import type { FoundAccess } from '../access.ts'
import type { CommandCall } from '../command.ts'
import { exitCodeOf, exitCodes, linesBelow, localFailure, objectOf, shownOf } from '../exit-codes.ts'
import { factsOf, type Identity, identify } from '../identity.ts'
import { openAt } from '../sync/copies.ts'
import { differenceText } from './diagnosis.ts'

export const doctor = command({
  name: 'doctor',
  summary: 'check all that the commands need, and name what is wrong',
  about: `Checks the access and where it comes from, whether the service answers at its
address, the token with its groups and its end, its folder, its rate of
requests, the clock of this machine, the disk that files go to (the folder of
--to, or the one you are in), and with --to the copy: whether it is of this
service, and whether another sync holds it.

The exit code is that of the first fault. Checks that depend on what is faulty
are left out.`,
  options: {
    to: { value: 'copy', help: 'a copy that sync keeps: its lock and its place are checked, too' },
  },
  examples: ['grandlivre doctor', 'grandlivre doctor --to firm.sqlite'],
  async run(call: CommandCall, { to }) {
    const { terminal, signal, json } = call
    const checks: Check[] = []
    const errors: unknown[] = []
    for (const [check, find] of Object.entries(finders(call, to))) {
      terminal.progress(`Checking: ${check}`)
      try {
        const message = await find()
        if (message !== undefined)
          checks.push({ check, ok: true, code: null, message, remedy: [], requestId: null })
      } catch (error) {
        signal.throwIfAborted()
        errors.push(error)
        checks.push({ check, ok: false, ...objectOf(error) })
      }
    }
    if (json) terminal.json({ healthy: errors.length === 0, checks: checks.map(shownOf) })
    else terminal.print(checks.flatMap(checkLines))
    const faults = checks.flatMap(({ check, ok }) => (ok ? [] : check))
    if (errors.length > 0)
      throw new Failure(`Not in order: ${faults.join(', ')}`, [], { exitCode: exitCodeOf(errors[0]) })
  },
})

type Check = ReturnType<typeof objectOf> & { check: string; ok: boolean }

/**
 * @returns the checks. Each returns what is in order, throws a fault, or returns undefined if an earlier fault prevents
 *   it
 */
function finders(
  call: CommandCall,
  to: string | undefined,
): Record<string, () => string | undefined | Promise<string | undefined>> {
  let [access, identity, refusal]: [FoundAccess?, Identity?, unknown?] = []
  return {
    package: () => `grandlivre ${version}, Node ${process.versions.node}`,
    access: () => {
      access = call.access()
      return `from ${access.from}`
    },
    service: async () => {
      if (!access) return undefined
      // Only one attempt: the doctor reports a busy service and does not wait for it.
      identity = await identify(call, { ...access, attemptsMax: 1 }).catch((error) => {
        if (exitCodeOf(error) !== exitCodes.refused) throw error
        refusal = error
        return undefined
      })
      return `${access.baseUrl} answers${/^https:/i.test(access.baseUrl) ? ' over TLS' : ', without TLS'}`
    },
    token: () => {
      if (refusal) throw refusal
      return identity && factsOf(identity).token
    },
    folder: () => identity && factsOf(identity).folder,
    rate: () => identity && factsOf(identity).rate,
    clock: () => identity && clockText(identity),
    disk: () => diskText(to === undefined || /^postgres/.test(to) ? '.' : dirname(to)),
    copy: () => (access && to !== undefined ? copyText(call, to) : undefined),
  }
}

function checkLines({ check, ok, message, ...more }: Check): string[] {
  return [
    `${ok ? 'ok   ' : 'FAULT'}  ${check}: ${message}`,
    ...linesBelow(more).map((line) => `       ${line}`),
  ]
}

function clockText({ clockAheadMs }: Identity): string {
  if (clockAheadMs === null) return 'not compared: the service sends no valid Date header'
  const difference = differenceText(clockAheadMs)
  if (difference === undefined) return 'as that of the service'
  throw localFailure(
    `The clock of this machine is ${difference} that of the service`,
    'Let it follow a time server (NTP): a receiver refuses webhooks from 5 minutes on.',
  )
}

/** Enough space for a year of a large folder. */
const leastFreeBytes = 100_000_000

async function diskText(folder: string): Promise<string> {
  await checkAccess(folder, constants.W_OK).catch((cause: Error) => {
    throw localFailure(
      `No file can be written in ${resolve(folder)}: ${cause.message}`,
      'Make the folder, let this user write there, or choose another one.',
      { cause },
    )
  })
  const { bavail, bsize } = await statfs(folder)
  const free = `${sizeText(bavail * bsize)} free in ${resolve(folder)}`
  if (bavail * bsize >= leastFreeBytes) return free
  throw localFailure(`Only ${free}`, 'Make room, or let the files go to another disk.')
}

/** @throws {GrandlivreError} COPY-REFUSED, COPY-LOCKED */
async function copyText(call: CommandCall, to: string): Promise<string> {
  const copy = await openAt(to, { isThere: true, signal: call.signal })
  try {
    checkService(copy, call.ledger())
    const folders = await copy.folders()
    await copy.lock([...new Set(folders.map(({ firm_id }) => firm_id))])
    return `${copy.name} has ${folders.length} folders, and no other process holds it`
  } finally {
    await copy.close()
  }
}
