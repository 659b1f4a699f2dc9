import {
  codePattern,
  listThirdParties,
  type PartnerLimits,
  type ThirdParty,
} from '../auth/third-parties.sql.ts'
import { type Cell, partnerCell } from './cell.ts'
import type { PagedList } from './list.ts'

export const partnerList: PagedList<ThirdParty, { search?: string | undefined }> = {
  caption: 'Third parties, by code',
  none: 'No third party has this code or name.',
  columns: {
    Code: ({ code }) => partnerCell(code),
    Kind: ({ kind }) => kind,
    State: partnerState,
    Name: ({ name }) => ({ foreign: name }),
    Id: ({ id }) => id,
  },
  read: listThirdParties,
  placeOf: ({ code }) => code,
  places: codePattern,
}

export function partnerState({ disconnectedReason }: ThirdParty): Cell {
  if (disconnectedReason === null) return 'connected'
  return [{ strong: 'disconnected' }, ': ', { foreign: disconnectedReason }]
}

/**
 * The limits of a partner as text. For a limit that the partner does not have, it names the setting: only the processes
 * of the service know the setting's value.
 */
export function limitsText({ requests, windowMs, concurrent }: PartnerLimits): string {
  return (
    `${requests ?? 'RATE_LIMIT_REQUESTS'} requests in ${windowMs ?? 'RATE_LIMIT_WINDOW_MS'} ms, ` +
    `${concurrent ?? 'RATE_LIMIT_CONCURRENT'} at once on one route for one folder`
  )
}
