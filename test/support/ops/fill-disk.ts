import { open } from 'node:fs/promises'

/** Fills the disk that holds this path to the last byte, with one file. */
export async function fillDisk(path: string): Promise<void> {
  const file = await open(path, 'w')
  try {
    for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) {
      try {
        for (;;) await file.write(Buffer.alloc(bytes))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    }
  } finally {
    await file.close()
  }
}
