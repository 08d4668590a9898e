/** Tickets for targets: MIT's KDCs, KDCs that lie, and the words for each failure. */
import { Buffer } from 'node:buffer'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Audit } from '../../src/audit/events/catalogue.ts'
import type { ServiceTicketAnswer } from '../../src/contract/gate.ts'
import type { RunningSession } from '../../src/gate/running.ts'
import { TargetTickets } from '../../src/gate/target-tickets.ts'
import { Kdc } from '../../src/identity/methods/kerberos/kdc.ts'
import { firstTicket } from '../../src/kerberos/requests.ts'
import { Secret } from '../../src/model/secret.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'

const HOST = 'win1.lab.test'
const PASSWORD = 'Alice-Pass1 canary'
let kdc: MitKdc
let tcpOnly: MitKdc
/** Same realm and account, another password: its answers are those of a stranger. */
let stranger: MitKdc

interface Case {
  kdcs?: { host: string; port: number }[]
  login?: string
  password?: string
  host?: string
  kerberosHost?: string
  realm?: string
  now?: () => number
  timeoutMs?: number
}

const at = (port: number) => ({ host: '127.0.0.1', port })
const events: Record<string, unknown>[] = []

function ticketsOf(one: Case): TargetTickets {
  const kerberos = {
    realm: one.realm ?? REALM,
    kdcs: one.kdcs ?? [at(kdc.port)],
    timeoutMs: one.timeoutMs ?? 10_000,
  }
  const password = () => Secret.of(one.password ?? PASSWORD)
  return new TargetTickets({
    store: {
      accounts: { find: async () => ({ id: 'A', domainId: 'D' }) },
      domains: { find: async () => ({ id: 'D', domainName: 'corp', description: '', kerberos }) },
      services: { find: async () => ({ kerberosHost: one.kerberosHost }) },
    } as unknown as ConstructorParameters<typeof TargetTickets>[0]['store'],
    vault: { credentials: async () => [{ type: 'password', password: password() }] },
    audit: {
      record: async (code: string, fields: object) => void events.push({ code, ...fields }),
    } as unknown as Audit,
    now: one.now ?? Date.now,
  })
}

const sessionOf = ({ host = HOST, login = 'alice' }: Case) =>
  ({
    id: 'S',
    user: 'ops1',
    source: { address: '192.0.2.7', port: 1 },
    basis: { proof: { method: 'password' } },
    target: { accountId: 'A', serviceId: 'V', host, accountLogin: login, protocol: 'RDP' },
  }) as unknown as RunningSession

async function issue(one: Case): Promise<ServiceTicketAnswer> {
  events.length = 0
  return await ticketsOf(one).issue(sessionOf(one))
}

/** Starts a server at UDP and TCP that answers each request with these bytes, and TCP with that length. */
async function liar(answer: (request: Buffer) => Buffer | Promise<Buffer>, length?: number): Promise<number> {
  const port = await freePort()
  const udp = createSocket('udp4')
  udp.on('message', async (request, from) => udp.send(await answer(request), from.port, from.address))
  udp.bind(port, '127.0.0.1')
  const tcp = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', async (request) => {
      const bytes = await answer(request.subarray(4))
      const head = Buffer.alloc(4)
      head.writeUInt32BE(length ?? bytes.length)
      socket.write(Buffer.concat([head, bytes]))
    })
  })
  tcp.listen(port, '127.0.0.1')
  closing.push(() => {
    udp.close()
    tcp.close()
  })
  return port
}
const closing: (() => void)[] = []
const passedTo = async (other: MitKdc, request: Buffer) =>
  await new Kdc({ host: '127.0.0.1', port: other.port, timeoutMs: 10_000 }).ask(
    request,
    new AbortController().signal,
  )

