/** The back against real servers: every security type of Xtigervnc, and x11vnc. */
import { X509Certificate } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openVncTarget, type VncTarget } from '../../../proxies/vnc/back.ts'
import { CredentialRefusedError } from '../../../proxies/wording/errors.ts'
import type { VncSecurityType } from '../../../src/model/vnc-options.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../../peers/users.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import {
  startX11vnc,
  startXvnc,
  X11VNC_PEERS,
  XVNC_PEERS,
  type Xvnc,
  type XvncType,
} from '../../peers/vnc/servers.ts'
import { type SessionOptions, trustingGate, vncSession } from './sessions.ts'

const PASSWORD = 'VncPass1'

let certificate: CertificateFiles
let user: SystemUser | undefined
const servers: { stop(): Promise<void> }[] = []

beforeAll(async () => {
  certificate = await certificateFiles()
  if (canCreateUsers()) user = await createSystemUser()
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})
afterAll(async () => {
  await user?.remove()
  certificate?.remove()
})

async function xvnc(...types: XvncType[]): Promise<Xvnc> {
  const files = { cert: certificate.cert, key: certificate.key }
  const server = await startXvnc({ types, password: PASSWORD, certificate: files, width: 320, height: 200 })
  servers.push(server)
  return server
}

async function open(options: SessionOptions, gate = trustingGate()): Promise<VncTarget> {
  const signal = AbortSignal.timeout(20_000)
  return await openVncTarget(vncSession(options), { gate, signal, isShared: true })
}

/** Requests the whole desktop in the server's own format, and waits for the first bytes of the picture. */
async function sees({ stream, init }: VncTarget): Promise<void> {
  const request = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  request.writeUInt16BE(init.width, 6)
  request.writeUInt16BE(init.height, 8)
  stream.write(request)
  expect((await stream.read(1))[0]).toBe(0)
  stream.close()
}

const NAMES: Readonly<Record<XvncType, VncSecurityType>> = {
  None: 'none',
  VncAuth: 'vncauth',
  Plain: 'plain',
  TLSNone: 'tlsnone',
  TLSVnc: 'tlsvnc',
  TLSPlain: 'tlsplain',
  X509None: 'x509none',
  X509Vnc: 'x509vnc',
  X509Plain: 'x509plain',
}

describeWithPeers('Xtigervnc', XVNC_PEERS, () => {
  describe.each(Object.entries(NAMES) as [XvncType, VncSecurityType][])('%s', (type, name) => {
    const isPlain = type.endsWith('Plain')
    test.runIf(!isPlain || canCreateUsers())('shows its desktop, and no wrong password does', async () => {
      const { port } = await xvnc(type)
      const right = isPlain ? { login: user!.name, password: user!.password } : { password: PASSWORD }
      const gate = trustingGate()
      const target = await open({ port, types: [name], ...right }, gate)
      expect(target.security).toBe(name)
      expect(target.init).toMatchObject({ width: 320, height: 200, format: { bitsPerPixel: 32, depth: 24 } })
      await sees(target)
      const shown = new X509Certificate(certificate.pem.cert).raw
      expect(gate.asked).toEqual(
        type.startsWith('X509') ? [{ session: 'session', kind: 'x509', key: shown }] : [],
      )
      // The system delays a wrong password by seconds.
      if (type.endsWith('None') || type === 'Plain' || type === 'X509Plain') return
      const wrong = await open({ port, types: [name], ...right, password: 'wrong' }).catch((error) => error)
      expect(wrong).toBeInstanceOf(CredentialRefusedError)
      expect(wrong.message).toContain(
        `web1 (127.0.0.1:${port}) refused the sign-in by ${name}: it did not take the credential, and says: Authentication failure`,
      )
    })
  })

  test('of several the policy chooses, and the certificate comes before anything secret', async () => {
    const { port, log } = await xvnc('TLSNone', 'VncAuth', 'X509Vnc')
    const types = ['x509plain', 'x509vnc', 'tlsnone', 'vncauth'] as const
    const target = await open({ port, types, password: PASSWORD })
    expect(target.security).toBe('x509vnc')
    target.stream.destroy()
    const gate = { hostKey: async () => ({ result: 'refused' as const, message: 'it has changed' }) }
    const session = vncSession({ port, types, password: PASSWORD })
    const options = { gate, signal: AbortSignal.timeout(20_000), isShared: true }
    await expect(openVncTarget(session, options)).rejects.toThrow('it has changed')
    expect(log()).not.toContain('Authentication failure')
  })

  test('one that has no certificate for the TLS it offers is told from others', async () => {
    const certificateOf = { cert: '/nonexistent', key: '/nonexistent' }
    const server = await startXvnc({ types: ['X509Vnc'], password: PASSWORD, certificate: certificateOf })
    servers.push(server)
    const { port } = server
    await expect(open({ port, types: ['x509vnc'], password: PASSWORD })).rejects.toThrow(
      `web1 (127.0.0.1:${port}) offers x509vnc and cannot begin its TLS`,
    )
  })

  test('what is not among VeNCrypt’s is found beside it', async () => {
    const { port } = await xvnc('TLSNone', 'VncAuth')
    const target = await open({ port, types: ['x509vnc', 'vncauth'], password: PASSWORD })
    expect(target.security).toBe('vncauth')
    target.stream.destroy()
  })

  test('the user reads what it has where the policy allows nothing of it', async () => {
    const { port } = await xvnc('TLSNone', 'VncAuth')
    await expect(open({ port, types: ['x509vnc', 'none'], password: PASSWORD })).rejects.toThrow(
      /offers no way to sign in that the connection policy allows and the account fits: it has tlsnone, .*vncauth/,
    )
  })

  test('a server that takes nobody says why', async () => {
    const args = ['-UseBlacklist=1', '-BlacklistThreshold=1', '-BlacklistTimeout=60']
    const server = await startXvnc({ types: ['VncAuth'], password: PASSWORD, args })
    servers.push(server)
    const wrong = { port: server.port, types: ['vncauth'], password: 'wrong' } as const
    for (let attempt = 0; attempt < 2; attempt++) await open(wrong).catch(() => undefined)
    await expect(open(wrong)).rejects.toThrow(/takes no connection now, and says: Too many security failures/)
  })

  describeWithPeers('x11vnc', X11VNC_PEERS, () => {
    test('shows the display that it shares', async () => {
      const { display } = await xvnc('None')
      const shared = await startX11vnc(display, { password: PASSWORD })
      servers.unshift(shared)
      await sees(await open({ port: shared.port, types: ['vncauth'], password: PASSWORD }))
    })
  })
})
