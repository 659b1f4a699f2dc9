import { seedCommand } from './seed-command.ts'
import { simulateCommand } from './simulate.ts'

/** The staff commands that make and change made-up ledgers. */
export const sampleCommands = [seedCommand, simulateCommand]
