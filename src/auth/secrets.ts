/**
 * The credentials of a third party: access tokens, the partner secret, and one secret for each subscription to events.
 * Each has 256 random bits.
 *
 * The database stores the SHA-256 of tokens and partner secrets. A lookup compares digests, never the text that the
 * caller sent. So the comparison is safe without constant time: the duration of an index miss reveals something about a
 * digest, but a digest reveals nothing about the 256 bits it was made from. Random bits need neither salt nor a slow
 * hash.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { signingSecretPrefix } from '../../packages/contract/src/webhook-delivery.ts'

export type Level = 'api' | 'firm'

/**
 * `glv_api_...` opens one folder, `glv_firm_...` the folders of a firm. `glv_secret_...` is the secret of a partner.
 * `glv_console_...` signs a member of staff in to the console, and `glv_session_...` is the cookie of a console
 * session. The prefix lets scanners of logs and repositories recognize a secret; 43 base64url characters follow.
 */
export function makeToken(kind: Level | 'secret' | 'console' | 'session'): string {
  return `glv_${kind}_${randomBytes(32).toString('base64url')}`
}

/** Makes a secret that signs deliveries: `whsec_...`, the base64 of 32 bytes, as in Standard Webhooks. */
export function makeSigningSecret(): string {
  return `${signingSecretPrefix}${randomBytes(32).toString('base64')}`
}

/** The 32-byte digest by which a token or secret is stored and looked up. */
export function sha256(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

/** The keys that a process was given, 32 bytes each: `MASTER_KEY` and, while keys are rotated, `FORMER_MASTER_KEY`. */
export type MasterKeys = readonly [Buffer, ...Buffer[]]

const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts with AES-256-GCM. Secrets that sign webhooks are not hashed, because the service needs them again.
 * @param masterKey 32 bytes
 * @returns nonce (12 bytes), tag (16 bytes), ciphertext
 */
export function encrypt(secret: string, masterKey: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', masterKey, nonce, { authTagLength: tagBytes })
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext])
}

/** @throws {Error} if the secret was encrypted with none of these keys, or if a byte was changed */
export function decrypt(sealed: Buffer, masterKeys: MasterKeys): string {
  for (const masterKey of masterKeys) {
    const secret = decryptWith(sealed, masterKey)
    if (secret !== undefined) return secret
  }
  throw new Error('A secret cannot be read: MASTER_KEY is not the key it was stored under')
}

/** Returns undefined if it was encrypted with another key: then the tag does not match. */
export function decryptWith(sealed: Buffer, masterKey: Buffer): string | undefined {
  const nonce = sealed.subarray(0, nonceBytes)
  const tag = sealed.subarray(nonceBytes, nonceBytes + tagBytes)
  try {
    const decipher = createDecipheriv('aes-256-gcm', masterKey, nonce, { authTagLength: tagBytes })
    decipher.setAuthTag(tag)
    const plain = [decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()]
    return Buffer.concat(plain).toString('utf8')
  } catch {
    return undefined
  }
}
