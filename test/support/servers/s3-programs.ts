/**
 * Which of the S3 servers known to the tests are installed: .ci/run builds their programs, once, into
 * .cache/bin.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

export const s3ProgramNames = ['minio', 'versitygw'] as const
export type S3ProgramName = (typeof s3ProgramNames)[number]

export function s3ProgramPath(name: S3ProgramName): string {
  return resolve(import.meta.dirname, '../../../.cache/bin', name)
}

export const installedS3Programs = s3ProgramNames.filter((name) => existsSync(s3ProgramPath(name)))

/** Warns once per run, because a server that is not installed has no tests that would appear as skipped. */
export function warnOfMissingS3Servers(): void {
  const missing = s3ProgramNames.filter((name) => !installedS3Programs.includes(name))
  if (missing.length > 0)
    console.warn(`No tests on the S3 servers ${missing.join(', ')}: not in .cache/bin, see .ci/run`)
}
