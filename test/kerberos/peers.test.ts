/** Tickets of MIT's KDC, shown by MIT's GSS-API to our acceptor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { acceptToken } from '../../src/kerberos/acceptor.ts'
import { type KeytabEntry, readKeytab } from '../../src/kerberos/keytab.ts'
import { acceptNegotiate } from '../../src/kerberos/negotiate.ts'
import { Replays } from '../../src/kerberos/replays.ts'
import { type MitKdc, REALM, startKdc } from '../peers/kerberos.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'

const SCRIPT = join(import.meta.dirname, '../peers/gssapi_client.py')
let kdc: MitKdc
let keys: KeytabEntry[]

describeWithPeers('tickets', ['krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit', 'python3-gssapi'], () => {
  beforeAll(async () => {
    kdc = await startKdc()
    await kdc.admin('addprinc -pw Alice-Pass1 alice')
    await kdc.admin('addprinc -randkey HTTP/localhost')
    keys = readKeytab(Buffer.from(await kdc.keytab('HTTP/localhost'), 'base64'))
    await kdc.ticketOf('alice', 'Alice-Pass1')
  }, 60_000)
  afterAll(async () => {
    await kdc?.stop()
  })

  test.each([
    ['kerberos', acceptToken],
    ['spnego', acceptNegotiate],
  ])('%s: each side proves itself, and the client signs', async (mechanism, accept) => {
    const child = spawn(findProgram('python3'), [SCRIPT, 'HTTP@localhost', mechanism], { env: kdc.env })
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    const said = async () => Buffer.from((await lines.next()).value ?? '', 'base64')
    const options = { realm: REALM, service: 'HTTP', keys, replays: new Replays(0), now: Date.now }
    const token = await said()
    const { client, answer, isSigned } = accept(token, options)
    expect(client).toEqual(['alice'])
    expect(() => accept(token, options)).toThrow('shown before')
    child.stdin.end(`${answer!.toString('base64')}\n`)
    const mic = await said()
    expect(isSigned(Buffer.from('session and user'), mic)).toBe(true)
    expect(isSigned(Buffer.from('session and root'), mic)).toBe(false)
    if (child.exitCode === null) await once(child, 'exit')
    expect(child.exitCode).toBe(0)
  })
})
