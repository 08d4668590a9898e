/** No change is lost silently: entity tags, simultaneous changes, and repeated requests. */
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { IDEMPOTENCY_LIFETIME } from '../../src/api/http/limits.ts'
import { Turns } from '../../src/api/http/turns.ts'
import { openVault } from '../../src/vault/vault.ts'
import { isOnPostgres } from '../peers/databases.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  h.call(method, path, { cookie, headers, ...(body === undefined ? {} : { body }) })
const tagOf = (answer: Answer): string => String(answer.headers['etag'])
const tag = async (path: string): Promise<string> => tagOf(await call('GET', path))

describe('an entity tag', () => {
  it('is the same until the object changes, whoever asks by whatever name and version', async () => {
    const made = await call('POST', '/devices', { device_name: 'd1', host: '192.0.2.1' })
    expect(tagOf(made)).toMatch(/^"[\w-]{22}"$/)
    expect(await tag('/devices/D1')).toBe(tagOf(made))
    expect(await tag(`/api/v2.3/devices/${made.body.id}`)).toBe(tagOf(made))
    expect(tagOf(await call('PUT', '/devices/d1', { host: '192.0.2.1' }))).toBe(tagOf(made))
    const changed = await call('PUT', '/devices/d1', { host: '192.0.2.2' })
    expect(tagOf(changed)).not.toBe(tagOf(made))
    expect(await tag('/devices/d1')).toBe(tagOf(changed))
  })

  it('changes with a secret, which nobody sees', async () => {
    const credentials = [{ type: 'password', password: 'same' }]
    await call('POST', '/accounts', { account_name: 'a1', device: 'd1', credentials })
    const before = await tag('/accounts/a1@local')
    const after = tagOf(await call('PUT', '/accounts/a1@local', { credentials }))
    expect(after).not.toBe(before)
    expect(await tag('/accounts/a1@local')).toBe(after)
    await call('POST', '/users', { user_name: 'u1', password: 'passage one' })
    const user = await tag('/users/u1')
    expect(tagOf(await call('PUT', '/users/u1', { password: 'passage one' }))).not.toBe(user)
  })

  it('of a key that was just made is that of the key without the secret', async () => {
    const made = await call('POST', '/apikeys', { key_name: 'tagged', profile: 'user' })
    expect(await tag('/apikeys/tagged')).toBe(tagOf(made))
  })
})

describe('If-Match', () => {
  it('lets a change pass that is made to what was read, and no other', async () => {
    const read = await tag('/devices/d1')
    const mine = await call('PUT', '/devices/d1', { description: 'mine' }, { 'if-match': read })
    expect(mine.status).toBe(200)
    const theirs = await call('PUT', '/devices/d1', { description: 'theirs' }, { 'if-match': read })
    expect([theirs.status, theirs.body.error]).toEqual([412, 'precondition_failed'])
    const removal = await call('DELETE', '/devices/d1', undefined, { 'if-match': read })
    expect(removal.status).toBe(412)
    expect((await call('GET', '/devices/d1')).body.description).toBe('mine')
    const list = `"nonsense", ${tagOf(mine)}`
    expect((await call('PUT', '/devices/d1', { description: 'a' }, { 'if-match': list })).status).toBe(200)
    expect((await call('PUT', '/devices/d1', { description: 'b' }, { 'if-match': '*' })).status).toBe(200)
    const weak = `W/${await tag('/devices/d1')}`
    expect((await call('PUT', '/devices/d1', { description: 'c' }, { 'if-match': weak })).status).toBe(412)
  })

  it('of many at once lets one pass', async () => {
    const read = await tag('/devices/d1')
    const change = (n: number) => call('PUT', '/devices/d1', { description: `n${n}` }, { 'if-match': read })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => change(n)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(412)])
    const winner = answers.find(({ status }) => status === 200)
    expect((await call('GET', '/devices/d1')).body.description).toBe(winner?.body.description)
    // Refused changes are not audited as changes.
    const told = (await h.events('object.update')).filter((one) => String(one['changes']).includes('"n'))
    expect(told).toHaveLength(1)
  })

  it('guards a password that two administrators set', async () => {
    const read = await tag('/users/u1')
    const set = (password: string) => call('PUT', '/users/u1', { password }, { 'if-match': read })
    expect(
      (await Promise.all([set('the one passage'), set('the other one')])).map(({ status }) => status).sort(),
    ).toEqual([200, 412])
  })
})

