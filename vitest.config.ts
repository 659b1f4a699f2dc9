import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: [
      'test/support/servers/server.ts',
      'test/support/servers/s3-programs.ts',
      'test/support/servers/pgbouncer.ts',
    ],
    // Processes, not threads: tests kill connections and start threads of their own.
    pool: 'forks',
    // Generous, since a test that waits for something waits for a condition: only a real hang comes near.
    // Concurrent tests wait nearly all of their time: for seconds of silence, and for pauses between tries.
    maxConcurrency: 8,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
  },
})
