import { parseArgs } from 'node:util'
import { movementsMax, movementsMin } from '../src/sample/seed.ts'

export interface BenchOptions {
  movements: number
  rounds: number
  /** Movements of a second, larger folder, for the memory of the service alone. */
  large: number | undefined
}

const usage = `npm run bench -- [--movements 600000] [--rounds 5] [--large 3000000]`

/** @throws {Error} that says what the command takes */
export function readOptions(args: string[]): BenchOptions {
  const options = {
    movements: { type: 'string' },
    rounds: { type: 'string' },
    large: { type: 'string' },
  } as const
  const { values } = parse(() => parseArgs({ args, options }))
  const wholeNumber = (name: keyof typeof options, fallback: string, least: number, most: number): number => {
    const text = values[name] ?? fallback
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw new Error(`--${name} takes a whole number from ${least} to ${most}\n${usage}`)
  }
  return {
    movements: wholeNumber('movements', '600000', movementsMin, movementsMax),
    rounds: wholeNumber('rounds', '5', 1, 100),
    large: values.large === undefined ? undefined : wholeNumber('large', '', movementsMin, movementsMax),
  }
}

function parse<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${usage}`, { cause: error })
  }
}
