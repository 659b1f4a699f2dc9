import { createPartner } from '../../../src/acts/partners.ts'
import { issuePartnerToken } from '../../../src/acts/tokens.ts'
import { loadMasterKeys } from '../../../src/auth/master-key.sql.ts'
import { findThirdParty } from '../../../src/auth/third-parties.sql.ts'
import { secretLines } from '../../../src/commands/staff-command.ts'
import { checkLine } from '../../../src/commands/terminal/kinds.ts'
import { nextSteps } from '../../../src/commands/terminal/next-steps.ts'
import type { StaffTerminal } from '../../../src/commands/terminal/terminal.ts'
import { recordAct, userOfMachine, withDatabase } from '../../../src/commands/with-database.ts'
import { inTransaction } from '../../../src/db/pool.ts'
import { countText, secondsText } from '../../terminal/src/amounts.ts'
import { command, numberKind } from '../../terminal/src/command.ts'
import { vacuumLedger } from './seed.sql.ts'
import { foldersMax, movementsMax, movementsMin, type SeededFirm, seedFirm, seedFolder } from './seed.ts'

const partnerDefault = 'SEED-READER'

export const seedCommand = command({
  name: 'seed',
  summary:
    'fill a new folder with a made-up French ledger of this year; the same options give the same ledger',
  options: {
    movements: {
      value: 'count',
      required: true,
      is: numberKind('a whole number', movementsMin, movementsMax),
      help: `exact number of movements, from ${movementsMin} to ${movementsMax.toLocaleString('en')}`,
    },
    seed: {
      value: 'number',
      is: numberKind('a whole number', 0, 999_999_999),
      default: '1',
      help: 'another number gives another ledger',
    },
    'folder-reference': { value: 'text', default: 'SEED', help: 'reference of the folder' },
    replace: { help: 'empty the folder with that reference first; its id and its tokens stay' },
    folders: {
      value: 'count',
      is: numberKind('a number', 1, foldersMax),
      help: 'fill a new firm with this number of folders, each with --movements; print its id and a firm token',
    },
    firms: {
      value: 'count',
      is: numberKind('a number', 1, 100),
      help: 'with --folders: number of such firms, each with a token',
    },
    partner: {
      value: 'code',
      help: `third party that gets the tokens; created if none has this code; default ${partnerDefault}`,
    },
  },
  run: async (terminal: StaffTerminal, given) => {
    const { movements, seed, 'folder-reference': reference, replace = false, folders, firms, partner } = given
    checkLine('--folder-reference', reference)
    if (folders === undefined) {
      if (firms !== undefined || partner !== undefined)
        throw new Error('--firms and --partner need --folders, which seeds a firm instead of one folder')
      return seedOneFolder(terminal, { movements, seed, reference, replace })
    }
    if (replace) throw new Error('--replace is for one folder: a firm is always a new one')
    const plan = { folders, movements, seed, reference }
    await seedFirms(terminal, plan, firms ?? 1, partner ?? partnerDefault)
  },
})

type FolderPlan = { movements: number; seed: number; reference: string }

async function seedOneFolder(
  terminal: StaffTerminal,
  plan: FolderPlan & { replace: boolean },
): Promise<void> {
  await withDatabase(terminal, async ({ pool, config }) => {
    const started = performance.now()
    const folder = await inTransaction(pool, async (client) => {
      const seeded = await seedFolder(client, { ...plan, onProgress: showProgress(terminal, started) })
      const { schemaId, folderId } = seeded
      const details = { movements: plan.movements, replace: plan.replace }
      await recordAct(client, { act: 'seed', schemaId, folderId, details })
      return seeded
    })
    const { schemaId, firmId, folderId, exercices, counts } = folder
    terminal.print([
      `Folder ${folderId}, firm ${firmId}, schema ${schemaId}`,
      ...exercices.map(({ id, start, end }) => `Exercice ${id}, ${start} to ${end}`),
      loadedText(folder, `, ${countText(counts.accounts)} accounts`, started),
      ...nextSteps(config, folderId, exercices.at(-1)!.id),
    ])
    // Makes the first exports fast. Interrupting it does no harm.
    await vacuumLedger(pool)
  })
}

/** Seeds each firm in a transaction of its own, together with its token. If one fails, the firms before it stay. */
async function seedFirms(
  terminal: StaffTerminal,
  plan: FolderPlan & { folders: number },
  firms: number,
  code: string,
): Promise<void> {
  const create = createPartner({ code, name: 'Reader of seeded firms', kind: 'partner' })
  await withDatabase(terminal, async ({ pool, config }) => {
    const doer = { staff: userOfMachine(), masterKeys: await loadMasterKeys(config) }
    for (let number = 0; number < firms; number++) {
      const started = performance.now()
      const options = { ...plan, seed: plan.seed + number, onProgress: showProgress(terminal, started) }
      const lines = await inTransaction(pool, async (client) => {
        const firm = await seedFirm(client, options)
        const { schemaId, firmId } = firm
        const { folders, movements } = plan
        await recordAct(client, { act: 'seed', schemaId, details: { firmId, folders, movements } })
        const made = (await findThirdParty(client, code)) ? [] : [await create(client, doer)]
        const issued = await issuePartnerToken({ code, level: 'firm', id: firmId })(client, doer)
        const said = [...made, issued].flatMap(({ says, secret }) => [says, ...secretLines(secret!)])
        const ids = `${countText(folders)} folders, ${firm.folderIds[0]} to ${firm.folderIds.at(-1)}; `
        return [`Firm ${firmId}, schema ${schemaId}`, ids + loadedText(firm, '', started), ...said]
      })
      terminal.print(lines)
    }
    await vacuumLedger(pool)
  })
}

/** @param start text of the line before the counts */
export function showProgress({ progress }: Pick<StaffTerminal, 'progress'>, started: number, start = '') {
  return (done: number, all: number) => {
    const rate = Math.round((done / Math.max(performance.now() - started, 1)) * 1000)
    const counts = `${countText(done)} of ${countText(all)} movements`
    progress(`${start}${counts}, ${countText(rate)}/s`, done / all)
  }
}

/** @param more further counts, which follow after a comma */
function loadedText(
  { counts, loadedBytes }: Pick<SeededFirm, 'counts' | 'loadedBytes'>,
  more: string,
  started: number,
): string {
  const rows = `${countText(counts.movements)} movements in ${countText(counts.entries)} entries${more}`
  return `${rows}; ${(loadedBytes / 1e6).toFixed(1)} MB in ${secondsText(performance.now() - started)}`
}
