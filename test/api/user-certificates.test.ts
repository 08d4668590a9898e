/** Certificates for SSH keys: made for users that have signed in, listed, withdrawn. ssh-keygen reads them. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { opensshKey } from '../identity/keys.ts'
import { type Harness, startHarness } from './harness.ts'

const [NAME, PASSWORD] = ['u-user', 'u-user password']
let h: Harness
let cookie: string
let lifetime: number | undefined

beforeEach(async () => {
  lifetime = 8 * 3600_000
  h = await startHarness({ certificateLifetime: () => lifetime })
  await h.addUser(NAME, 'user')
  cookie = await h.signIn(NAME, PASSWORD)
})
afterEach(() => h.close())

const { line: LINE } = opensshKey('ed25519')
const ask = (body: object = { public_key: LINE }, options: object = { cookie }) =>
  h.call('POST', '/session/certificate', { ...options, body })
const list = (as = cookie, user = NAME) => h.call('GET', `/users/${user}/certificates`, { cookie: as })

function read(certificate: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  try {
    const file = join(folder, 'key-cert.pub')
    writeFileSync(file, `${certificate}\n`)
    return execFileSync('ssh-keygen', ['-L', '-f', file], { encoding: 'utf8' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

it.each([
  ['ed25519', undefined],
  ['ecdsa', 256],
  ['ecdsa', 521],
  ['rsa', 3072],
] as const)('is made for a key of %s %s, as ssh-keygen reads it', async (type, bits) => {
  const { line } = opensshKey(type, bits)
  const made = await ask({ public_key: line, duration: 3600 })
  expect(made.status).toBe(201)
  const text = read(made.body.certificate)
  expect(text).toContain('user certificate')
  expect(text).toContain(`Key ID: "sallyport user=${NAME}"`)
  expect(text).toContain(`Serial: ${made.body.serial}`)
  expect(text).toContain(made.body.fingerprint)
  expect(text).toMatch(/Principals: \n\s+u-user\n/)
  expect(text).toContain('Critical Options: (none)')
  expect(Date.parse(made.body.end) - h.clock.now).toBe(3600_000)
  expect(await h.events('object.create')).toMatchObject([
    { object_type: 'user certificate', user: NAME, object: expect.stringContaining(made.body.serial) },
  ])
})

it('is listed until it ends, and not shown to others', async () => {
  const made = (await ask({ public_key: LINE, duration: 3600 })).body
  const { certificate: _, ...row } = made
  expect((await list()).body).toEqual([{ ...row, source_ip: '127.0.0.1' }])
  await h.addUser('u-other', 'user')
  const other = await h.signIn('u-other', 'u-other password')
  const admin = await h.signIn()
  expect((await list(other)).status).toBe(404)
  expect((await list(admin)).body).toHaveLength(1)
  const path = `/users/${NAME}/certificates/${made.id}`
  expect((await h.call('DELETE', path, { cookie: other })).status).toBe(404)
  expect((await h.call('DELETE', path, { cookie: admin })).status).toBe(204)
  expect((await list()).body).toEqual([])
  expect(await h.events('object.delete')).toMatchObject([
    { object_type: 'user certificate', user: 'admin', object: expect.stringContaining(NAME) },
  ])
  await ask({ public_key: LINE, duration: 3600 })
  h.clock.now += 3600_000
  expect((await list(await h.signIn())).body).toEqual([])
})

it('is one of sixteen at most: the oldest goes', async () => {
  const ids: string[] = []
  for (let i = 0; i < 18; i++) ids.push((await ask()).body.id)
  expect((await list()).body.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2))
})

it('is not made for API keys, for bad keys, or for longer than the configuration says', async () => {
  const admin = await h.signIn()
  const { api_key: key } = (
    await h.call('POST', '/apikeys', {
      cookie: admin,
      body: { key_name: 'ci', profile: 'user', users: [NAME] },
    })
  ).body
  const byKey = await ask({ public_key: LINE }, { headers: { 'x-auth-key': key, 'x-auth-user': NAME } })
  expect([byKey.status, byKey.body.error]).toEqual([403, 'forbidden'])
  for (const line of [
    '',
    'ssh-ed25519 AAAA',
    `no-pty ${LINE}`,
    opensshKey('rsa', 1024).line,
    `${LINE}\n${LINE}`,
  ]) {
    const refused = await ask({ public_key: line })
    expect([refused.status, refused.body.details[0].field]).toEqual([400, 'public_key'])
  }
  const long = await ask({ public_key: LINE, duration: 8 * 3600 + 1 })
  expect(long.body.details).toMatchObject([{ field: 'duration', message: 'expected 28800 seconds at most' }])
  lifetime = undefined
  expect((await ask()).status).toBe(403)
  expect((await list()).body).toEqual([])
})
