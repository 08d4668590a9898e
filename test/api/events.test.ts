/** GET /events: the audit log by filters, by pages and as lines, with rights, and the proof of a range. */
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rawPublicKey } from '../../recordings/container/format/signature.ts'
import { featureOf } from '../../src/api/resources/event-rights.ts'
import { EVENTS, severityOf } from '../../src/audit/events/catalogue.ts'
import { EVENT_FIELDS } from '../../src/audit/events/fields.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { AUDIT_FIELDS } from '../../src/store/audit-fields.ts'
import type { Harness } from './harness.ts'
import { startHarness } from './harness.ts'

const VERIFIER = join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs')
const LINES = { accept: 'application/x-ndjson' }
const BEGIN = Date.UTC(2031, 4, 30, 12)
const HOUR = 3_600_000
const SESSION = '01K9T5RZ8Q4W6X2C3V1B0N7M50'
const PLACE = { account: 'root', domain: 'local', device: 'srv1', service: 'ssh' }
const TAB = '\t'

let h: Harness
let cookie: string
const { privateKey } = generateKeyPairSync('ed25519')
const folder = mkdtempSync(join(tmpdir(), 'sallyport-events-'))
/** More than one stretch of a search. */
const MANY = 5200

beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  let now = BEGIN
  const audit = new AuditLog({
    repository: h.store.audit,
    now: () => now,
    checkpoints: {
      key: privateKey,
      anchor: { note: async () => {} },
      onError: (error) => {
        throw error
      },
    },
  })
  const session = { session: SESSION, user: 'ops1', ...PLACE, target_host: '192.0.2.9' }
  await audit.record('session.open', { ...session, client_ip: '192.0.2.7' })
  await audit.record('command', { ...session, object: 'rm -rf /srv', result: 'denied' })
  now += HOUR
  await audit.record('object.update', { user: 'admin', object_type: 'user', object: 'ops1' })
  await audit.record('object.update', { user: 'admin', object_type: 'device', object: 'srv1' })
  await audit.record('secret.change', { object_type: 'account', object: 'root@local@srv1' })
  await audit.record('hostkey.changed', { ...PLACE, reason: 'not the pinned one' })
  await audit.record('file.transfer', {
    session: SESSION,
    user: 'Ops1',
    path: 'quo"te\\tab\tÄ 100%',
    size: 4096,
  })
  now -= 2 * HOUR
  // The clock has jumped back.
  await audit.record('sink.down', { object_type: 'syslog', object: 'tcp://siem:514', reason: 'reset' })
  now += 5 * HOUR
  await Promise.all(Array.from({ length: MANY }, (_, i) => audit.record('config.reload', { user: `u${i}` })))
  await audit.close()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await h.close()
})

const ask = async (query: string, as = cookie) => await h.call('GET', `/events?${query}`, { cookie: as })
/** Returns the codes that a query finds, oldest first. */
async function codes(query: string, as = cookie): Promise<string[]> {
  const { status, body, text } = await ask(`sort=sequence&${query}`, as)
  expect(status, text).toBe(200)
  return body.map((one: { event: string }) => one.event)
}
const q = (text: string) => `q=${encodeURIComponent(text)}`

describe('a filter', () => {
  it.each([
    ['event=session.open', ['session.open']],
    ['event=session.*,command', ['session.open', 'command']],
    ['user=OPS1', ['session.open', 'command', 'file.transfer']],
    ['user=op*&event=command', ['command']],
    ['target=root@local:srv1', ['session.open', 'command', 'hostkey.changed']],
    ['target=*:srv1:*&severity=alert', ['hostkey.changed']],
    [`session=${SESSION.toLowerCase()}`, ['session.open', 'command', 'file.transfer']],
    ['address=192.0.2.7', ['session.open']],
    ['address=192.0.2.*&event=session.*', ['session.open']],
    ['text=RM%20-rf', ['command']],
    ['text=4096&event=file.*', ['file.transfer']],
    // The name of a field is no value.
    ['text=target_host', []],
    [`text=${encodeURIComponent('quo"te\\tab')}`, ['file.transfer']],
    ['text=100%25', ['file.transfer']],
    ['severity=warning&event=command,object.update', ['command']],
    ['from=2031-05-30T11&to=2031-05-30T12', ['session.open', 'command', 'sink.down']],
    ['from=2031-05-30T13:00:00Z&to=2031-05-30T13:00:00Z&user=admin', ['object.update', 'object.update']],
    ['to=2030', []],
    [q('size>=4096 && event~"file.*"'), ['file.transfer']],
    [q('size>4096'), []],
    [q('time>=2031-05-30T13 && time<2031-05-30T14 && object_type=USER'), ['object.update']],
    [q('user=admin && (object=ops1 || object=srv1)'), ['object.update', 'object.update']],
    [q('result=denied || reason~pinned'), ['command', 'hostkey.changed']],
  ])('%s', async (query, expected) => {
    expect(await codes(`from=2031-05&${query}`.replace(/from=2031-05&(?=.*from=)/, ''))).toEqual(expected)
  })

  it.each([
    ['event=no.such', 'event'],
    ['from=yesterday', 'from'],
    ['cursor=x', 'cursor'],
    ['severity=info', 'severity'],
    ['text=*********', 'text'],
    ['limit=-1', 'limit'],
    ['no_such=1', 'no_such'],
    ['fields=no_such', 'fields'],
  ])('%s is refused, and named', async (query, field) => {
    const { status, body } = await ask(query)
    expect([status, body.details[0].field]).toEqual([400, field])
  })

  it('of q is refused with its position', async () => {
    expect((await ask(q('user<5'))).body).toMatchObject({ error: 'invalid_search' })
  })
})

