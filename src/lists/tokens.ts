import { type ListedToken, listTokens, type TokenFilter } from '../auth/tokens.sql.ts'
import type { Cell } from './cell.ts'
import { byId, type PagedList } from './list.ts'

export const tokenList: PagedList<ListedToken, TokenFilter> = {
  caption: 'Tokens, the newest first',
  none: 'There is no such token.',
  columns: {
    Id: ({ id }) => id,
    Partner: ({ partnerCode }) => ({ to: `/partners/${partnerCode}`, text: partnerCode }),
    Level: ({ level }) => level,
    Opens: ({ folderId, firmId, openedName }) => [
      ...(folderId === null
        ? [`firm ${firmId}`]
        : ['folder ', { to: `/folders/${folderId}`, text: folderId }]),
      ' ',
      { theirs: openedName, most: 60 },
    ],
    'Ends in': ({ hint }) => ({ code: hint }),
    For: ({ groups }) => groups?.join(', ') ?? 'everything',
    State: stateOf,
    Until: ({ expiresAt, endsSoon }) => [endsSoon ? { strong: 'soon: ' } : '', { at: expiresAt }],
    Issued: ({ createdAt }) => ({ at: createdAt }),
  },
  read: listTokens,
  ...byId,
}

function stateOf({ revokedAt, isExpired, isDisconnected, activatedAt }: ListedToken): Cell {
  if (revokedAt !== null) return ['revoked ', { at: revokedAt }]
  if (isExpired) return 'expired'
  if (isDisconnected) return 'refused: its partner is disconnected'
  return activatedAt === null ? 'not yet used' : ['activated ', { at: activatedAt }]
}
