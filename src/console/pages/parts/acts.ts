/** What staff do in a page: one transaction, which the audit records. */
import type { PoolClient } from 'pg'
import type { StaffAct } from '../../../audit/audit-row.ts'
import { recordStaffAct } from '../../../audit/staff-act.sql.ts'
import { inTransaction } from '../../../db/pool.ts'
import type { PageContext } from '../../page.ts'

/** What an act changed, for the audit, and what the page shows of it. */
export interface Done<Result> {
  recorded: Omit<StaffAct, 'staff'>
  result: Result
}

/** @throws {Refusal} of `run`: then nothing has changed, and nothing is recorded */
export function doAct<Result>(
  { owner, staff }: Pick<PageContext, 'owner' | 'staff'>,
  run: (client: PoolClient) => Promise<Done<Result>>,
): Promise<Result> {
  return inTransaction(owner, async (client) => {
    const { recorded, result } = await run(client)
    await recordStaffAct(client, { staff, ...recorded })
    return result
  })
}
