/** Targets that are signed in to by Kerberos: MIT's GSS-API behind CredSSP, with tickets of MIT's KDC. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Gate, ServiceTicketAnswer } from '../../../../src/contract/gate.ts'
import { Kdc } from '../../../../src/identity/methods/kerberos/kdc.ts'
import { firstTicket, type HeldTicket, serviceTicket } from '../../../../src/kerberos/requests.ts'
import type { RdpOptions } from '../../../../src/model/rdp-options.ts'
import { type MitKdc, REALM, startKdc } from '../../../peers/kerberos.ts'
import { describeWithPeers } from '../../../peers/program.ts'
import { type KerberosTarget, startKerberosTarget } from '../../../peers/rdp/gssapi.ts'
import { createIdentity, type Identity, listen, serveCredSsp } from '../credssp/connections.ts'
import { openTarget } from '../sessions.ts'

const PEERS = ['krb5kdc', 'kdb5_util', 'kadmin.local', 'python3', 'python3-gssapi'] as const
const SERVICE = 'TERMSRV/localhost'
const LOGIN = { login: 'LAB\\alice', password: 'Alice-Pass1 ü' }

let kdc: MitKdc
let identity: Identity
let target: KerberosTarget
let stranger: KerberosTarget
const closing: (() => void)[] = []

async function ticketFor(service = SERVICE): Promise<HeldTicket> {
  const asked = new Kdc({ host: '127.0.0.1', port: kdc.port, timeoutMs: 10_000 })
  const { signal } = new AbortController()
  const access = { now: Date.now, ask: (request: Uint8Array) => asked.ask(request, signal) }
  const password = Buffer.from(LOGIN.password)
  const first = await firstTicket({ realm: REALM, userName: 'alice', password }, access)
  return await serviceTicket(first, service.split('/'), access)
}

const issued = ({ realm, client, ticket, key }: HeldTicket): ServiceTicketAnswer => ({
  result: 'issued',
  ticket: { realm, client, ticket, key: { type: key.type.number, bytes: key.bytes } },
})

interface Signed {
  answer?: () => Promise<ServiceTicketAnswer>
  rdp?: Partial<RdpOptions>
  /** A target of its own. */
  port?: number
}

const fallbacks: string[] = []
/** Signs in; returns the end of it, as the target that says nothing after CredSSP never begins a desktop. */
async function signIn({
  answer = async () => issued(await ticketFor()),
  rdp,
  port = target.port,
}: Signed = {}) {
  fallbacks.length = 0
  const serviceTicket: Gate['serviceTicket'] = answer
  return await openTarget(
    { port, ...LOGIN, hasKerberos: true, rdp: { security: ['credssp'], ntlm: false, ...rdp } },
    {
      gate: { hostKey: async () => ({ result: 'accepted' }), serviceTicket },
      onFallback: async (reason) => void fallbacks.push(reason),
    },
  ).then(
    () => 'in',
    (error: Error) => `${error.name}: ${error.message}`,
  )
}

describeWithPeers('Kerberos toward targets', PEERS, () => {
  beforeAll(async () => {
    kdc = await startKdc()
    await kdc.admin(`addprinc +requires_preauth -pw "${LOGIN.password}" alice`)
    await kdc.admin(`addprinc -randkey ${SERVICE}`)
    await kdc.admin(`addprinc -randkey TERMSRV/other`)
    identity = await createIdentity()
    const [own, other] = [kdc.file('own'), kdc.file('other')]
    await kdc.admin(`ktadd -k ${own} ${SERVICE}`)
    await kdc.admin(`ktadd -k ${other} TERMSRV/other`)
    target = await startKerberosTarget(identity, { env: kdc.env, keytab: own })
    stranger = await startKerberosTarget(identity, { env: kdc.env, keytab: other })
  }, 300_000)
  afterEach(() => {
    for (const close of closing.splice(0)) close()
  })
  afterAll(async () => {
    target?.stop()
    stranger?.stop()
    await kdc?.stop()
  })

  test('the password arrives sealed, bound to the certificate, from the principal of the account', async () => {
    const outcome = signIn()
    expect(await target.next()).toMatchObject({
      domain: 'LAB',
      user: 'alice',
      password: LOGIN.password,
      principal: `alice@${REALM}`,
    })
    // This target has no desktop.
    expect(await outcome).toContain('the target took the password and closed the connection')
    expect(fallbacks).toEqual([])
  })

  test('a target without the key of the ticket is refused in words, and gets no password', async () => {
    const outcome = await signIn({ port: stranger.port })
    expect(outcome).toMatch(/^TargetError: win1 .*Kerberos ticket.*does not allow NTLM instead$/)
    expect(await stranger.next()).toHaveProperty('error')
    expect(fallbacks).toEqual([])
  })

  test('a ticket that the KDC has not issued ends it, unless the policy allows NTLM', async () => {
    const answer = async () => ({ result: 'failed', message: 'no KDC answers' }) as const
    expect(await signIn({ answer })).toMatch(
      /no KDC answers; the connection policy does not allow NTLM instead$/,
    )
    const { port, outcome } = await ntlmTarget()
    await signIn({ answer, port, rdp: { ntlm: true } })
    expect(fallbacks).toEqual(['no KDC answers'])
    expect(await outcome).toMatchObject({ credentials: { user: 'alice' } })
  })

  test('an account that the KDC refuses is tried no second time', async () => {
    const answer = async () => ({ result: 'failed', message: 'wrong password', isFinal: true }) as const
    expect(await signIn({ answer, rdp: { ntlm: true } })).toMatch(
      /^CredentialRefusedError: .*wrong password$/,
    )
    expect(fallbacks).toEqual([])
  })

  test('a target that has NTLM alone is refused, or signed in to by NTLM on a new connection', async () => {
    const strict = await ntlmTarget()
    expect(await signIn({ port: strict.port })).toMatch(/^TargetError: .*does not allow NTLM instead$/)
    const { port, outcome } = await ntlmTarget()
    await signIn({ port, rdp: { ntlm: true } })
    expect(fallbacks).toHaveLength(1)
    expect(await outcome).toMatchObject({ credentials: { user: 'alice' } })
  })
})

/** Starts a target with NTLM alone; `outcome` is that of a connection that began with NTLM. */
async function ntlmTarget(): Promise<{ port: number; outcome: Promise<unknown> }> {
  const found = Promise.withResolvers<unknown>()
  const server = await listen(identity, async (socket) => {
    const outcome = await serveCredSsp(socket, identity, { alice: LOGIN.password })
    if ('credentials' in outcome) found.resolve(outcome)
    socket.destroy()
    await once(socket, 'close')
  })
  closing.push(server.close)
  return { port: server.port, outcome: found.promise }
}
