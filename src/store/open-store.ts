import { FilesystemStore } from './filesystem.ts'
import type { RetryPolicy } from './s3-requests.ts'
import type { ObjectStore, StoreSettings } from './store.ts'

/** Connects to nothing yet: check() tells whether the store is there. Nothing needs to be closed. */
export async function openStore(settings: StoreSettings, retryPolicy?: RetryPolicy): Promise<ObjectStore> {
  if (settings.kind === 'filesystem') return new FilesystemStore(settings)
  // Loaded only where it is used: the client of S3 takes memory in every thread.
  const { S3Store } = await import('./s3.ts')
  return new S3Store(settings, retryPolicy)
}
