/** The checks of resolvers and lists of revoked host keys, at the start and by `sallyport check`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { sallyportCommand } from '../peers/broker.ts'
import { run } from '../peers/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-trust-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function command(name: 'check' | 'serve', config: Record<string, unknown>) {
  const file = join(folder, 'sallyport.yaml')
  const off = { https: 'off', telnet: 'off', rlogin: 'off', vnc: 'off', rdp: 'off', metrics: 'off' }
  const listen = { ...off, ssh: { host: '127.0.0.1', port: 0 } }
  writeFileSync(file, stringify({ data_dir: 'data', listen, ...config }))
  const done = await run(...sallyportCommand([name, '--config', file]))
  return { code: done.code, said: done.stdout + done.stderr }
}

test('a list that is none stops the start, and check says so', async () => {
  const list = join(folder, 'revoked')
  writeFileSync(list, 'nonsense')
  for (const name of ['check', 'serve'] as const) {
    const { code, said } = await command(name, { ssh: { revoked_host_keys: list } })
    expect(code).toBe(1)
    expect(said).toContain('has a line 1 that is no public key')
  }
  writeFileSync(list, '# nobody\n')
  expect((await command('check', { ssh: { revoked_host_keys: list } })).code).toBe(0)
})

test('check warns of a resolver that is elsewhere', async () => {
  const servers = [{ host: '127.0.0.1' }, { host: '::1', port: 5353 }, { host: '192.0.2.53' }]
  const { code, said } = await command('check', { dns: { servers } })
  expect(code).toBe(0)
  expect(said).toMatch(/^ok +dns +127\.0\.0\.1 port 53$/m)
  expect(said).toMatch(/^ok +dns +::1 port 5353$/m)
  expect(said).toMatch(/^warning +dns +192\.0\.2\.53 port 53 is not on this machine/m)
})
