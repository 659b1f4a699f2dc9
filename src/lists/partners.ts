import { listThirdParties, type ThirdParty } from '../auth/third-parties.sql.ts'
import { codePattern } from '../auth/third-parties.ts'
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
