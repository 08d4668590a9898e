/** The audit's resources: sessions, their events and recordings, host keys, and the reference. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { decodeTime } from 'ulid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sessionDirectory } from '../../recordings/container/keys.ts'
import type { Device, Service, SessionRecord } from '../../src/model/objects.ts'
import { newService } from '../store/fixture.ts'
import { type Harness, startHarness } from './harness.ts'

const CURRENT = '01K9T5RZ8Q4W6X2C3V1B0N7M5J'
const CLOSED = '01K9T5RZ8Q4W6X2C3V1B0N7M5K'

let h: Harness
let cookie: string
let device: Device
let service: Service
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  device = await h.store.devices.create({ deviceName: 'srv1', host: '192.0.2.1', description: '' })
  service = await h.store.services.create(newService(device.id))
  const session = {
    begin: h.clock.now,
    user: 'ops1',
    sourceIp: '198.51.100.7',
    protocol: 'SSH' as const,
    subprotocols: ['SSH_SHELL' as const],
    account: 'root',
    domain: 'local',
    device: 'srv1',
    service: 'ssh',
    targetHost: '192.0.2.1',
    authorization: 'ops:targets',
    isRecorded: true,
    bytesIn: 1,
    bytesOut: 2,
  }
  await h.store.sessions.create({ ...session, id: CURRENT })
  const recording = { state: 'sealed' as const, size: 9, frames: 3, digest: 'abc' }
  await h.store.sessions.create({
    ...session,
    id: CLOSED,
    end: h.clock.now + 1,
    result: 'killed',
    reason: 'r',
    recording,
  })
})
afterAll(() => h.close())

const get = (path: string) => h.call('GET', path, { cookie })

describe('sessions', () => {
  it('are listed by state', async () => {
    const ids = async (path: string) => (await get(path)).body.map((one: { id: string }) => one.id).sort()
    expect(await ids('/sessions')).toEqual([CURRENT, CLOSED])
    expect(await ids('/sessions?status=current')).toEqual([CURRENT])
    expect(await ids('/sessions?status=closed')).toEqual([CLOSED])
    expect((await get('/sessions?status=lost')).status).toBe(400)
  })

  it('show what the contract names', async () => {
    expect((await get(`/sessions/${CLOSED}`)).body).toEqual({
      id: CLOSED,
      url: `/api/v3.12/sessions/${CLOSED}`,
      begin: '2031-01-01T00:00:00.000Z',
      end: '2031-01-01T00:00:00.001Z',
      user: 'ops1',
      source_ip: '198.51.100.7',
      protocol: 'SSH',
      subprotocols: ['SSH_SHELL'],
      account: 'root',
      domain: 'local',
      device: 'srv1',
      service: 'ssh',
      target_host: '192.0.2.1',
      result: 'killed',
      killed: true,
      reason: 'r',
      authorization: 'ops:targets',
      approval: null,
      comment: null,
      ticket: null,
      is_recorded: true,
      bytes_in: 1,
      bytes_out: 2,
      api_key: null,
      recording: { state: 'sealed', size: 9, frames: 3, digest: 'abc' },
      suspended: null,
      legal_hold: null,
    })
    expect((await get(`/sessions/${CURRENT}`)).body).toMatchObject({
      end: null,
      result: null,
      recording: null,
    })
  })

  it('have the events that the audit log holds of them', async () => {
    await h.record('session.open', { session: CURRENT, user: 'ops1', device: 'srv1' })
    await h.record('session.open', { session: CLOSED, user: 'ops1', device: 'srv1' })
    const { body } = await get(`/sessions/${CURRENT}/events`)
    expect(body).toMatchObject([
      { event: 'session.open', session: CURRENT, user: 'ops1', time: '2031-01-01T00:00:00.000Z' },
    ])
    expect(body[0].message).toContain('ops1')
  })

  it('are killed with a reason while they run', async () => {
    const kill = (id: string, body: unknown) => h.call('POST', `/sessions/${id}/kill`, { cookie, body })
    expect((await kill(CURRENT, {})).status).toBe(400)
    expect((await kill(CURRENT, { reason: 'enough' })).status).toBe(204)
    expect(h.killed).toEqual([{ id: CURRENT, reason: 'enough', by: 'admin' }])
    expect((await kill(CLOSED, { reason: 'enough' })).body.error).toBe('not_running')
    expect((await kill('01K9T5RZ8Q4W6X2C3V1B0N7M5Z', { reason: 'enough' })).status).toBe(404)
  })

  it('are suspended with a reason while they run, and go on', async () => {
    const order = (id: string, what: string, body?: unknown) =>
      h.call('POST', `/sessions/${id}/${what}`, { cookie, ...(body !== undefined && { body }) })
    expect((await order(CURRENT, 'suspend', {})).status).toBe(400)
    expect((await order(CURRENT, 'resume')).body.error).toBe('not_suspended')
    expect((await order(CURRENT, 'suspend', { reason: 'wait' })).status).toBe(204)
    expect((await get(`/sessions/${CURRENT}`)).body.suspended).toMatchObject({ reason: 'wait', by: 'admin' })
    expect((await order(CURRENT, 'resume')).status).toBe(204)
    expect((await get(`/sessions/${CURRENT}`)).body.suspended).toBeNull()
    for (const what of ['suspend', 'resume']) {
      expect(
        (await order(CLOSED, what, what === 'suspend' ? { reason: 'wait' } : undefined)).body.error,
      ).toBe('not_running')
    }
  })

  it.each([
    ['', 'container', 'application/octet-stream'],
    ['.cast', 'cast', 'application/x-asciicast'],
    ['.cast3', 'cast3', 'application/x-asciicast'],
    ['.ttyrec?channel=2', 'ttyrec', 'application/x-ttyrec'],
    ['.txt', 'txt', 'text/plain; charset=utf-8'],
    ['.json', 'json', 'application/x-ndjson'],
    ['.html', 'html', 'text/html; charset=utf-8'],
    ['.png?at=2.5', 'png', 'image/png'],
    ['.mp4', 'mp4', 'video/mp4'],
    ['.webm', 'webm', 'video/webm'],
  ])('have a recording%s', async (suffix, format, type) => {
    const answer = await h.api.inject({
      url: `/api/sessions/${CLOSED}/recording${suffix}`,
      headers: { cookie },
    })
    expect([answer.statusCode, answer.body]).toEqual([200, `${format} of ${CLOSED}`])
    expect(answer.headers['content-type']).toBe(type)
    // A browser saves text written by a target, and never shows it.
    expect(answer.headers['content-disposition']).toMatch(/^attachment; /)
    expect(answer.headers['x-content-type-options']).toBe('nosniff')
    expect((await get(`/sessions/01K9T5RZ8Q4W6X2C3V1B0N7M5Z/recording${suffix}`)).status).toBe(404)
  })
})

describe('host keys', () => {
  it('are accepted and forgotten', async () => {
    const key = await h.store.hostKeys.create({
      deviceId: device.id,
      serviceId: service.id,
      keyType: 'ssh-ed25519',
      fingerprint: 'SHA256:abc',
      key: 'AAAA',
      firstSeen: h.clock.now,
      state: 'offered',
    })
    const path = `/hostkeys/${key.id}`
    expect((await get('/hostkeys')).body).toMatchObject([
      { device: 'srv1', service: 'ssh', state: 'offered' },
    ])
    const put = (body: unknown) => h.call('PUT', path, { cookie, body })
    expect((await put({ state: 'offered' })).status).toBe(400)
    expect((await put({ state: 'accepted', fingerprint: 'SHA256:mine' })).status).toBe(400)
    const { etag } = (await get(path)).headers
    const ifMatch = (method: string, tag: string) =>
      h.call(method, path, {
        cookie,
        headers: { 'if-match': tag },
        ...(method === 'PUT' && { body: { state: 'accepted' } }),
      })
    expect((await ifMatch('PUT', '"bogus"')).status).toBe(412)
    expect((await ifMatch('PUT', String(etag))).body.state).toBe('accepted')
    // The target shows another key now.
    expect((await ifMatch('DELETE', String(etag))).status).toBe(412)
    expect((await h.store.hostKeys.find(key.id))?.state).toBe('accepted')
    expect((await h.call('DELETE', path, { cookie })).status).toBe(204)
    expect((await get(path)).status).toBe(404)
    expect((await h.events()).slice(-2)).toMatchObject([
      { event: 'object.update', object_type: 'hostkey', object: 'srv1:ssh SHA256:abc' },
      { event: 'object.delete', object_type: 'hostkey' },
    ])
  })
})

describe('the reference', () => {
  it('is a page that needs nothing from elsewhere', async () => {
    const answer = await h.call('GET', '/doc/Usage.html')
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    // An example of a body has an address, which nothing asks for.
    expect(answer.text).not.toMatch(/<script|<img|<link|src=|https?:\/\/(?!HOST|soc\.example\.org)/i)
    expect(answer.text).toContain('id="search"')
    expect(answer.text).toContain('POST /accounts/{ref}/checkout')
    expect(answer.headers['content-security-policy']).toContain("default-src 'none'")
  })

  it('is an OpenAPI document with every route, its body and its answers', async () => {
    const { body } = await h.call('GET', '/openapi.json')
    expect(body.openapi).toBe('3.1.0')
    expect(body.servers).toEqual([{ url: '/api/v3.12' }])
    expect(Object.keys(body.paths['/devices/{device}/services/{ref}'])).toEqual(['get', 'put', 'delete'])
    const create = body.paths['/users'].post
    expect(create.operationId).toBe('postUsers')
    expect(create.requestBody.content['application/json'].schema.$ref).toBe('#/components/schemas/NewUser')
    expect(body.components.schemas.NewUser.required).toEqual(['user_name'])
    expect(Object.keys(create.responses)).toEqual([
      '201',
      '400',
      '401',
      '403',
      '404',
      '409',
      '413',
      '415',
      '422',
      '503',
    ])
  })

  it('tells the versions', async () => {
    expect((await h.call('GET', '/api/version')).body).toMatchObject({
      version: '3.12',
      oldest_version: '2.3',
    })
  })
})

describe('what is kept of a session', () => {
  const post = (path: string, body: object, as = cookie) => h.call('POST', path, { cookie: as, body })
  const remove = (id: string, query = '?reason=asked%20for', as = cookie) =>
    h.call('DELETE', `/sessions/${id}/recording${query}`, { cookie: as })

  it('is said by an auditor, with a reason, and stands in the audit', async () => {
    await h.addUser('olga', 'auditor')
    const auditor = await h.signIn('olga')
    expect((await post(`/sessions/${CLOSED}/hold`, {}, auditor)).status).toBe(400)
    expect((await post(`/sessions/${CLOSED}/hold`, { reason: 'case 7' }, auditor)).status).toBe(204)
    expect((await post(`/sessions/${CLOSED}/hold`, { reason: 'again' })).status).toBe(204)
    expect((await get(`/sessions/${CLOSED}`)).body.legal_hold).toEqual({
      by: 'olga',
      since: '2031-01-01T00:00:00.000Z',
      reason: 'case 7',
      release: null,
    })
    expect(await h.events('recording.hold')).toMatchObject([
      { session: CLOSED, user: 'olga', profile: 'auditor', reason: 'case 7' },
    ])
    expect((await remove(CLOSED, '?reason=x', auditor)).body.error).toBe('forbidden')
    expect((await remove(CLOSED)).body.error).toBe('on_hold')
    expect((await post(`/sessions/${CLOSED}/release`, { reason: 'closed' }, auditor)).status).toBe(204)
    expect((await get(`/sessions/${CLOSED}`)).body.legal_hold).toBeNull()
    expect(await h.events('recording.release')).toMatchObject([{ user: 'olga', reason: 'closed' }])
  })

  it('is deleted with a reason only, and never without an event', async () => {
    const id = '01K9T5RZ8Q4W6X2C3V1B0N7M5N'
    const [{ id: _, ...like }] = (await h.store.sessions.list({ status: 'closed' })).items as [SessionRecord]
    const recording = { state: 'failed' as const, size: 0, frames: 0, digest: '' }
    // The gate makes its folder before the session opens.
    mkdirSync(sessionDirectory(join(dirname(h.database), 'recordings'), id, decodeTime(id)), {
      recursive: true,
    })
    await h.store.sessions.create({ ...like, id, recording })
    expect((await remove(id, '')).body.error).toBe('invalid_field')
    h.audit.broken = true
    expect((await remove(id)).body.error).toBe('audit_unavailable')
    h.audit.broken = false
    expect((await h.store.sessions.find(id))?.recording?.state).toBe('failed')
    expect((await remove(id)).status).toBe(204)
    expect((await get(`/sessions/${id}`)).body.recording.state).toBe('deleted')
    expect((await remove(id)).body.error).toBe('not_found')
    expect(await h.events('recording.deleted')).toMatchObject([
      { session: id, user: 'admin', method: 'request', reason: 'asked for', size: 0 },
    ])
    const open = { ...recording, state: 'open' as const }
    await h.store.sessions.update(id, { recording: open })
    expect((await remove(id)).body.error).toBe('still_recording')
  })
})
