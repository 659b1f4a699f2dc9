import { FilesystemStore } from './filesystem.ts'
import { S3Store } from './s3.ts'
import type { Patience } from './s3-requests.ts'
import type { ObjectStore, StoreSettings } from './store.ts'

/** Connects to nothing yet: check() tells whether the store is there. Nothing needs to be closed. */
export function openStore(settings: StoreSettings, patience?: Patience): ObjectStore {
  return settings.kind === 's3' ? new S3Store(settings, patience) : new FilesystemStore(settings)
}
