import type { Command } from 'commander'
import type { Terminal } from '../terminal/terminal.ts'
import { addImportFec } from './import-fec.ts'
import { addImportMad } from './import-mad.ts'
import { addImportTra } from './import-tra.ts'

export function addImportCommands(program: Command, terminal: Terminal): void {
  const group = program.command('import').description('ledgers from files')
  addImportFec(group, terminal)
  addImportMad(group, terminal)
  addImportTra(group, terminal)
}
