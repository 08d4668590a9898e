import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { knownKeys } from '../../src/config/check.ts'
import { configJsonSchema } from '../../src/config/jsonschema.ts'
import { parseConfig } from '../../src/config/load.ts'
import { ConfigSchema } from '../../src/config/schema.ts'

const read = (name: string) => readFileSync(new URL(`../../config/${name}`, import.meta.url), 'utf8')
const documented = read('sallyport.yaml')
/** Examples have a `#` that is not followed by one space and text. */
const uncommented = documented.replace(/^(\s*)#(?! \S|$)/gm, '$1')
const surroundings = {
  env: { S3_SECRET_KEY: 'longenough', SNMP_AUTH_PASSWORD: 'longenough', SNMP_PRIV_PASSWORD: 'longenough' },
  hostname: 'box',
}

test('config/sallyport.yaml as it is equals the defaults', () => {
  expect(parseConfig(documented, '/etc/sallyport.yaml', surroundings)).toEqual(
    parseConfig('', '/etc/sallyport.yaml', surroundings),
  )
})

test('config/sallyport.yaml with its examples in use is in order but for the file that two refer to', () => {
  expect(() => parseConfig(uncommented, '/etc/sallyport.yaml', surroundings)).toThrow(
    /^[^\n]*snmp\.agent\.v2c\.community: cannot read the secret[^\n]*\n[^\n]*snmp\.traps\[0\]\.community: cannot read the secret[^\n]*$/,
  )
  const config = parseConfig(
    uncommented.replaceAll('{ file: snmp-community }', 'longenough'),
    '/etc/sallyport.yaml',
    surroundings,
  )
  expect(config.recordings.objectStore).toMatchObject({ bucket: 'recordings', segmentInterval: 15_000 })
  expect(config.syslog.map(({ transport }) => transport)).toEqual(['udp', 'tls'])
  expect(config.snmp.agent).toMatchObject({ port: 161, v3: { auth: 'sha256', priv: 'aes256' } })
  expect(config.snmp.traps.map(({ version }) => version)).toEqual(['2c', 3])
})

test.each(knownKeys(ConfigSchema))('config/sallyport.yaml documents %s', (key) => {
  expect(documented).toMatch(new RegExp(`^[\\s#-]*(.*[{,] *)?${key.split('.').at(-1)}:`, 'm'))
})

test('config/schema.json is what the schema makes', () => {
  expect(read('schema.json')).toBe(configJsonSchema())
})
