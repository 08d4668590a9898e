import { expect, test } from 'vitest'
import { configPath } from '../../src/commands/config-path.ts'

const SYSTEM = '/etc/sallyport/sallyport.yaml'

test.each([
  ['what the environment names, there or not', { SALLYPORT_CONFIG: '/srv/a.yaml' }, true, '/srv/a.yaml'],
  ['that of the system', {}, true, SYSTEM],
  ['that of the system, for an empty name', { SALLYPORT_CONFIG: '' }, true, SYSTEM],
  ['that of a clone', {}, false, 'config/sallyport.yaml'],
])('without an option it is %s', (_what, env, isInstalled, expected) => {
  expect(configPath(env, (path) => isInstalled && path === SYSTEM)).toBe(expected)
})
