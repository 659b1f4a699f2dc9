import { command, type Kind } from '../../../packages/terminal/src/command.ts'
import { Failure } from '../../../packages/terminal/src/command-errors.ts'
import { partnerOf } from '../../acts/partners.ts'
import { type Link, listAudit, readOneState } from '../../audit/audit.sql.ts'
import { type EpochRow, type Verification, verifyAudit } from '../../audit/verify.ts'
import { loadMasterKeys } from '../../auth/master-key.sql.ts'
import { inTransaction } from '../../db/pool.ts'
import { auditList, momentOf } from '../../lists/audit.ts'
import { ownerCommand } from '../staff-command.ts'
import { idKind, momentKind, mostOption } from '../terminal/kinds.ts'
import { listLines } from '../terminal/list-lines.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { withDatabase } from '../with-database.ts'

const anchorKind: Kind<Link> = {
  takes: 'a count and a hash as audit verify shows them, <count>:<64 digits>',
  read(text) {
    const [, count, hash] = /^(\d{1,16}):([0-9a-f]{64})$/.exec(text.toLowerCase()) ?? []
    return count && hash ? { count: String(Number(count)), hash } : undefined
  },
}

/** Exit code if the audit is consistent, but a failover lost rows that the anchor names. */
export const lostCode = 3

export const auditCommands = [
  ownerCommand({
    name: 'audit list',
    summary: 'list the newest rows',
    options: {
      folder: { value: 'id', is: idKind, help: 'of one folder' },
      partner: { value: 'code', help: 'of one third party' },
      from: { value: 'moment', is: momentKind, help: 'from this moment on, such as 2026-01-31T08:00:00Z' },
      to: { value: 'moment', is: momentKind, help: 'before this moment' },
      most: mostOption,
    },
    lines: async (client, { folder, partner, ...options }) => {
      const thirdPartyId = partner === undefined ? undefined : (await partnerOf(client, partner)).id
      return listLines(auditList, await listAudit(client, { folderId: folder, thirdPartyId, ...options }))
    },
  }),
  command({
    name: 'audit verify',
    summary:
      'check that no row was changed, removed or added, and show the count and the hash of the last one',
    options: {
      anchor: { value: 'count:hash', is: anchorKind, help: 'compare with what an earlier run showed' },
    },
    run: async (terminal: StaffTerminal, { anchor }) => {
      const onProgress = (checked: number, all: number) =>
        terminal.progress(
          `${checked.toLocaleString('en')} of ${all.toLocaleString('en')} rows`,
          checked / Math.max(all, 1),
        )
      await withDatabase(terminal, async ({ pool, config }) => {
        const masterKeys = await loadMasterKeys(config)
        const verification = await inTransaction(pool, async (client) => {
          await readOneState(client)
          return verifyAudit(client, { masterKeys, anchor, onProgress })
        })
        terminal.print(reportOf(verification, anchor))
        if (verification.problem) throw new Error('The audit is not whole')
        if (verification.lostIn) throw lossOf(anchor!, verification.lostIn)
      })
    },
  }),
]

function lossOf({ count }: Link, { at, last }: EpochRow): Failure {
  const time = momentOf(at).toISOString()
  return new Failure(
    `The anchor names row ${count}, which was lost in the failover of ${time}: rows after ${last} are gone.\n` +
      'If no server was promoted or restored then, somebody cut them off and made it look so.',
    [],
    { exitCode: lostCode },
  )
}

function reportOf(
  { head, start, rows, began, lostIn, problem }: Verification,
  anchor: Link | undefined,
): string[] {
  if (problem) return [problem]
  return [
    `The audit is whole: ${rows.toLocaleString('en')} rows, ${Number(start.count) + 1} to ${head.count}.`,
    ...(start.count === '0'
      ? []
      : [`Retention has deleted the rows before; it signed the start after row ${start.count}.`]),
    ...began.map(
      ({ at, former, epoch, last, number }) =>
        `Row ${number} follows row ${last}: epoch ${epoch} began after ${former} at ${momentOf(at).toISOString()}.`,
    ),
    `Anchor: ${head.count}:${head.hash}`,
    ...(lostIn ? [] : [comparisonWith(anchor)]),
  ]
}

function comparisonWith(anchor: Link | undefined): string {
  return anchor
    ? `The rows up to ${anchor.count} are those of the anchor.`
    : 'Without --anchor this does not show whether rows were cut off at the end, or all were rewritten.'
}
