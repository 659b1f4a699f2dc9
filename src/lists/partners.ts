import {
  codePattern,
  listThirdParties,
  type PartnerLimits,
  type ThirdParty,
} from '../auth/third-parties.sql.ts'
import { type ListedToken, listTokens, type TokenFilter } from '../auth/tokens.sql.ts'
import { byId, type Cell, folderCell, type PagedList, partnerCell } from './list.ts'

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
 * The limits of a partner as text. If the partner has no limit of its own, the text names the setting, because only
 * the processes of the service know its value.
 */
export function limitsText({ requests, windowMs, concurrent }: PartnerLimits): string {
  return (
    `${requests ?? 'RATE_LIMIT_REQUESTS'} requests in ${windowMs ?? 'RATE_LIMIT_WINDOW_MS'} ms, ` +
    `${concurrent ?? 'RATE_LIMIT_CONCURRENT'} at once on one route for one folder`
  )
}

export const tokenList: PagedList<ListedToken, TokenFilter> = {
  caption: 'Tokens, the newest first',
  none: 'There is no such token.',
  columns: {
    Id: ({ id }) => id,
    Partner: ({ partnerCode }) => partnerCell(partnerCode),
    Level: ({ level }) => level,
    Opens: ({ folderId, firmId, openedName }) => [
      ...(folderId === null ? [`firm ${firmId}`] : ['folder ', folderCell(folderId)]),
      ' ',
      { foreign: openedName, most: 60 },
    ],
    'Ends in': ({ hint }) => ({ code: hint }),
    For: ({ groups }) => groups?.join(', ') ?? 'everything',
    State: tokenState,
    Until: ({ expiresAt, endsSoon }) => [endsSoon ? { strong: 'soon: ' } : '', { at: expiresAt }],
    Issued: ({ createdAt }) => ({ at: createdAt }),
  },
  read: listTokens,
  ...byId,
}

function tokenState({ revokedAt, isExpired, isDisconnected, activatedAt }: ListedToken): Cell {
  if (revokedAt !== null) return ['revoked ', { at: revokedAt }]
  if (isExpired) return 'expired'
  if (isDisconnected) return 'refused: its partner is disconnected'
  return activatedAt === null ? 'not yet used' : ['activated ', { at: activatedAt }]
}
