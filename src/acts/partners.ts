import type { ClientBase, Pool } from 'pg'
import { z } from 'zod'
import { sealingKey } from '../auth/master-key.sql.ts'
import {
  findThirdParty,
  insertThirdParty,
  makeSecret,
  rotateSecret,
  setConnection,
  type ThirdParty,
  updateLimits,
} from '../auth/third-parties.sql.ts'
import { rateBounds } from '../config.ts'
import { limitsText } from '../lists/partners.ts'
import { act, existing, Refused, type Secret } from './act.ts'
import { choice, code, codeText, line, wholeNumber } from './fields.ts'

/** Hours for which requests may still carry an older secret: the default and the maximum. */
export const keptHours = { usual: 24, most: 9_999 } as const

export const partnerKinds = ['partner', 'customer'] as const

/** @throws {Refused} if no third party has this code */
export async function partnerOf(client: ClientBase | Pool, code: string): Promise<ThirdParty> {
  return existing(await findThirdParty(client, code), `third party ${code}`, 'partner list')
}

function shownSecret(value: string): Secret {
  const use = 'The partner sends it in the header X-Third-Party-Secret. It also signs its webhooks.'
  return { label: 'Secret', value, use }
}

const codeOfPartner = code.meta({ help: 'of the third party' })

export const createPartner = act({
  name: 'partner create',
  fields: z.object({
    code: code.meta({ help: codeText }),
    name: line.meta({ help: 'as people know it' }),
    kind: choice(partnerKinds).meta({ default: 'partner', help: 'whose it is' }),
  }),
  run: async (client, { code, name, kind }, masterKeys) => {
    const { plain, secret } = makeSecret(await sealingKey(client, masterKeys))
    const id = await insertThirdParty(client, { code, name, kind, secret })
    if (id === undefined)
      throw new Refused(409, `There is a third party ${code} already: choose another code`)
    return {
      partner: code,
      details: { kind },
      says: `Third party ${code} (${kind}), id ${id}.`,
      secret: shownSecret(plain),
    }
  },
})

export const disconnectPartner = act({
  name: 'partner disconnect',
  fields: z.object({
    code: codeOfPartner,
    reason: line.meta({ help: 'shown to the third party with each refusal' }),
  }),
  run: async (client, { code, reason }) => {
    await partnerOf(client, code)
    if (!(await setConnection(client, code, reason)))
      throw new Refused(409, `Third party ${code} is disconnected already`)
    return {
      partner: code,
      details: { reason },
      says: `Third party ${code} is disconnected: all its tokens are refused from now on.`,
    }
  },
})

export const reconnectPartner = act({
  name: 'partner reconnect',
  fields: z.object({ code: codeOfPartner }),
  run: async (client, { code }) => {
    await partnerOf(client, code)
    if (!(await setConnection(client, code, null)))
      throw new Refused(409, `Third party ${code} is connected already`)
    return {
      partner: code,
      says: `Third party ${code} is connected: its tokens are accepted again.`,
    }
  },
})

export const rotatePartnerSecret = act({
  name: 'partner rotate-secret',
  fields: z.object({
    code: codeOfPartner,
    keep: wholeNumber(0, keptHours.most, 'a number of hours').meta({
      value: 'hours',
      default: String(keptHours.usual),
      help: 'how long older secrets are still accepted in requests',
    }),
  }),
  run: async (client, { code, keep }, masterKeys) => {
    await partnerOf(client, code)
    const { plain, secret } = makeSecret(await sealingKey(client, masterKeys))
    await rotateSecret(client, code, secret, keep * 3600)
    const previous = keep === 0 ? 'is refused' : `is accepted in requests for ${keep} more hours`
    return {
      partner: code,
      details: { keptHours: keep },
      says: `Third party ${code} has a new secret, which signs webhooks from now on. The previous one ${previous}.`,
      secret: shownSecret(plain),
    }
  },
})

/**
 * Changes the limits of a partner. Limits that are not given stay the same. With `default`, all are removed first.
 */
export const limitPartner = act({
  name: 'partner limits',
  fields: z.object({
    code: codeOfPartner,
    requests: wholeNumber(...rateBounds.requests)
      .optional()
      .meta({ help: 'requests of one token per window' }),
    'window-ms': wholeNumber(...rateBounds.windowMs)
      .optional()
      .meta({ help: 'length of that window' }),
    concurrent: wholeNumber(...rateBounds.concurrent)
      .optional()
      .meta({ help: 'requests of the partner that run at once per route and folder' }),
    default: z
      .literal([true, 'on'])
      .optional()
      .meta({ help: 'first remove all of them: the settings apply again' }),
  }),
  run: async (client, { code, requests, 'window-ms': windowMs, concurrent, default: asSettings }) => {
    await partnerOf(client, code)
    const none = asSettings ? { requests: null, windowMs: null, concurrent: null } : {}
    const given = Object.entries({ requests, windowMs, concurrent }).filter(([, most]) => most !== undefined)
    const limits = await updateLimits(client, code, { ...none, ...Object.fromEntries(given) })
    return {
      partner: code,
      details: { ...limits },
      says: `Third party ${code} has these limits from now on: ${limitsText(limits)}.`,
    }
  },
})
