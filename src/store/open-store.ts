import type { StoreTiming } from '../timing.ts'
import { FilesystemStore, type SignsWith } from './filesystem.ts'
import type { ObjectStore, StoreSettings } from './store.ts'

/**
 * Does not connect yet: check() reports whether the store is reachable. Nothing needs to be closed.
 * @param signsWith which of the settings' keys signs links to files of a local folder; absent: the first
 */
export async function openStore(
  settings: StoreSettings,
  timing: StoreTiming,
  signsWith?: SignsWith,
): Promise<ObjectStore> {
  if (settings.kind === 'filesystem') return new FilesystemStore(settings, signsWith)
  // Loaded on demand: the S3 client takes memory in every thread.
  const { S3Store } = await import('./s3.ts')
  return new S3Store(settings, timing)
}
