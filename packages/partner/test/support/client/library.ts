import { Grandlivre, type GrandlivreOptions } from '../../../src/client/grandlivre.ts'

/** @param headers of a test's caller */
export function accessOf(headers: Record<string, string>, baseUrl: string) {
  const token = headers['Authorization']!.slice('Bearer '.length)
  return { baseUrl, token, secret: headers['X-Third-Party-Secret']! }
}

/** The library with the credentials of a test's caller. Its waits are as short as possible. */
export function libraryOf(
  headers: Record<string, string>,
  baseUrl: string,
  options: Partial<GrandlivreOptions> = {},
): Grandlivre {
  return new Grandlivre({ ...accessOf(headers, baseUrl), pacing: { random: () => 0 }, ...options })
}
