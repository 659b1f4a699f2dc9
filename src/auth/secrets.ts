/**
 * What a third party proves itself with: an access token and the partner secret, 256 random bits each.
 *
 * The database holds their SHA-256, and a look-up compares digests, never what the caller sent. That is the
 * comparison in constant time that counts: how long an index takes to miss says something of a digest, and from a
 * digest nobody gets nearer to the 256 bits behind it. Being random they need neither salt nor slow hash.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

export type Level = 'api' | 'firm'

/** `glv_api_...` opens one folder, `glv_firm_...` the folders of a firm; 43 characters of base64url follow. */
export function makeToken(level: Level): string {
  return `glv_${level}_${randomBytes(32).toString('base64url')}`
}

/** `glv_secret_...`: the prefix lets a scanner of logs and repositories know it for what it is. */
export function makePartnerSecret(): string {
  return `glv_secret_${randomBytes(32).toString('base64url')}`
}

/** The 32 bytes under which a token or secret is stored and looked up. */
export function sha256(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

const nonceBytes = 12
const tagBytes = 16

/**
 * AES-256-GCM. The partner secret is kept readable, because webhooks are signed with it.
 * @param masterKey 32 bytes
 * @returns nonce (12 bytes), tag (16 bytes), ciphertext
 */
export function encrypt(secret: string, masterKey: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', masterKey, nonce, { authTagLength: tagBytes })
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext])
}

/** @throws {Error} where the key is another one than it was encrypted under, or a byte was changed */
export function decrypt(sealed: Buffer, masterKey: Buffer): string {
  const nonce = sealed.subarray(0, nonceBytes)
  const tag = sealed.subarray(nonceBytes, nonceBytes + tagBytes)
  try {
    const decipher = createDecipheriv('aes-256-gcm', masterKey, nonce, { authTagLength: tagBytes })
    decipher.setAuthTag(tag)
    const plain = [decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()]
    return Buffer.concat(plain).toString('utf8')
  } catch (cause) {
    throw new Error('A partner secret cannot be read: MASTER_KEY is not the key it was stored under', {
      cause,
    })
  }
}
