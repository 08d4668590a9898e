import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/peers/rsa-host-key.ts', 'test/peers/port-claims.ts'],
    pool: 'forks',
    // Two processors; half of the tests' time is waiting for a time to pass.
    maxWorkers: 4,
    // Hundreds of tests drive real programs on two busy processors. What passes at its second attempt only is named
    // at the end of the run (test/run.mjs), so that it is looked at; it does not stop a submission.
    retry: process.env.CI ? 1 : 0,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