describe('changes at the same moment', () => {
  it('of different fields are all made', async () => {
    const changes = [{ display_name: 'x' }, { email: 'u1@example.com' }, { ip_source: ['10.0.0.0/8'] }]
    await Promise.all(changes.map((one) => call('PUT', '/users/u1', one)))
    expect((await call('GET', '/users/u1')).body).toMatchObject(Object.assign({}, ...changes))
  })

  it('that another process made between reading and writing are told, not overwritten', async () => {
    const { store } = h
    const device = (await store.devices.find('d1'))!
    await store.devices.update(device.id, { description: 'by the other' })
    await expect(store.devices.update(device.id, { host: 'x' }, device)).rejects.toMatchObject({
      name: 'ChangedError',
    })
    await expect(store.devices.remove(device.id, device)).rejects.toMatchObject({ name: 'ChangedError' })
    expect(await store.devices.find('d1')).toMatchObject({ host: '192.0.2.2', description: 'by the other' })
  })

  it('do not raise a user above the one who changes it', async () => {
    await h.addUser('op', 'operator')
    const operator = await h.signIn('op')
    await call('POST', '/users', { user_name: 'rising', password: 'passage one' })
    const [, taken] = await Promise.all([
      call('PUT', '/users/rising', { profile: 'product_administrator' }),
      h.call('PUT', '/users/rising', { cookie: operator, body: { password: 'known to the operator' } }),
    ])
    const { profile } = (await call('GET', '/users/rising')).body
    expect(profile).toBe('product_administrator')
    // The operator may have been the first, of a user without rights.
    const [first] = (await h.events('object.update')).filter(({ object }) => object === 'rising')
    expect(taken.status).toBe(first?.['user'] === 'op' && taken.status === 200 ? 200 : 403)
  })
})

