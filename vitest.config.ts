import { defineConfig } from 'vitest/config'
import { GATE_COPIES } from './src/workers/copying-gate.ts'
import { ENGINE } from './test/peers/databases.ts'
import { ALSO_ON_POSTGRES, filesOf, type ProjectName } from './test/projects.ts'
import { LongestFirst } from './test/sequence.ts'

/** Hundreds of its tests drive real programs, and wait for them: three files for two processors; a fourth makes all slower. */
const driving = (name: ProjectName, { isolate = false } = {}) => ({
  extends: true as const,
  test: {
    name,
    ...filesOf(name),
    globalSetup: ['test/peers/global-setup.ts'],
    // Loading what a hundred files import once for each of them took minutes.
    isolate,
    maxWorkers: 3,
    sequence: { groupOrder: 1 },
    // Brokers that a test starts give their proxies copies of what the gate says, as another process would get them.
    env: { [GATE_COPIES]: '1' },
  },
})

export default defineConfig({
  test: {
    pool: 'forks',
    // Node runs the sources by itself, and keeps what it compiled: a fifth less time than through vite.
    experimental: { viteModuleRunner: false },
    sequence: { sequencer: LongestFirst },
    // A slow machine fails no test: the limits end what hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          ...filesOf('unit'),
          setupFiles: ['test/unit-guard.ts'],
          // Its files share two processes and what those have imported. Loading it anew for each takes twice their time.
          isolate: false,
          maxWorkers: 2,
        },
      },
      driving('memory', { isolate: true }),
      driving('slow'),
      driving('e2e'),
      driving('peers'),
      {
        extends: true,
        test: {
          name: 'postgres',
          ...ALSO_ON_POSTGRES,
          globalSetup: ['test/peers/global-setup.ts', 'test/peers/postgres-setup.ts'],
          isolate: false,
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
          env: { [GATE_COPIES]: '1', [ENGINE]: 'postgres' },
        },
      },
    ],
  },
})
