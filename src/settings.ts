/** Reads the settings of an environment: finds mistyped names, and parses common forms of values. */

import { distanceOf } from '../packages/terminal/src/nearest.ts'

/** Reads the text of a setting; undefined if it is not set or is blank. */
export type ReadText = (name: string) => string | undefined

/**
 * Reads settings and remembers their names, so every setting must be read, even if others make it unnecessary.
 * `mistyped` lists variables that were not read and whose names are almost those of settings, such as
 * `RATE_LIMIT_REQUEST`. An environment is full of other variables, so short names of settings are not compared, and no
 * variable is refused.
 */
export function settingsOf(env: NodeJS.ProcessEnv) {
  const asked = new Set<string>()
  const text: ReadText = (name) => {
    asked.add(name)
    return env[name]?.trim() || undefined
  }
  const mistyped = () =>
    Object.keys(env)
      .filter((name) => !asked.has(name))
      .flatMap((name) => {
        const meant = [...asked].find((each) => each.length >= 8 && distanceOf(name.toUpperCase(), each) <= 2)
        return meant === undefined ? [] : [{ name, meant }]
      })
  return { text, mistyped }
}

/** The 32 bytes of a key; undefined if it is not set. */
export function readKey(name: string, text: ReadText, mistakes: string[]): Buffer | undefined {
  const value = text(name) ?? ''
  if (!/^([0-9a-f]{64})?$/i.test(value))
    mistakes.push(`${name} must be 64 hexadecimal digits (make one with: openssl rand -hex 32)`)
  return value === '' ? undefined : Buffer.from(value, 'hex')
}

/** Whether a setting says yes; false if it is not set. */
export function readYesOrNo(name: string, text: ReadText, mistakes: string[]): boolean {
  const value = text(name) ?? 'false'
  if (!['true', 'false', '1', '0'].includes(value))
    mistakes.push(`${name} must be true or false, not "${value}"`)
  return value === 'true' || value === '1'
}

/**
 * An address such as `http://host:port` or `https://...`, without a path: neither S3 nor the routes of the service are
 * below one.
 */
export function webAddress(name: string, text: ReadText, mistakes: string[]): string | undefined {
  const value = text(name)
  if (value === undefined) return undefined
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isBare = url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.search && !url.username
  if (isBare) return url.origin
  mistakes.push(`${name} must be an address of the form https://host or http://host:port, without a path`)
  return undefined
}

/** Whether the text names a time zone. An offset such as +02:00 does not: PostgreSQL inverts its sign. */
export function isTimeZone(name: string): boolean {
  try {
    if (!/^[A-Za-z]/.test(name)) return false
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
