import { expect, test } from 'vitest'
import { configChanges, keysForRestart } from '../../src/config/changes.ts'
import { parseConfig } from '../../src/config/load.ts'

const parse = (text: string) =>
  parseConfig(text, '/etc/sallyport/sallyport.yaml', { env: {}, hostname: 'box' })
const AGENT = 'v2c: { community: figures-please }'

test.each([
  ['nothing', 'log: {}', '', ''],
  ['an agent', `snmp: { agent: { ${AGENT} } }`, 'snmp.agent, secret_files[0]', ''],
  ['traces', 'traces: { endpoint: "https://c.example.com" }', 'traces', ''],
  [
    'networks, and a port',
    'listen: { telnet: { allow: [192.0.2.1], port: 2323 } }',
    'listen.telnet.allow[0], listen.telnet.allow[1], listen.telnet.port',
    'listen.telnet.port',
  ],
  [
    'retention, and free space',
    'recordings: { keep_days: 3, min_free: 2GiB, alarm_free: 4GiB }',
    'recordings.keep_days, recordings.min_free, recordings.alarm_free',
    'recordings.min_free, recordings.alarm_free',
  ],
  ['workers', 'workers: 7\nssh: { motd: hello }', 'workers, ssh.motd', 'workers'],
])('the keys that changed, and those that wait for a restart: %s', (_, text, changed, waiting) => {
  const [before, after] = [
    parse('workers: 3'),
    parse(text.includes('workers') ? text : `workers: 3\n${text}`),
  ]
  const sorted = (names: string) => names.split(', ').toSorted()
  expect(sorted(configChanges(before, after))).toEqual(sorted(changed))
  expect(sorted(keysForRestart(before, after))).toEqual(sorted(waiting))
})

test('the certificate of a listener is read again, its port is not', () => {
  const listen = (port: number, more: string) => parse(`listen: { telnets: { port: ${port}${more} } }`)
  const before = listen(2323, '')
  const after = listen(2324, ', certificate: /c, key: /k')
  expect(configChanges(before, after)).toContain('listen.telnets.certificate')
  expect(keysForRestart(before, after)).toBe('listen.telnets.port')
})
