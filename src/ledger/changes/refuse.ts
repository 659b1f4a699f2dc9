import { AppError, invalid } from '../../errors.ts'

/** Why changes since a cursor cannot be told (`read_ledger_cursor` in db/migrations/functions/changes.sql). */
export type CursorRefusal = 'unknown' | 'epoch' | 'rendering' | 'later' | 'forgotten'

const expired: Record<Exclude<CursorRefusal, 'unknown'>, string> = {
  epoch: 'Another server took the place of the database after this cursor, in a failover or a restore',
  rendering: 'Lines are written otherwise than at this cursor',
  later:
    'The ledger has not reached the state that this cursor names: it was restored from a backup, or lost changes in a failover',
  forgotten: 'Changes after this cursor are no longer remembered',
}

/** The error of a refused cursor. */
export function refuse(refusal: CursorRefusal): AppError {
  if (refusal === 'unknown') return invalid('since', 'is not a cursor of this folder')
  return new AppError('ERR-CURSOR-EXPIRED', {
    message: `${expired[refusal]}; compare the copy with its blocks, and read what differs`,
  })
}