it('has the severity of the catalogue for every code and result', async () => {
  const { body } = await ask('limit=1000&sort=sequence')
  for (const { time: _time, event, severity, sequence: _row, message: _text, ...fields } of body)
    expect(severity).toBe(severityOf({ code: event, fields }))
  for (const severity of ['notice', 'warning', 'alert']) {
    const found = (await ask(`severity=${severity}&limit=1000&to=2031-05-30T14`)).body
    expect(found.every((one: { severity: string }) => one.severity === severity)).toBe(true)
    expect(found.length).toBeGreaterThan(0)
  }
})

it('has every field of the catalogue, and a feature for every code', () => {
  expect(Object.keys(AUDIT_FIELDS)).toEqual(expect.arrayContaining([...EVENT_FIELDS]))
  const unknown = Object.keys(EVENTS).filter((code) => featureOf(code) === undefined)
  expect(unknown.every((code) => code.startsWith('object.'))).toBe(true)
})

describe('pages', () => {
  it.each(['sort=sequence', 'sort=-sequence'])('by %s follow one another without a gap', async (sort) => {
    const rows: number[] = []
    let cursor = ''
    do {
      const { body, headers } = await ask(`${sort}&limit=1000&from=2031-05&event=config.reload${cursor}`)
      rows.push(...body.map((one: { sequence: number }) => one.sequence))
      cursor = headers['x-next-cursor'] === undefined ? '' : `&cursor=${headers['x-next-cursor']}`
    } while (cursor !== '')
    expect(rows).toHaveLength(MANY)
    const order = rows.toSorted((a, b) => (sort === 'sort=sequence' ? a - b : b - a))
    expect(rows).toEqual(order)
  })

  it('go on behind a row that the client names, with those that came since', async () => {
    const last = (await ask('limit=1')).body[0].sequence
    await h.record('auth.success', { user: 'late' })
    const next = await ask(`sort=sequence&cursor=${last}`)
    expect(next.body).toMatchObject([{ event: 'auth.success', user: 'late', sequence: last + 1 }])
    expect(next.headers['x-next-cursor']).toBeUndefined()
  })

  it('end with the log, whatever place a client names', async () => {
    const cursor = '1.1.999999999999999'
    const { status, text } = await h.call(
      'GET',
      `/events?limit=-1&sort=sequence&text=nowhere&cursor=${cursor}`,
      {
        cookie,
        headers: LINES,
      },
    )
    expect([status, text]).toEqual([200, ''])
    expect((await ask('limit=0')).body).toEqual([])
  })

  it('have the fields that were asked for', async () => {
    expect((await ask('event=command&fields=user,event,size')).body).toEqual([
      { user: 'ops1', event: 'command' },
    ])
  })
})

it('lines are all of them, and harmless for a terminal', async () => {
  const all = await h.call('GET', '/events?limit=-1&sort=sequence&from=2031-05', { cookie, headers: LINES })
  expect(all.headers['content-type']).toBe('application/x-ndjson')
  const lines = all.text.trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(MANY)
  expect(all.text).not.toContain(TAB)
  const rows = lines.map((line) => JSON.parse(line).sequence)
  expect(rows).toEqual(rows.toSorted((a, b) => a - b))
  const none = await h.call('GET', '/events?limit=-1&text=nowhere', { cookie, headers: LINES })
  expect([none.status, none.text]).toEqual([200, ''])
})