describe('Idempotency-Key', () => {
  const post = (key: string, body: unknown, path = '/devices', as = cookie) =>
    h.call('POST', path, { cookie: as, headers: { 'idempotency-key': key }, body })

  it('makes one object of many equal requests, with the same answer', async () => {
    const body = { device_name: 'once', host: '192.0.2.3' }
    const answers = await Promise.all(Array.from({ length: 5 }, () => post('k-1', body)))
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(201))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(new Set(answers.map(({ headers }) => headers['location'])).size).toBe(1)
    expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true')).toHaveLength(4)
    const made = (await h.events('object.create')).filter(({ object }) => object === 'once')
    expect(made).toHaveLength(1)
    // The repeated answer is the old one, even after the object has changed.
    await call('PUT', '/devices/once', { description: 'changed' })
    expect((await post('k-1', body)).text).toBe(answers[0]?.text)
  })

  it('answers again with the tag, and keeps nothing by which a secret in the body could be tried', async () => {
    const body = { user_name: 'secretive', password: 'canary-guess-me' }
    const [first, again] = [await post('k-0', body, '/users'), await post('k-0', body, '/users')]
    expect(again.headers['etag']).toBe(first.headers['etag'])
    const rows = await h.sql('select request from idempotency_keys')
    const guess = createHash('sha256')
      .update(JSON.stringify([body]))
      .digest('hex')
    expect(rows.length).toBeGreaterThan(0)
    for (const { request } of rows) expect(Buffer.from(request as Uint8Array).toString('hex')).not.toBe(guess)
  })

  it('with another body is refused; on another collection and of another caller it is another key', async () => {
    const other = await post('k-1', { device_name: 'other', host: '192.0.2.3' })
    expect([other.status, other.body.error]).toEqual([422, 'idempotency_key_reused'])
    expect((await post('k-1', { group_name: 'k-1' }, '/usergroups')).status).toBe(201)
    await h.addUser('else', 'operator')
    const someone = await post('k-1', { device_name: 'else', host: 'h' }, '/devices', await h.signIn('else'))
    expect(someone.status).toBe(201)
  })

  it('is one caller’s own, whoever else has the same profile', async () => {
    const keys = []
    for (const n of [1, 2]) {
      await h.addUser(`twin${n}`, 'operator')
      keys.push((await call('POST', '/apikeys', { key_name: `twin${n}`, profile: 'operator' })).body.api_key)
    }
    const [first, second] = keys.map((key): Record<string, string> => ({ 'x-auth-key': key }))
    const callers = [
      { cookie: await h.signIn('twin1') },
      { cookie: await h.signIn('twin2') },
      { headers: first },
      { headers: second },
      { headers: { ...first, 'x-auth-user': 'twin1' } },
      { headers: { ...second, 'x-auth-user': 'twin1' } },
      { headers: { ...first, 'x-auth-user': 'twin2' } },
    ]
    for (const [n, { cookie: as, headers }] of callers.entries()) {
      const { status } = await h.call('POST', '/devices', {
        ...(as && { cookie: as }),
        headers: { ...headers, 'idempotency-key': 'k-twins' },
        body: { device_name: `twins${n}`, host: 'h' },
      })
      expect([n, status]).toEqual([n, 201])
    }
  })

  it('of a request that failed may be tried again', async () => {
    expect((await post('k-2', { device_name: 'no', host: '-bad-' })).status).toBe(400)
    expect((await post('k-2', { device_name: 'once', host: 'h' })).status).toBe(409)
    expect((await post('k-2', { device_name: 'yes', host: 'h' })).status).toBe(201)
  })

  it('does not show a key twice, nor keep it', async () => {
    const body = { key_name: 'once', profile: 'user' }
    const first = await post('k-3', body, '/apikeys')
    const again = await post('k-3', body, '/apikeys')
    expect(first.body.api_key).toMatch(/^sallyport_/)
    const { api_key: _secret, ...rest } = first.body
    expect(again.body).toEqual(rest)
  })

  it('is forgotten after a day, and the oldest when there are too many', async () => {
    const { store } = h
    const key = (n: number) => Buffer.from(`key ${n}`)
    const answer = (time: number) => ({ request: Buffer.from('r'), time, status: 201, answer: '{}' })
    for (let n = 1; n <= 4; n++)
      await store.idempotency.keep(key(n), `claim ${n}`, answer(h.clock.now + n), 0, 3)
    const known = await Promise.all([1, 2, 3, 4].map((n) => store.idempotency.find(key(n), 0)))
    expect(known.map((one) => one && one.time - h.clock.now)).toEqual([undefined, 2, 3, 4])
    const body = { device_name: 'daily', host: 'h' }
    expect((await post('k-4', body)).status).toBe(201)
    h.clock.now += IDEMPOTENCY_LIFETIME
    cookie = await h.signIn()
    expect((await post('k-4', body)).status).toBe(409)
  })

  // A takeover is the one time with two brokers on a database, and a server's has the claim of one.
  it.skipIf(isOnPostgres())(
    'gives the first answer over two processes too, asked at the same moment',
    async () => {
      const store = await h.open()
      const vault = await openVault(store, { file: join(dirname(h.database), 'master.key') })
      const other = await startHarness({ store, vault })
      for (let n = 0; n < 10; n++) {
        const name = `shared-${n}`
        const headers = { 'idempotency-key': name }
        const asked = [h, other, other, h].map((one) =>
          one.call('POST', '/devices', { cookie, headers, body: { device_name: name, host: 'h' } }),
        )
        const answers = await Promise.all(asked)
        expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
        expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
        expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1)
      }
      await other.close()
      await store.close()
    },
  )

  it('of a process that has died may be used again after a while', async () => {
    const { idempotency } = h.store
    const key = Buffer.from('claimed')
    expect(await idempotency.claim(key, 'first', 0, 60)).toBe(true)
    expect(await idempotency.claim(key, 'second', 59, 119)).toBe(false)
    expect(await idempotency.claim(key, 'second', 60, 120)).toBe(true)
    // The first one was not dead, but slow.
    await idempotency.release(key, 'first')
    expect(await idempotency.claim(key, 'third', 61, 121)).toBe(false)
    await idempotency.release(key, 'second')
    expect(await idempotency.claim(key, 'third', 61, 121)).toBe(true)
  })

  it.each(['', 'with space', 'ü', 'x'.repeat(256)])('refuses the key %j', async (key) => {
    const answer = await post(key, { device_name: 'bad-key', host: 'h' })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_field'])
  })
})

it('turns keep the order, go on after a failure, and leave nothing behind', async () => {
  const turns = new Turns()
  const done: number[] = []
  const work = (n: number) =>
    turns.run('x', async () => {
      await new Promise((resolve) => setTimeout(resolve, 5 - n))
      done.push(n)
      if (n === 2) throw new Error('two')
      return n
    })
  const results = await Promise.allSettled([work(1), work(2), work(3)])
  expect(done).toEqual([1, 2, 3])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})
