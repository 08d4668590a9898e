/**
 * The proof of a target's certificate: its key is pinned, and no security type without a certificate bypasses
 * it. The viewer supports no user names: each time it uses a one-time ticket.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { generate } from 'selfsigned'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWithPeers } from '../peers/program.ts'
import { paint } from '../peers/screen.ts'
import { type CertificateFiles, certificateFiles } from '../peers/vnc/certificate.ts'
import { startXvnc, XVNC_PEERS, type Xvnc, type XvncType } from '../peers/vnc/servers.ts'
import { SNAPSHOT_PEERS, vncSnapshot } from '../peers/vnc/viewers.ts'
import { type Desktop, startDesktop } from './desktops.ts'
import { ticketFor } from './tickets.ts'

interface Key {
  id: string
  key_type: string
  fingerprint: string
  state: string
}

/** Returns the fingerprint as docs/operations.md shows it to administrators. */
function fingerprintOf(cert: string): string {
  const command =
    'openssl x509 -in "$1" -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64'
  const base64 = execFileSync('sh', ['-c', command, 'sh', cert], { encoding: 'utf8' }).trim()
  return `SHA256:${base64.replaceAll('=', '')}`
}

describeWithPeers('the certificate of a VNC target', [...XVNC_PEERS, ...SNAPSHOT_PEERS], () => {
  let desktop: Desktop
  let first: CertificateFiles
  let second: CertificateFiles
  let target: Xvnc | undefined
  let sessions = 0

  beforeAll(async () => {
    desktop = await startDesktop({ policy: { security_types: ['x509vnc', 'vncauth'] } })
    first = await certificateFiles()
    second = await certificateFiles()
  })
  afterAll(async () => {
    await target?.stop()
    await desktop?.stop()
    first?.remove()
    second?.remove()
  })

  /** Replaces the target by another server. */
  async function serve(types: XvncType[], certificate?: CertificateFiles): Promise<void> {
    await target?.stop()
    target = await startXvnc({ types, password: desktop.targetPassword, ...(certificate && { certificate }) })
    // The viewer needs a picture to compare.
    await paint(target.display, { width: 640, height: 480, rgb: Buffer.alloc(640 * 480 * 3, 'colour') })
    await desktop.broker.must('PUT', '/devices/desk1/services/vnc', { port: target.port })
  }

  /** Opens one session; returns the reason of its failure, or undefined if it succeeded. */
  async function visit(): Promise<string | undefined> {
    const { broker, port, password } = desktop
    const { password: ticket } = await ticketFor(broker, { user: 'ops1', password }, 'screen@desk1:vnc')
    await vncSnapshot({ port, password: ticket })
    sessions++
    const closed = await desktop.events('session.close', sessions)
    const reason = closed.at(-1)!['reason']
    return reason === undefined ? undefined : String(reason)
  }
  const keys = () => desktop.broker.must<Key[]>('GET', '/hostkeys?sort=first_seen')

  test('is pinned at first sight, by the fingerprint that openssl tells', async () => {
    await serve(['X509Vnc', 'VncAuth'], first)
    expect(await visit()).toBeUndefined()
    expect(await keys()).toMatchObject([
      { key_type: 'x509', fingerprint: fingerprintOf(first.cert), state: 'accepted' },
    ])
  })

  test('may be renewed for the same key', async () => {
    const renewed = await generate([{ name: 'commonName', value: 'renewed' }], {
      keyType: 'ec',
      curve: 'P-256',
      keyPair: { privateKey: first.pem.key, publicKey: publicKeyOf(first.cert) },
    })
    writeFileSync(first.cert, renewed.cert)
    await serve(['X509Vnc'], first)
    expect(await visit()).toBeUndefined()
    expect(await keys()).toHaveLength(1)
  })

  test('of another key is refused, and so is a target that shows none any more', async () => {
    await serve(['X509Vnc', 'VncAuth'], second)
    expect(await visit()).toContain('has changed (now x509 SHA256:')
    expect((await desktop.events('hostkey.changed', 1)).at(-1)).toMatchObject({
      method: 'x509',
      digest: fingerprintOf(second.cert),
    })
    await serve(['VncAuth'])
    expect(await visit()).toContain('offers no way to sign in that the connection policy allows')
  })

  test('is believed again once the old key is forgotten', async () => {
    await serve(['X509Vnc'], second)
    for (const { id } of await keys()) await desktop.broker.must('DELETE', `/hostkeys/${id}`)
    expect(await visit()).toBeUndefined()
    expect(await keys()).toMatchObject([{ fingerprint: fingerprintOf(second.cert), state: 'accepted' }])
  })
})

function publicKeyOf(cert: string): string {
  return execFileSync('openssl', ['x509', '-in', cert, '-noout', '-pubkey'], { encoding: 'utf8' })
}
