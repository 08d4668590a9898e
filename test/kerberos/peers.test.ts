/** Tickets of MIT's KDC, shown by MIT's GSS-API to our acceptor, and by us to MIT's; and of Samba's KDC. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kdc } from '../../src/identity/methods/kerberos/kdc.ts'
import { acceptToken } from '../../src/kerberos/acceptor.ts'
import { Initiator } from '../../src/kerberos/initiator.ts'
import { type KeytabEntry, readKeytab } from '../../src/kerberos/keytab.ts'
import { acceptNegotiate } from '../../src/kerberos/negotiate.ts'
import { Replays } from '../../src/kerberos/replays.ts'
import { firstTicket, serviceTicket } from '../../src/kerberos/requests.ts'
import { REALM as AD_REALM, type DomainController, startDomainController } from '../peers/directory.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'

const PEERS = join(import.meta.dirname, '../peers')
let kdc: MitKdc
let keys: KeytabEntry[]
let keytabFile: string

describeWithPeers('tickets', ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit', 'python3-gssapi'], () => {
  beforeAll(async () => {
    kdc = await startKdc()
    await kdc.admin('addprinc -pw Alice-Pass1 alice')
    await kdc.admin('addprinc -randkey HTTP/localhost')
    keys = readKeytab(Buffer.from(await kdc.keytab('HTTP/localhost'), 'base64'))
    await kdc.ticketOf('alice', 'Alice-Pass1')
    await kdc.admin('addprinc -randkey host/new.lab.test')
    await kdc.admin('addprinc -e aes128-sha2:normal -randkey host/old.lab.test')
    keytabFile = kdc.file('services')
    for (const service of ['host/new.lab.test', 'host/old.lab.test'])
      await kdc.admin(`ktadd -k ${keytabFile} ${service}`)
  }, 300_000)
  afterAll(async () => {
    await kdc?.stop()
  })

  test.each([
    ['kerberos', acceptToken],
    ['spnego', acceptNegotiate],
  ])('%s: each side proves itself, and the client signs', async (mechanism, accept) => {
    const child = spawn(
      findProgram('python3'),
      [join(PEERS, 'gssapi_client.py'), 'HTTP@localhost', mechanism],
      { env: kdc.env },
    )
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    const said = async () => Buffer.from((await lines.next()).value ?? '', 'base64')
    const options = { realm: REALM, service: 'HTTP', keys, replays: new Replays(0), now: Date.now }
    const token = await said()
    const { client, answer, tokens } = accept(token, options)
    expect(client).toEqual(['alice'])
    expect(() => accept(token, options)).toThrow('shown before')
    child.stdin.end(`${answer!.toString('base64')}\n`)
    const mic = await said()
    expect(tokens.isSigned(Buffer.from('session and root'), mic)).toBe(false)
    expect(tokens.isSigned(Buffer.from('session and user'), mic)).toBe(true)
    if (child.exitCode === null) await once(child, 'exit')
    expect(child.exitCode).toBe(0)
  })

  test.each(['host/old.lab.test', 'host/new.lab.test'])(
    '%s takes our ticket, and our messages',
    async (service) => {
      const kdcClient = new Kdc({ host: '127.0.0.1', port: kdc.port, timeoutMs: 10_000 })
      const access = {
        now: Date.now,
        ask: (request: Uint8Array) => kdcClient.ask(request, new AbortController().signal),
      }
      const login = { realm: REALM, userName: 'alice', password: Buffer.from('Alice-Pass1') }
      const first = await firstTicket(login, access)
      const initiator = new Initiator({
        ticket: await serviceTicket(first, service.split('/'), access),
        now: Date.now,
      })
      const child = spawn(findProgram('python3'), [join(PEERS, 'gssapi_acceptor.py')], {
        env: { ...kdc.env, KRB5_KTNAME: keytabFile, KRB5RCACHETYPE: 'none' },
      })
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
      const exchanged = async (token?: Uint8Array) => {
        if (token) child.stdin.write(`${Buffer.from(token).toString('base64')}\n`)
        return Buffer.from((await lines.next()).value ?? '', 'base64')
      }
      const tokens = initiator.step(await exchanged(initiator.start()))
      expect((await exchanged()).toString()).toBe(`alice@${REALM}`)
      for (const text of ['secret', '', 'x'.repeat(2000)])
        expect(tokens.unwrap(await exchanged(tokens.wrap(Buffer.from(text))))?.toString()).toBe(
          text === 'secret' ? 'terces' : text,
        )
      const message = Buffer.from('session and user')
      expect(tokens.isSigned(message, await exchanged(tokens.sign(message)))).toBe(true)
      if (child.exitCode === null) await once(child, 'exit')
      expect(child.exitCode).toBe(0)
    },
  )

  test('the KDC says what it refuses', async () => {
    const kdcClient = new Kdc({ host: '127.0.0.1', port: kdc.port, timeoutMs: 10_000 })
    const ask = (request: Uint8Array) => kdcClient.ask(request, new AbortController().signal)
    const login = { realm: REALM, userName: 'alice', password: Buffer.from('Alice-Pass1') }
    const access = { now: Date.now, ask }
    const first = await firstTicket(login, access)
    await expect(serviceTicket(first, ['host', 'other.lab.test'], access)).rejects.toMatchObject({
      code: 7,
      isOfService: true,
    })
    await expect(firstTicket({ ...login, password: Buffer.from('wrong') }, access)).rejects.toMatchObject({
      code: 24,
      isOfService: false,
    })
  })
})

describeWithPeers('the KDC of Active Directory (Samba)', ['samba', 'samba-tool', 'python3'], () => {
  const AD = AD_REALM.toUpperCase()
  let certificate: CertificateFiles
  let controller: DomainController
  beforeAll(async () => {
    certificate = await certificateFiles()
    controller = await startDomainController(certificate)
    await controller.tool('user', 'create', 'ann', 'Pass-of-1-ann')
  }, 300_000)
  afterAll(async () => {
    await controller?.stop()
    certificate?.remove()
  })

  test('proves a person to a service with AES, and refuses a wrong password', async () => {
    const keys = readKeytab(await controller.serviceKeytab('bastion', 'host/bastion.lab.test'))
    const kdcOfDomain = new Kdc({ host: controller.host, port: 88, timeoutMs: 10_000 })
    const access = {
      now: Date.now,
      ask: (request: Uint8Array) => kdcOfDomain.ask(request, new AbortController().signal),
    }
    const login = { realm: AD, userName: 'ann', password: Buffer.from('Pass-of-1-ann') }
    const wrong = firstTicket({ ...login, password: Buffer.from('Pass-of-1-ben') }, access)
    await expect(wrong).rejects.toThrow('error 24')
    await expect(firstTicket({ ...login, userName: 'nobody' }, access)).rejects.toThrow('error 6')
    const first = await firstTicket(login, access)
    const ticket = await serviceTicket(first, ['host', 'bastion.lab.test'], access)
    const token = new Initiator({ ticket, now: Date.now }).start()
    const options = { realm: AD, service: 'host', keys, replays: new Replays(0), now: Date.now }
    expect(acceptToken(token, options).client).toEqual(['ann'])
  })
})
