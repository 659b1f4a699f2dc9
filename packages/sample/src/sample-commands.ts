import { seedCommand } from './seed-command.ts'
import { simulateCommand } from './simulate.ts'

/** Staff commands for made-up ledgers. */
export const sampleCommands = [seedCommand, simulateCommand]
