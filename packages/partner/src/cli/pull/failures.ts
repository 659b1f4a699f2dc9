/** What stops a pull, in the words of its user, and how to go on. */
import { tmpdir } from 'node:os'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import { GrandlivreError } from '../../client/errors.ts'
import { partOf } from '../../client/files/part-file.ts'
import { localFailure } from '../exit-codes.ts'
import { isOutput } from './to-output.ts'

const diskFull = ['ENOSPC', 'EDQUOT', 'EFBIG']
const notAllowed = ['EACCES', 'EPERM', 'EROFS']

/** @param out a file, or - @returns the error to throw: of the disk and of an interruption a Failure, any other as it is */
export function explained(error: unknown, out: string, signal: AbortSignal): unknown {
  const isKept = !isOutput(out)
  if (signal.aborted)
    return new Failure('Interrupted', isKept ? `The same command goes on with ${partOf(out)}.` : [])
  const fromSystem = error instanceof Failure ? undefined : systemErrorIn(error)
  if (fromSystem === undefined) return inOptions(error)
  const { code = '', message } = fromSystem
  if (!isKept)
    return localFailure(
      `The export cannot be kept in ${tmpdir()}: ${message}`,
      'Make room there, set TMPDIR to another folder, or name a file.',
      { cause: error },
    )
  if (diskFull.includes(code))
    return localFailure(
      `There is no room for ${partOf(out)}: ${message}`,
      'Make room and run the same command: it goes on. Or delete the file and its .json, and choose another --out.',
      { cause: error },
    )
  if (notAllowed.includes(code))
    return localFailure(`${partOf(out)} cannot be written: ${message}`, 'Choose another --out.', {
      cause: error,
    })
  return error
}

/** Options whose parameters have other names. */
const optionOf: Record<string, string> = {
  ...{ startDate: 'from', endDate: 'to', dateFilter: 'date-filter', classAccount: 'class-account' },
  ...{ idExercice: 'exercice', journalIds: 'journals', 'society-id': 'society' },
}

/** A refusal of parameters names the options that gave them. */
function inOptions(error: unknown): unknown {
  if (!(error instanceof GrandlivreError) || error.issues.length === 0) return error
  const { code, status, requestId, issues, details } = error
  const typed = (name: string) => `--${optionOf[name] ?? name}`
  const message = issues
    .map(
      (issue) =>
        `${typed(issue.parameter)}: ${issue.message.replaceAll(new RegExp(Object.keys(optionOf).join('|'), 'g'), typed)}`,
    )
    .join('; ')
  const remedy = `Correct ${[...new Set(issues.map(({ parameter }) => typed(parameter)))].join(' and ')}.`
  return new GrandlivreError(code, message, {
    ...{ status, requestId, details, remedy, cause: error },
    issues: [...issues],
  })
}

/** The library wraps errors of files. */
function systemErrorIn(error: unknown): NodeJS.ErrnoException | undefined {
  const own = [error, (error as Error).cause].find((one) => {
    const { code } = (one ?? {}) as NodeJS.ErrnoException
    return [...diskFull, ...notAllowed].includes(code ?? '')
  })
  return own as NodeJS.ErrnoException | undefined
}
