/** Explains what stopped a pull, in the words of its user, and how to go on. */
import { tmpdir } from 'node:os'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import { GrandlivreError } from '../../client/errors.ts'
import { partOf } from '../../client/files/part-file.ts'
import { localFailure } from '../exit-codes.ts'
import { isOutput } from './to-output.ts'

const diskFull = ['ENOSPC', 'EDQUOT', 'EFBIG']
const notAllowed = ['EACCES', 'EPERM', 'EROFS']

/**
 * @param out a file, or - for standard output @returns the error to throw: a Failure for errors of the disk and for
 *   interruptions; other errors unchanged
 */
export function explained(error: unknown, out: string, signal: AbortSignal): unknown {
  const part = isOutput(out) ? undefined : partOf(out)
  if (signal.aborted) return new Failure('Interrupted', part ? `The same command goes on with ${part}.` : [])
  const fromSystem = error instanceof Failure ? undefined : systemErrorIn(error)
  if (fromSystem === undefined) return inOptions(error)
  const { code, message } = fromSystem
  const failure = (what: string, remedy: string) =>
    localFailure(`${what}: ${message}`, remedy, { cause: error })
  if (part === undefined)
    return failure(
      `The export cannot be kept in ${tmpdir()}`,
      'Make room there, set TMPDIR to another folder, or name a file.',
    )
  if (notAllowed.includes(code!)) return failure(`${part} cannot be written`, 'Choose another --out.')
  return failure(
    `There is no room for ${part}`,
    'Make room and run the same command: it goes on. Or delete the file and its .json, and choose another --out.',
  )
}

/** By parameter: the option that gives it, if their names differ. */
const optionOf: Record<string, string> = {
  ...{ startDate: 'from', endDate: 'to', dateFilter: 'date-filter', classAccount: 'class-account' },
  ...{ idExercice: 'exercice', journalIds: 'journals', 'society-id': 'society' },
}

/** If the service refused parameters, names the options that gave them. */
function inOptions(error: unknown): unknown {
  if (!(error instanceof GrandlivreError) || error.issues.length === 0) return error
  const { code, status, requestId, details } = error
  const issues = [...error.issues]
  const typed = (name: string) => `--${optionOf[name] ?? name}`
  const parameters = new RegExp(Object.keys(optionOf).join('|'), 'g')
  const reasons = issues.map(
    ({ parameter, message }) => `${typed(parameter)}: ${message.replaceAll(parameters, typed)}`,
  )
  const remedy = `Correct ${[...new Set(issues.map(({ parameter }) => typed(parameter)))].join(' and ')}.`
  const more = { status, requestId, issues, details, remedy, cause: error }
  return new GrandlivreError(code, reasons.join('; '), more)
}

/** Finds the error of the system, which the library may have wrapped in its own. */
function systemErrorIn(error: unknown): NodeJS.ErrnoException | undefined {
  const errors = [error, (error as Error).cause] as (NodeJS.ErrnoException | undefined)[]
  return errors.find((one) => [...diskFull, ...notAllowed].includes(one?.code ?? ''))
}
