import type { StoreTiming } from '../timing.ts'
import { FilesystemStore, type SignsWith } from './filesystem.ts'
import type { ObjectStore, StoreSettings } from './store.ts'

/**
 * Opens the store without connecting: check() reports whether it is reachable. The store does not need to be closed.
 * @param signsWith returns the key, of those in the settings, that signs links to files of a local folder; if absent,
 *   the first key signs
 */
export async function openStore(
  settings: StoreSettings,
  timing: StoreTiming,
  signsWith?: SignsWith,
): Promise<ObjectStore> {
  if (settings.kind === 'filesystem') return new FilesystemStore(settings, signsWith)
  // Loaded only if needed: the S3 client takes memory in every thread.
  const { S3Store } = await import('./s3.ts')
  return new S3Store(settings, timing)
}
