import { type Command, CommanderError } from 'commander'
import { type Link, listAudit, readOneState } from '../../audit/audit.sql.ts'
import { type Verification, verifyAudit } from '../../audit/verify.ts'
import { loadMasterKey } from '../../auth/master-key.ts'
import { findThirdParty } from '../../auth/third-parties.sql.ts'
import { inTransaction } from '../../db/pool.ts'
import { auditList } from '../../lists/audit.ts'
import { checkId, checkMost } from '../terminal/check-id.ts'
import { printLines } from '../terminal/lines.ts'
import { listLines } from '../terminal/list-lines.ts'
import { createProgressBar } from '../terminal/progress-bar.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { asOwner, withDatabase } from '../with-database.ts'

export function addAuditCommands(program: Command, terminal: Terminal): void {
  const audit = program.command('audit').description('who was given what, and what staff did')
  audit
    .command('list')
    .description('list the newest rows')
    .option('--folder <id>', 'of one folder', checkId)
    .option('--partner <code>', 'of one third party')
    .option('--from <moment>', 'from then on, such as 2026-01-31T08:00:00Z')
    .option('--to <moment>', 'before then')
    .option('--most <number>', 'how many', '50')
    .action((options) => list(terminal, options))
  audit
    .command('verify')
    .description(
      'check that no row was changed, removed or added, and show the count and the hash of the last one',
    )
    .option('--anchor <count:hash>', 'compare with what an earlier run showed')
    .action((options) => verify(terminal, options))
}

interface List {
  folder?: string
  partner?: string
  from?: string
  to?: string
  most: string
}

async function list(terminal: Terminal, { folder, partner, from, to, most: mostText }: List): Promise<void> {
  const most = checkMost(mostText)
  const period = { from: momentOf('--from', from), to: momentOf('--to', to) }
  await asOwner(terminal, async (client) => {
    const thirdParty = partner === undefined ? undefined : await findThirdParty(client, partner)
    if (partner !== undefined && !thirdParty)
      throw new Error(`There is no third party ${partner}: see partner list`)
    const rows = await listAudit(client, { folderId: folder, thirdPartyId: thirdParty?.id, ...period, most })
    return listLines(auditList, rows)
  })
}

/** A time zone is required, since a moment without one depends on the machine. */
function momentOf(option: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const isMoment = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
  if (isMoment && Number.isFinite(Date.parse(text))) return new Date(text)
  throw new Error(`${option} takes a day or a moment such as 2026-01-31T08:00:00Z, not "${text}"`)
}

async function verify(terminal: Terminal, { anchor: anchorText }: { anchor?: string }): Promise<void> {
  const anchor = anchorText === undefined ? undefined : readAnchor(anchorText)
  const bar = createProgressBar(terminal.err)
  await withDatabase(terminal, async ({ pool, config }) => {
    const masterKey = await loadMasterKey(config)
    const onProgress = (checked: number, all: number) =>
      bar.show(
        checked / Math.max(all, 1),
        `${checked.toLocaleString('en')} of ${all.toLocaleString('en')} rows`,
      )
    const verification = await inTransaction(pool, async (client) => {
      await readOneState(client)
      return verifyAudit(client, { masterKey, anchor, onProgress })
    })
    bar.clear()
    printLines(terminal.out, reportOf(verification, anchor))
    if (verification.problem) throw new CommanderError(1, 'audit.problem', verification.problem)
  })
}

function readAnchor(text: string): Link {
  const [, count, hash] = /^(\d{1,16}):([0-9a-f]{64})$/.exec(text.toLowerCase()) ?? []
  if (count !== undefined && hash !== undefined) return { count: String(Number(count)), hash }
  throw new Error(
    `--anchor takes a count and a hash as audit verify shows them, <count>:<64 digits>, not "${text}"`,
  )
}

function reportOf({ head, start, problem }: Verification, anchor: Link | undefined): string[] {
  if (problem) return [problem]
  const rows = (Number(head.count) - Number(start.count)).toLocaleString('en')
  return [
    `The audit is whole: ${rows} rows, ${Number(start.count) + 1} to ${head.count}.`,
    ...(start.count === '0'
      ? []
      : [`Retention has deleted the rows before; it signed the start after row ${start.count}.`]),
    `Anchor: ${head.count}:${head.hash}`,
    anchor
      ? `The rows up to ${anchor.count} are those of the anchor.`
      : 'Without --anchor this does not show whether rows were cut off at the end, or all were written anew.',
  ]
}
