import {
  codePattern,
  listThirdParties,
  type PartnerLimits,
  type ThirdParty,
} from '../auth/third-parties.sql.ts'
import type { Cell } from './cell.ts'
import type { PagedList } from './list.ts'

export const partnerList: PagedList<ThirdParty, { search?: string | undefined }> = {
  caption: 'Third parties, by code',
  none: 'No third party has this code or name.',
  columns: {
    Code: ({ code }) => ({ to: `/partners/${code}`, text: code }),
    Kind: ({ kind }) => kind,
    State: partnerState,
    Name: ({ name }) => ({ theirs: name }),
    Id: ({ id }) => id,
  },
  read: listThirdParties,
  placeOf: ({ code }) => code,
  places: codePattern,
}

export function partnerState({ disconnectedReason }: ThirdParty): Cell {
  if (disconnectedReason === null) return 'connected'
  return [{ strong: 'disconnected' }, ': ', { theirs: disconnectedReason }]
}

/** A limit that is as the setting has the name of the setting: its number is known to the processes that read it. */
export function limitsText({ requests, windowMs, concurrent }: PartnerLimits): string {
  return (
    `${requests ?? 'RATE_LIMIT_REQUESTS'} requests in ${windowMs ?? 'RATE_LIMIT_WINDOW_MS'} ms, ` +
    `${concurrent ?? 'RATE_LIMIT_CONCURRENT'} at once on one route for one folder`
  )
}