describe('rights', () => {
  const seen = async (profile: string, query: string) => {
    const own = await h.signIn(`e-${profile}`)
    return new Set(await codes(`limit=1000&to=2031-05-30T14&${query}`, own))
  }
  beforeAll(async () => {
    for (const profile of ['auditor', 'operator', 'user', 'sallyport_access_manager_audit'] as const)
      await h.addUser(`e-${profile}`, profile)
  })

  it('an auditor sees what an administrator sees', async () => {
    expect(await seen('auditor', '')).toEqual(new Set(await codes('limit=1000&to=2031-05-30T14')))
  })

  it('a profile of sessions sees no events of users, devices, secrets and sinks', async () => {
    const found = await seen('sallyport_access_manager_audit', 'from=2031-05')
    expect(found).toEqual(new Set(['session.open', 'command', 'file.transfer']))
    // Nor by a search for them.
    expect(await seen('sallyport_access_manager_audit', 'event=object.update')).toEqual(new Set())
    expect(await seen('sallyport_access_manager_audit', q('event=command || user~"*"'))).not.toContain(
      'object.update',
    )
  })

  it('an operator sees all but recordings, and no proof', async () => {
    const found = await seen('operator', 'from=2031-05')
    expect(found).toContain('object.update')
    expect(found).not.toContain('audit.checkpoint')
    const own = await h.signIn('e-operator')
    expect((await h.call('GET', '/events/proof?first=1', { cookie: own })).status).toBe(403)
    const gateway = await h.signIn('e-sallyport_access_manager_audit')
    expect((await h.call('GET', '/events/proof?first=1', { cookie: gateway })).status).toBe(403)
  })

  it('a user sees none', async () => {
    expect((await ask('', await h.signIn('e-user'))).status).toBe(403)
  })
})

describe('the proof of a range', () => {
  const key = Buffer.from(rawPublicKey(privateKey)).toString('base64')
  const verify = (text: string, ...more: string[]) => {
    const file = join(folder, 'range.jsonl')
    writeFileSync(file, text)
    const args = [VERIFIER, '--key', key, '--audit', file, '--json', '--range', ...more]
    const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    return { status, ...JSON.parse(stdout) }
  }
  const proof = async (query: string) => await h.call('GET', `/events/proof?${query}`, { cookie })
  const sequenceOf = async (query: string) => (await ask(`limit=1&${query}`)).body[0].sequence

  it('of the times of a session is verified offline, with what surrounds it', async () => {
    const { status, text } = await proof('from=2031-05-30T11&to=2031-05-30T13')
    expect(status).toBe(200)
    const rows = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['session.open', 'command', 'sink.down']),
    )
    expect(rows.at(-1).code).toBe('audit.checkpoint')
    expect(verify(text)).toMatchObject({ status: 0, ok: true, rows: rows.length })
    expect(await h.events('audit.export')).toMatchObject([
      { user: 'admin', object: `${rows[0].sequence}-${rows.at(-1).sequence}` },
    ])
  })

  it('from the middle begins with a checkpoint, and each damage is named', async () => {
    const first = await sequenceOf('event=config.reload&user=u700')
    const { text } = await proof(`first=${first}&last=${first + 10}`)
    const lines = text.trimEnd().split('\n')
    const begin = JSON.parse(lines[0]!)
    expect(begin.code).toBe('audit.checkpoint')
    expect(begin.sequence).toBeGreaterThan(1)
    expect(begin.sequence).toBeLessThanOrEqual(first)
    expect(JSON.parse(lines.at(-1)!).sequence).toBeGreaterThanOrEqual(first + 10)
    expect(verify(text)).toMatchObject({ ok: true, first: begin.sequence })
    const without = (index: number) => `${lines.toSpliced(index, 1).join('\n')}\n`
    expect(verify(without(3))).toMatchObject({ status: 1, fault: { code: 'missing_events' } })
    expect(verify(without(0))).toMatchObject({ status: 1, fault: {} })
    expect(verify(without(lines.length - 1))).toMatchObject({ fault: { code: 'cut_tail' } })
    expect(verify(text.replace('"user":"u700"', '"user":"u701"'))).toMatchObject({
      fault: { code: 'changed_event' },
    })
  })

  it('is no whole log', async () => {
    const { text } = await proof(`first=${await sequenceOf('event=config.reload&user=u700')}`)
    writeFileSync(join(folder, 'part.jsonl'), text)
    const args = [VERIFIER, '--key', key, '--audit', join(folder, 'part.jsonl')]
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([status, stdout]).toEqual([1, expect.stringContaining('missing_events')])
  })

  it.each(['', 'first=1&from=2031', 'first=1&last=2&to=2031'])(
    'needs one beginning and one end: %s',
    async (query) => {
      expect((await proof(query)).status).toBe(400)
    },
  )

  it('of nothing is not found', async () => {
    expect((await proof('first=999999999')).status).toBe(404)
    expect((await proof('from=2040')).status).toBe(404)
  })
})
