import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SIGN_IN_IDLE } from '../../src/api/http/limits.ts'
import type { SessionRecord } from '../../src/model/objects.ts'
import { ADMIN, type Harness, startHarness } from './harness.ts'

const SESSION: Omit<SessionRecord, 'id' | 'user'> = {
  begin: Date.UTC(2030, 11, 31),
  sourceIp: '192.0.2.7',
  protocol: 'SSH',
  subprotocols: [],
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  targetHost: '192.0.2.1',
  authorization: 'ops:targets',
  isRecorded: false,
  bytesIn: 0,
  bytesOut: 0,
}

let h: Harness
beforeAll(async () => {
  h = await startHarness()
  for (const name of ['kim', 'lee']) await h.addUser(name, 'user')
})
afterAll(() => h.close())

const list = async (cookie: string) => (await h.call('GET', '/signins', { cookie })).body

describe('the own sign-ins', () => {
  it('are listed, with where they came from, and nobody else’s', async () => {
    await h.signIn('lee')
    const first = await h.signIn('kim')
    const agent = `curl/8\u00e9${'x'.repeat(500)}`
    const body = { user: 'kim', password: 'kim password' }
    const second = await h.call('POST', '/session', { body, headers: { 'user-agent': agent } })
    const cookie = String(second.headers['set-cookie']).split(';')[0]!
    const own = await list(cookie)
    expect(own.map(({ is_current }: { is_current: boolean }) => is_current)).toEqual([true, false])
    expect(own[0]).toMatchObject({ client_ip: '127.0.0.1', method: 'api_password' })
    expect(own[0].agent).toMatch(/^curl\/8 +x+$/)
    expect(own[0].agent).toHaveLength(200)
    expect((await list(first))[1].is_current).toBe(true)
    h.clock.now += SIGN_IN_IDLE - 1
    expect(await list(cookie)).toHaveLength(2)
    h.clock.now += 2
    expect(await list(cookie)).toHaveLength(1)
  })

  it('are ended one by one, only one’s own, each with its event', async () => {
    const [kim, other, lee] = [await h.signIn('kim'), await h.signIn('kim'), await h.signIn('lee')]
    const [, theirs] = await list(kim)
    expect((await h.call('DELETE', `/signins/${theirs.id}`, { cookie: lee })).status).toBe(404)
    const before = (await h.events('auth.sign_out')).length
    h.audit.broken = true
    expect((await h.call('DELETE', `/signins/${theirs.id}`, { cookie: other })).status).toBe(503)
    h.audit.broken = false
    const mine = (await list(other)).find((one: { is_current: boolean }) => !one.is_current)
    expect((await h.call('DELETE', `/signins/${mine.id}`, { cookie: other })).status).toBe(204)
    const events = (await h.events('auth.sign_out')).slice(before)
    expect(events).toMatchObject([{ user: 'kim', count: 1 }])
    expect((await h.call('GET', '/session', { cookie: other })).status).toBe(200)
  })

  it('are ended everywhere, and running sessions only if that is wanted', async () => {
    for (const [id, user] of [
      ['01K9T5RZ8Q4W6X2C3V1B0N7M5A', 'kim'],
      ['01K9T5RZ8Q4W6X2C3V1B0N7M5B', 'lee'],
    ] as const)
      await h.store.sessions.create({ ...SESSION, id, user })
    const [kim, other, lee] = [await h.signIn('kim'), await h.signIn('kim'), await h.signIn('lee')]
    expect((await h.call('POST', '/signins/end', { cookie: kim, body: {} })).status).toBe(204)
    for (const cookie of [kim, other]) expect((await h.call('GET', '/session', { cookie })).status).toBe(401)
    expect((await h.call('GET', '/session', { cookie: lee })).status).toBe(200)
    expect(h.killed).toEqual([])
    const cookie = await h.signIn('kim')
    const body = { with_sessions: true }
    expect((await h.call('POST', '/signins/end', { cookie, body })).status).toBe(204)
    expect(h.killed).toMatchObject([{ id: '01K9T5RZ8Q4W6X2C3V1B0N7M5A', by: 'kim' }])
  })

  it('are within reach of a key that acts for the user, and of no other', async () => {
    const cookie = await h.signIn(ADMIN.user)
    const made = await h.call('POST', '/apikeys', { cookie, body: { key_name: 'a', profile: 'user' } })
    const headers = { 'x-auth-key': made.body.api_key }
    expect((await h.call('GET', '/signins', { headers })).body.error).toBe('user_context_required')
    const acting = { ...headers, 'x-auth-user': 'lee' }
    expect((await h.call('GET', '/signins', { headers: acting })).status).toBe(200)
  })
})

describe('security keys', () => {
  const fresh = (name: string, byte: number) => ({
    name,
    credentialId: Uint8Array.of(byte),
    publicKey: Uint8Array.of(byte),
    signCount: 0,
    transports: ['usb'],
    created: h.clock.now,
  })

  it('are listed and removed by administrators, and all go with a reset', async () => {
    const lee = (await h.store.users.find('lee'))!
    for (const [index, name] of ['blue', 'red'].entries())
      await h.store.securityKeys.add(lee.id, fresh(name, index), 16)
    const [admin, own, kim] = [await h.signIn(), await h.signIn('lee').catch(() => ''), await h.signIn('kim')]
    // With a key, a password is not enough any more; the API cannot ask for it, and says where it can be.
    expect(own).toBe('')
    const asked = await h.call('POST', '/session', { body: { user: 'lee', password: 'lee password' } })
    expect(asked.body.challenge.message).toContain('a security key, which only a browser can ask for')
    const answer = { challenge: asked.body.challenge.id, answers: ['123456'] }
    expect((await h.call('POST', '/session', { body: answer })).body.error).toBe('invalid_credentials')
    const path = '/users/lee/securitykeys'
    expect((await h.call('GET', path, { cookie: kim })).status).toBe(404)
    const { body: listed } = await h.call('GET', path, { cookie: admin })
    expect(listed).toMatchObject([{ name: 'blue', last_use: null }, { name: 'red' }])
    expect((await h.call('DELETE', `${path}/${listed[0].id}`, { cookie: kim })).status).toBe(403)
    expect((await h.call('DELETE', `${path}/${listed[0].id}`, { cookie: admin })).status).toBe(204)
    expect(await h.events('factor.key_remove')).toMatchObject([{ user: 'admin', object: 'lee blue' }])
    expect((await h.call('GET', '/users/lee/totp', { cookie: admin })).body).toMatchObject({
      security_keys: 1,
    })
    expect((await h.call('DELETE', '/users/lee/totp', { cookie: admin })).status).toBe(204)
    expect((await h.call('GET', path, { cookie: admin })).body).toEqual([])
    await h.signIn('lee')
  })

  it('are not removed by a stolen session of their owner', async () => {
    const admin = await h.signIn()
    const self = (await h.store.users.find(ADMIN.user))!
    await h.store.securityKeys.add(self.id, fresh('own', 9), 16)
    const [{ id }] = (await h.call('GET', '/users/admin/securitykeys', { cookie: admin })).body
    expect((await h.call('DELETE', `/users/admin/securitykeys/${id}`, { cookie: admin })).status).toBe(403)
    await h.store.securityKeys.remove(self.id, id)
  })
})
