import { type ListedToken, listTokens, type TokenFilter } from '../auth/tokens.sql.ts'
import { type Cell, folderCell, partnerCell } from './cell.ts'
import { byId, type PagedList } from './list.ts'

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
