import { statSync } from 'node:fs'
import { command } from '../../packages/terminal/src/command.ts'
import { table } from '../../packages/terminal/src/table.ts'
import { inUnits } from '../formats/minor-units.ts'
import { checkTra, type TraSummary } from '../formats/tra/check/check.ts'
import { problemText } from '../formats/tra/check/parse.ts'
import { readSource } from '../ledger/import/source-file.ts'
import { showFileProgress } from './terminal/file-progress.ts'
import type { StaffTerminal } from './terminal/terminal.ts'

export const inspectTraCommand = command({
  name: 'inspect tra',
  summary: 'a TRA file: its records, journals and dates, and the problems that prevent an import',
  arguments: { file: { help: 'plain, or compressed by gzip or zstd' } },
  run: async (terminal: StaffTerminal, { file }) => {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new Error(`There is no file ${file}`)
    const show = showFileProgress(terminal)
    let lines = 0
    const content = readSource(file, (read) => show({ step: 'reading', ...read, lines }))
    const summary = await checkTra(content, (_, checked) => {
      lines = checked
    })
    terminal.print(summary.lines === 0 ? problems(summary) : report(summary))
    if (summary.problemCount > 0) throw new Error('The file has problems')
  },
})

function report(summary: TraSummary): string[] {
  const { header, folder, records } = summary
  const origin = [header.generatedAt && `made ${header.generatedAt}`, header.user && `by ${header.user}`]
  const lines = [...records].map(([record, count]) => [record, count.toLocaleString('en')])
  return [
    ['TRA', header.version, header.type, header.format, ...origin].filter(Boolean).join(' '),
    `Firm: ${header.firm || 'not named'}`,
    `Folder: ${folder || 'not named'}`,
    '',
    ...table(['RECORD', 'LINES'], lines, 1),
    '',
    ...journals(summary),
    '',
    ...entries(summary),
    ...problems(summary),
  ]
}

function journals({ journals: balances, journalNames, movements, debit, credit }: TraSummary): string[] {
  const row = (code: string, name: string, of: { movements: number; debit: bigint; credit: bigint }) => [
    code,
    name,
    of.movements.toLocaleString('en'),
    ...[of.debit, of.credit, of.debit - of.credit].map((amount) => inUnits(amount, ',')),
  ]
  const rows = [...balances]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([code, balance]) => row(code, journalNames.get(code) ?? 'not defined', balance))
  const all = row('', 'in all', { movements, debit, credit })
  const heading = ['JOURNAL', 'NAME', 'MOVEMENTS', 'DEBIT', 'CREDIT', 'BALANCE']
  return table(heading, [...rows, all], 2)
}

function entries({ entries, shares, lettering, firstDate, lastDate }: TraSummary): string[] {
  if (firstDate === null) return ['No entry']
  const lettered = ['TL', 'PL'].map((state) => (lettering.get(state) ?? 0).toLocaleString('en'))
  return [
    `${entries.toLocaleString('en')} entries from ${firstDate} to ${lastDate}, ${shares.toLocaleString('en')} analytic lines`,
    `Lettering: ${lettered[0]} movements complete, ${lettered[1]} partial`,
  ]
}

function problems({ problems: kept, problemCount }: TraSummary): string[] {
  if (problemCount === 0) return ['No problem found']
  const lines = kept.map((problem) => `  ${problemText(problem)}`)
  const many = problemCount === 1 ? '1 problem' : `${problemCount.toLocaleString('en')} problems`
  return [`${many}${kept.length < problemCount ? `, the first ${kept.length}` : ''}:`, ...lines]
}
