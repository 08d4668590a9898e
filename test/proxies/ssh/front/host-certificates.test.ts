/** Host certificates in key exchanges, between the two roles of the patch. */
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import ssh2, { type ServerHostKeyAlgorithm } from 'ssh2'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { SshFront } from '../../../../proxies/ssh/front/front.ts'
import { HOST_CERTIFICATES } from '../../../../proxies/ssh/transport/algorithms.ts'
import { targetAlgorithms } from '../../../../proxies/ssh/transport/target-algorithms.ts'
import type { HostCertificate } from '../../../../src/contract/front-settings.ts'
import type { Gate } from '../../../../src/contract/gate.ts'
import { openWorkshop, type Workshop } from '../../../identity/certificates.ts'

const TYPES = ['ed25519', 'ecdsa', 'rsa'] as const
const NEVER = Number.MAX_SAFE_INTEGER

let shop: Workshop
let server: Server
let port: number
let front: SshFront

beforeAll(async () => {
  shop = openWorkshop()
  shop.key('ca')
  for (const type of TYPES) shop.key(type, type, type === 'rsa' ? 2048 : undefined)
  front = new SshFront({
    gate: { authenticate: async () => ({ result: 'rejected' }) } as unknown as Gate,
    hostKeys: TYPES.map((type) => readFileSync(`${shop.folder}/${type}`, 'utf8')),
    ident: 'Test',
    onSignedIn: () => undefined,
  })
  server = createServer((socket) => front.accept(socket)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
  shop.remove()
})

const certificateOf = (name: string, about = name, validBefore = NEVER): HostCertificate => ({
  blob: shop.certify(name, 'ca', ['-h', '-I', 'x', '-n', 'bastion']),
  key: shop.blob(about),
  validBefore,
})

/** Returns the key shown to a client that accepts these algorithms; rejects if the key exchange fails. */
function shown(serverHostKey: readonly string[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client()
    let key: Buffer | undefined
    client.on('error', reject)
    client.on('handshake', () => {
      client.removeListener('error', reject)
      client.on('error', () => undefined)
      client.end()
      resolve(key!)
    })
    client.connect({
      port,
      host: '127.0.0.1',
      username: 'x',
      algorithms: { serverHostKey: [...serverHostKey] as ServerHostKeyAlgorithm[] },
      hostVerifier: (blob: Buffer) => {
        key = Buffer.from(blob)
        return true
      },
    })
  })
}

const ed25519 = ['ssh-ed25519-cert-v01@openssh.com', 'ssh-ed25519']

describe('the front', () => {
  test('shows a certificate to a client that asks for one, by every algorithm of its key', async () => {
    const certificates = TYPES.map((type) => certificateOf(type))
    front.hostCertificates = certificates
    const [forEd25519, forEcdsa, forRsa] = certificates.map(({ blob }) => Buffer.from(blob))
    expect(await shown(['ssh-ed25519-cert-v01@openssh.com'])).toEqual(forEd25519)
    expect(await shown(['ecdsa-sha2-nistp256-cert-v01@openssh.com'])).toEqual(forEcdsa)
    for (const hash of ['256', '512']) {
      expect(await shown([`rsa-sha2-${hash}-cert-v01@openssh.com`])).toEqual(forRsa)
    }
    for (const [index, plain] of ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512'].entries()) {
      expect(await shown([plain])).toEqual(shop.blob(TYPES[index]!))
    }
  })

  test('shows a plain key where it has no certificate, and once the certificate has expired', async () => {
    front.hostCertificates = []
    expect(await shown(ed25519)).toEqual(shop.blob('ed25519'))
    await expect(shown(ed25519.slice(0, 1))).rejects.toThrow('no matching host key')
    const end = Date.now() + 3_600_000
    const certificate = certificateOf('ed25519', 'ed25519', end)
    front.hostCertificates = [certificate]
    expect(await shown(ed25519)).toEqual(certificate.blob)
    vi.useFakeTimers({ toFake: ['Date'], now: end })
    try {
      expect(await shown(ed25519)).toEqual(shop.blob('ed25519'))
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('toward a target', () => {
  test('the key in the certificate has to have signed', async () => {
    // The server shows another server's certificate, but only has its own key.
    shop.key('other')
    front.hostCertificates = [certificateOf('other', 'ed25519')]
    await expect(shown(ed25519)).rejects.toThrow('signature verification failed')
  })

  test('the key shown must be of the negotiated algorithm', async () => {
    front.hostCertificates = [{ blob: shop.blob('ed25519'), key: shop.blob('ed25519'), validBefore: NEVER }]
    await expect(shown(ed25519)).rejects.toThrow('does not match negotiated type')
    front.hostCertificates = [certificateOf('ecdsa', 'ed25519')]
    await expect(shown(ed25519)).rejects.toThrow('does not match negotiated type')
  })

  test('a certificate that is cut short ends the key exchange', async () => {
    const { blob } = certificateOf('ed25519')
    for (const length of [36, 40, 72, 80]) {
      front.hostCertificates = [
        { blob: blob.subarray(0, length), key: shop.blob('ed25519'), validBefore: NEVER },
      ]
      await expect(shown(ed25519)).rejects.toThrow()
    }
  })

  test('one is asked for where the policy says so, before all else, and nowhere else', () => {
    const { serverHostKey } = targetAlgorithms(['ssh-rsa'], ['ssh-rsa'], true)
    expect(serverHostKey.slice(0, HOST_CERTIFICATES.length)).toEqual(HOST_CERTIFICATES)
    expect(serverHostKey).toContain('ssh-rsa')
    expect(HOST_CERTIFICATES.join()).not.toMatch(/(^|,)ssh-rsa/)
    expect(targetAlgorithms([], [], false).serverHostKey.join()).not.toContain('cert')
  })
})
