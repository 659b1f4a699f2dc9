import { seedCommand } from './seed-command.ts'
import { simulateCommand } from './simulate-command.ts'

/** Staff commands for made-up ledgers. */
export const sampleCommands = [seedCommand, simulateCommand]
