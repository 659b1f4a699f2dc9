import { z } from 'zod'
import { findFirm, findFolder, issueToken, revokeToken } from '../auth/tokens.sql.ts'
import { act, existing, Refused } from './act.ts'
import { choice, code, end, groups, id } from './fields.ts'
import { partnerOf } from './partners.ts'

export const tokenLevels = ['api', 'firm'] as const

export const issuePartnerToken = act({
  name: 'token issue',
  /** `id` is the id of the folder (api) or firm (firm) that the token opens. */
  fields: z.object({
    code,
    level: choice(tokenLevels),
    id,
    only: groups.optional(),
    expires: end.optional(),
  }),
  run: async (client, { code, level, id: openedId, only = null, expires = null }) => {
    const what = level === 'api' ? 'folder' : 'firm'
    const opened = level === 'api' ? await findFolder(client, openedId) : await findFirm(client, openedId)
    if (!opened) throw new Refused(404, `There is no ${what} ${openedId}`)
    await partnerOf(client, code)
    const issued = { thirdPartyCode: code, level, opened, groups: only, expiresAt: expires }
    const { id: tokenId, token } = (await issueToken(client, issued))!
    const until = expires?.toISOString()
    const { schemaId, firmId, folderId } = opened
    return {
      partner: code,
      tokenId,
      schemaId,
      folderId,
      details: { level, firmId, groups: only?.join(',') ?? null, until: until ?? null },
      says: `Token ${tokenId}, level ${level}, ${what} ${openedId}, of ${code}, for ${only?.join(', ') ?? 'everything'}, ${until ? `until ${until}` : 'without an end'}.`,
      secret: {
        label: 'Token',
        value: token,
        use: 'The partner sends it in the header Authorization: Bearer <token>, beside its secret.',
      },
    }
  },
})

export const revokePartnerToken = act({
  name: 'token revoke',
  fields: z.object({ id: id.meta({ help: 'as token list shows it' }) }),
  run: async (client, { id: tokenId }) => {
    const revoked = await revokeToken(client, tokenId)
    const { code, schemaId, folderId } = existing(revoked, `token ${tokenId} in use`, 'token list')
    return {
      partner: code,
      tokenId,
      schemaId,
      folderId,
      says: `Token ${tokenId} of ${code} is revoked: it is refused from now on.`,
    }
  },
})