describeWithPeers('tickets for targets', ['krb5kdc', 'kdb5_util', 'kadmin.local'], () => {
  beforeAll(async () => {
    ;[kdc, tcpOnly, stranger] = await Promise.all([startKdc(), startKdc(true), startKdc()])
    const fill = async ({ admin }: MitKdc, password: string) => {
      await admin(`addprinc +requires_preauth -pw "${password}" alice`)
      await admin(`addprinc -randkey TERMSRV/${HOST}`)
    }
    await Promise.all([fill(kdc, PASSWORD), fill(tcpOnly, PASSWORD), fill(stranger, 'other')])
    for (const person of [
      '-requires_preauth -pw other open',
      '+requires_preauth -allow_tix -pw x disabled',
      '+requires_preauth -expire 2020-01-01 -pw x expired',
      `+requires_preauth -pwexpire 2020-01-01 -pw "${PASSWORD}" stale`,
    ])
      await kdc.admin(`addprinc ${person}`)
  }, 300_000)
  afterEach(() => {
    for (const close of closing.splice(0)) close()
  })
  afterAll(async () => {
    await Promise.all([kdc?.stop(), tcpOnly?.stop(), stranger?.stop()])
  })

  test.each(['alice', 'LAB\\alice', `alice@${REALM.toLowerCase()}`])('is issued to %s', async (login) => {
    const answer = await issue({ login })
    expect(answer).toMatchObject({ result: 'issued', ticket: { realm: REALM, client: ['alice'] } })
    expect(events).toEqual([
      expect.objectContaining({
        code: 'session.kerberos',
        session: 'S',
        object: `TERMSRV/${HOST}@${REALM}`,
        destination: `127.0.0.1:${kdc.port}`,
        result: 'success',
      }),
    ])
    const { key, ticket } = (answer as Extract<ServiceTicketAnswer, { result: 'issued' }>).ticket
    const said = JSON.stringify(events)
    for (const secret of [PASSWORD, ...[key.bytes, ticket].flatMap((one) => textsOf(one))])
      expect(said).not.toContain(secret)
  })

  test('a KDC that is away, and one without UDP: the next one is asked, and the event says so', async () => {
    const away = await freePort()
    expect(await issue({ kdcs: [at(away), at(tcpOnly.port)] })).toMatchObject({ result: 'issued' })
    expect(events[0]).toMatchObject({
      result: 'success',
      destination: `127.0.0.1:${tcpOnly.port}`,
      reason: expect.stringContaining(`127.0.0.1:${away}: `),
    })
    expect(await issue({ kdcs: [at(away)], timeoutMs: 1000 })).toMatchObject({
      result: 'failed',
      message: 'there is no Kerberos ticket for it: no KDC of the domain answers',
    })
    expect(events[0]).toMatchObject({ result: 'failure', reason: expect.stringMatching(/^no_kdc: 127/) })
  })

  test.each<[string, Case, string, RegExp, boolean]>([
    ['a wrong password', { password: 'wrong' }, 'wrong_password', /refused the account's password/, true],
    ['no proof asked, and a wrong password', { login: 'open' }, 'wrong_password', /password/, true],
    [
      'an account that is not there',
      { login: 'mallory' },
      'unknown_account',
      /does not know the account/,
      false,
    ],
    ['a disabled account', { login: 'disabled' }, 'account_disabled', /disabled/, true],
    ['an expired account', { login: 'expired' }, 'account_expired', /expired/, true],
    ['a password to be changed', { login: 'stale' }, 'password_must_change', /changed first/, true],
    ['a login of another realm', { login: 'alice@other.test' }, 'other_realm', /another realm/, false],
    ['a target that is not there', { host: 'win2.lab.test' }, 'unknown_service', /by this name/, false],
    ['a target by its address', { host: '192.0.2.9' }, 'no_host_name', /by its address/, false],
    ['an empty password', { password: '' }, 'no_password', /no password/, false],
  ])('%s is said', async (_case, one, failure, words, isFinal) => {
    const answer = await issue(one)
    expect(answer).toMatchObject({ result: 'failed', message: expect.stringMatching(words) })
    expect('isFinal' in answer).toBe(isFinal)
    expect(events[0]).toMatchObject({
      result: 'failure',
      reason: expect.stringMatching(new RegExp(`^${failure}\\b`)),
    })
  })

  test('the name of the service goes before the address of the device', async () => {
    expect(await issue({ host: '192.0.2.9', kerberosHost: HOST })).toMatchObject({ result: 'issued' })
  })

  test('clocks that differ are said with the seconds', async () => {
    const answer = await issue({ now: () => Date.now() - 3_600_000 })
    expect(answer).toMatchObject({
      result: 'failed',
      message: expect.stringMatching(/clocks .* differ too much: .*its clock is 3[56]\d\d s ahead of ours/),
    })
    expect(events[0]!['reason']).toMatch(/^clock_skew: /)
  })

  const LIARS: [string, (request: Buffer) => Buffer | Promise<Buffer>, number?][] = [
    ['sends garbage', () => Buffer.from('no Kerberos at all')],
    ['sends nothing', () => Buffer.alloc(0)],
    ['sends more than there may be', () => Buffer.alloc(0), 1 << 24],
    ['answers an older request', async (request) => lied(request, async () => await olderReply())],
    ['alters what it passes on', (request) => lied(request, (answer) => altered(answer))],
    ['answers for another realm', (request) => lied(request, (answer) => swap(answer, REALM, 'BAD.TEST'))],
    ['answers for another principal', (request) => lied(request, (answer) => swap(answer, 'alice', 'mallo'))],
  ]

  test.each(LIARS)(
    'a KDC that %s issues nothing, and the next one is asked',
    async (_case, answer, length) => {
      const port = await liar(answer, length)
      const failed = await issue({ kdcs: [at(port)], timeoutMs: 2000 })
      expect(failed.result).toBe('failed')
      expect(events[0]!['reason']).toMatch(/^(unproved_kdc|no_kdc)\b/)
      const both = await issue({ kdcs: [at(port), at(kdc.port)], timeoutMs: 2000 })
      expect(both.result).toBe('issued')
    },
  )

  test('a KDC that does not know the password makes no ticket', async () => {
    expect((await issue({ kdcs: [at(stranger.port)] })).result).toBe('failed')
  })
})

/** Passes a request on, and changes the answer unless it is an error. */
async function lied(request: Buffer, change: (answer: Buffer) => Buffer | Promise<Buffer>): Promise<Buffer> {
  const answer = await passedTo(kdc, request)
  return answer[0] === 0x7e ? answer : await change(answer)
}

/** Returns the KDC's answer to another request for a first ticket. */
async function olderReply(): Promise<Buffer> {
  let reply: Buffer = Buffer.alloc(0)
  const ask = async (request: Uint8Array) => {
    reply = await passedTo(kdc, Buffer.from(request))
    return reply
  }
  await firstTicket(
    { realm: REALM, userName: 'alice', password: Buffer.from(PASSWORD) },
    { now: Date.now, ask },
  )
  return reply
}

function altered(answer: Buffer): Buffer {
  const copy = Buffer.from(answer)
  copy[copy.length - 20]! ^= 1
  return copy
}

/** Replaces a text by another one of the same length. */
function swap(answer: Buffer, from: string, to: string): Buffer {
  const copy = Buffer.from(answer)
  for (let found = copy.indexOf(from); found >= 0; found = copy.indexOf(from, found + 1))
    copy.write(to, found)
  return copy
}

const textsOf = (bytes: Uint8Array): string[] => {
  const all = Buffer.from(bytes)
  return [all.toString('hex'), all.toString('base64'), JSON.stringify([...all]).slice(1, -1)]
}
