import { checkLine } from '../../../src/commands/terminal/check-line.ts'
import { nextSteps } from '../../../src/commands/terminal/next-steps.ts'
import type { StaffTerminal } from '../../../src/commands/terminal/terminal.ts'
import { recordAct, withDatabase } from '../../../src/commands/with-database.ts'
import type { Config } from '../../../src/config.ts'
import { command, type Kind } from '../../terminal/src/command.ts'
import { movementsMax, movementsMin, type SeededFolder, seed } from './seed.ts'

const wholeNumber: Kind<number> = {
  takes: 'a whole number such as 600000',
  read: (text) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined),
}

export const seedCommand = command({
  name: 'seed',
  summary:
    'fill a new folder with a made-up French ledger of this year; the same options give the same ledger',
  options: {
    movements: {
      value: 'count',
      required: true,
      is: wholeNumber,
      help: `exact number of movements, from ${movementsMin} to ${movementsMax.toLocaleString('en')}`,
    },
    seed: { value: 'number', is: wholeNumber, default: '1', help: 'another number gives another ledger' },
    'folder-reference': { value: 'text', default: 'SEED', help: 'reference of the folder' },
    replace: { help: 'empty the folder of that reference first; its id and its tokens stay' },
  },
  run: async (
    terminal: StaffTerminal,
    { movements, seed: randomSeed, 'folder-reference': reference, replace },
  ) => {
    checkLine('--folder-reference', reference)
    await withDatabase(terminal, async ({ database, config }) => {
      const started = performance.now()
      await seed(database.ownerUrl, {
        movements,
        seed: randomSeed,
        reference,
        replace: replace === true,
        onProgress: (done, all) =>
          terminal.progress(progressText(done, all, performance.now() - started), done / all),
        record: (client, { schemaId, folderId }) =>
          recordAct(client, {
            act: 'seed',
            schemaId,
            folderId,
            details: { movements, replace: replace === true },
          }),
        onLoaded: (folder) => {
          terminal.print(report(folder, (performance.now() - started) / 1000, config))
        },
      })
    })
  },
})

function report({ counts, exercices, ...folder }: SeededFolder, seconds: number, config: Config): string[] {
  const count = (number: number, what: string) => `${number.toLocaleString('en')} ${what}`
  const last = exercices.at(-1)!
  return [
    `Folder ${folder.folderId}, firm ${folder.firmId}, schema ${folder.schemaId}`,
    ...exercices.map(({ id, start, end }) => `Exercice ${id}, ${start} to ${end}`),
    `${count(counts.movements, 'movements')} in ${count(counts.entries, 'entries')}, ${count(counts.accounts, 'accounts')}; ` +
      `${(folder.loadedBytes / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s`,
    ...nextSteps(config, folder.folderId, last.id),
  ]
}

function progressText(done: number, movements: number, elapsedMs: number): string {
  const rate = Math.round((done / Math.max(elapsedMs, 1)) * 1000)
  const [doneText, allText, rateText] = [done, movements, rate].map((number) => number.toLocaleString('en'))
  return `${doneText} of ${allText} movements, ${rateText}/s`
}
