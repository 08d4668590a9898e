/** Both sides of the handshake against each other, and the errors of each where they do not match. */
import { createDecipheriv, generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { EndedError } from '../../../../proxies/bytes/ended.ts'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { uint32 } from '../../../../proxies/vnc/security/channel.ts'
import { type RefusedError, type SignInOptions, signIn } from '../../../../proxies/vnc/security/client.ts'
import { RA2_KIND, receiveRsaAes } from '../../../../proxies/vnc/security/rsa-aes.ts'
import { type Proof, welcome } from '../../../../proxies/vnc/security/server.ts'
import { parseVersion } from '../../../../proxies/vnc/security/version.ts'
import { vncAuthResponse, vncDesKey } from '../../../../src/model/vnc-auth.ts'
import type { VncOfferedType } from '../../../../src/model/vnc-options.ts'
import { CERTIFICATE, channelPair, MemoryChannel } from './pair.ts'

const USER = 'alice%root@local@web:VNC'
const PASSWORD = 'Schlüssel-1'
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

const OFFERS: readonly VncOfferedType[] = [
  'x509plain',
  'x509vnc',
  'tlsplain',
  'tlsvnc',
  'plain',
  'ra2_256',
  'ra2',
  'apple_dh',
  'vncauth',
]

function judge(proof: Proof): Promise<{ accepted: string } | { refused: string }> {
  const isRight =
    'challenge' in proof
      ? proof.response.equals(vncAuthResponse(proof.challenge, PASSWORD))
      : proof.user === USER && proof.password === PASSWORD
  return Promise.resolve(isRight ? { accepted: 'alice' } : { refused: 'wrong, it is' })
}

const client = (options: Partial<SignInOptions> = {}): SignInOptions => ({
  allowed: OFFERS,
  without: new Set(),
  user: USER,
  password: PASSWORD,
  isShared: true,
  judge: async () => undefined,
  ...options,
})

/** Runs both sides to their ends, and returns errors as results. */
async function meet(
  offers: readonly VncOfferedType[],
  options: Partial<SignInOptions>,
): Promise<{ server: unknown; client: unknown; channels: { server: MemoryChannel; client: MemoryChannel } }> {
  const channels = channelPair()
  const serving = welcome(channels.server, { offers, rsaKey: rsa.privateKey, judge })
    .catch((error: unknown) => error)
    .finally(() => channels.client.end())
  const signing = signIn(channels.client, client(options))
    .catch((error: unknown) => error)
    .finally(() => channels.server.end())
  return { server: await serving, client: await signing, channels }
}

describe.each(OFFERS)('%s', (type) => {
  test('signs in', async () => {
    const { server, client, channels } = await meet(OFFERS, { allowed: [type] })
    expect(client).toEqual({ security: type, version: 3.8, isTight: false })
    expect(server).toEqual({ accepted: 'alice', version: 3.8, security: type, isShared: true })
    const tls = type.startsWith('x509') ? 'certificate' : type.startsWith('tls') ? 'anonymous' : undefined
    expect([channels.server.tls, channels.client.tls]).toEqual([tls, tls])
  })

  test('is told the reason of a refusal', async () => {
    const { server, client } = await meet([type], { password: 'wrong' })
    expect(server).toBeUndefined()
    expect((client as RefusedError).refusal).toEqual({
      kind: 'credential',
      security: type,
      isTooMany: false,
      reason: 'wrong, it is',
    })
  })
})

/** A server that has sent these bytes and no more. */
function said(...pieces: (string | number[] | Uint8Array)[]): {
  channel: MemoryChannel
  wrote: () => Buffer
} {
  const channel = new MemoryChannel()
  const written: Uint8Array[] = []
  channel.onWrite = (bytes) => written.push(bytes)
  for (const piece of pieces)
    channel.receive(typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece))
  channel.end()
  return { channel, wrote: () => Buffer.concat(written) }
}

const word = (number: number): number[] => [0, 0, number >> 8, number & 0xff]

describe('a client of an older version', () => {
  const proof = (challenge: Buffer): Buffer => vncAuthResponse(challenge, PASSWORD)

  async function older(version: string, offers: readonly VncOfferedType[]): Promise<Buffer[]> {
    const channel = new MemoryChannel()
    const written: Buffer[] = []
    channel.onWrite = (bytes) => {
      written.push(Buffer.from(bytes))
      if (bytes.length === 16) channel.receive(proof(Buffer.from(bytes)))
    }
    channel.receive(Buffer.from(`RFB ${version}\n`))
    if (version === '003.007') channel.receive(Buffer.from([2]))
    const serving = welcome(channel, { offers, judge }).catch((error: unknown) => error)
    setImmediate(() => channel.receive(Buffer.from([0])))
    expect(await serving).toEqual(
      offers.includes('vncauth')
        ? { accepted: 'alice', version: Number(`3.${version.at(-1)}`), security: 'vncauth', isShared: false }
        : undefined,
    )
    return written
  }

  test('3.3 is told what it will be', async () => {
    const [version, type, challenge, result] = await older('003.003', OFFERS)
    expect([`${version}`, type, challenge?.length, result]).toEqual([
      'RFB 003.008\n',
      Buffer.from(word(2)),
      16,
      Buffer.alloc(4),
    ])
  })

  test('3.3 is told why there is no way for it', async () => {
    const [, answer] = await older('003.003', ['x509plain', 'tlsplain'])
    expect(answer!.readUInt32BE()).toBe(0)
    expect(String(answer!.subarray(8))).toMatch(/only sign in with a one-time ticket/)
  })

  test('3.7 chooses from a list', async () => {
    const [, list] = await older('003.007', ['tlsplain', 'vncauth'])
    expect(list).toEqual(Buffer.from([2, 19, 2]))
  })

  test.each([
    ['003.003', 4],
    ['003.007', 4],
    ['003.008', 4 + 4 + 12],
  ] as const)('%s is refused in its own words', async (version, length) => {
    const channel = new MemoryChannel()
    const written: Buffer[] = []
    channel.onWrite = (bytes) => written.push(Buffer.from(bytes))
    channel.receive(Buffer.from(`RFB ${version}\n`))
    if (version !== '003.003') channel.receive(Buffer.from([2]))
    channel.receive(Buffer.alloc(16))
    expect(await welcome(channel, { offers: ['vncauth'], judge })).toBeUndefined()
    expect(written.at(-1)!.length).toBe(length)
  })
})

test.each([
  ['RFB 003.003\n', 3.3],
  ['RFB 003.005\n', 3.3],
  ['RFB 003.006\n', 3.3],
  ['RFB 003.007\n', 3.7],
  ['RFB 003.008\n', 3.8],
  ['RFB 003.889\n', 3.8],
  ['RFB 004.001\n', 3.8],
  ['RFB 005.000\n', 3.8],
])('%j is taken for %d', (text, version) => {
  expect(parseVersion(Buffer.from(text))).toBe(version)
})

test.each(['GET / HTTP/1', 'RFB 002.002\n', 'RFB 003.008\r', 'SSH-2.0-Open'])('%j is no version', (text) => {
  expect(() => parseVersion(Buffer.from(text))).toThrow(MalformedError)
})

describe('the client', () => {
  test('takes the first of its own that the server has, whatever the server prefers', async () => {
    const { client } = await meet(['vncauth', 'apple_dh', 'tlsplain'], { allowed: ['tlsplain', 'vncauth'] })
    expect(client).toMatchObject({ security: 'tlsplain' })
  })

  test('leaves out what its credential does not fit', async () => {
    const { client } = await meet(OFFERS, { allowed: ['x509plain', 'apple_dh', 'vncauth'], user: '' })
    expect(client).toMatchObject({ security: 'vncauth' })
  })

  test('says what the server has where nothing fits', async () => {
    const { client } = await meet(['apple_dh', 'vncauth'], { allowed: ['x509none', 'none'] })
    expect((client as RefusedError).refusal).toEqual({ kind: 'no-type', offered: ['apple_dh', 'vncauth'] })
  })

  test('says in which type the others were, so that another connection can do without it', async () => {
    const within = await meet(['tlsplain', 'vncauth'], { allowed: ['x509plain', 'vncauth'] })
    expect((within.client as RefusedError).refusal).toEqual({
      kind: 'no-type',
      offered: ['tlsplain'],
      within: 'vencrypt',
    })
    const again = await meet(['tlsplain', 'vncauth'], {
      allowed: ['x509plain', 'vncauth'],
      without: new Set(['vencrypt']),
    })
    expect(again.client).toMatchObject({ security: 'vncauth' })
  })

  test.each(['x509plain', 'x509vnc', 'ra2', 'ra2_256'] as const)(
    'sends nothing secret to a server by %s whose certificate or key is refused',
    async (type) => {
      const shown: [string, Uint8Array][] = []
      const refusal = new Error('not that one')
      const { client, channels } = await meet([type], {
        judge: async (kind, key) => {
          shown.push([kind, key])
          throw refusal
        },
      })
      expect(client).toBe(refusal)
      const spki = rsa.publicKey.export({ type: 'spki', format: 'der' })
      expect(shown).toEqual([type.startsWith('x509') ? ['x509', CERTIFICATE] : ['rsa', spki]])
      // Version, type, and for VeNCrypt its version and sub-type.
      expect(channels.client.written).toBe(type.startsWith('x509') ? 12 + 1 + 2 + 4 : 12 + 1)
    },
  )

  test('is told that the server takes nobody now', async () => {
    const reason = [...Buffer.from('Too many security failures')]
    const { channel } = said('RFB 003.008\n', [0], [...word(reason.length), ...reason])
    const refused = (await signIn(channel, client()).catch((error: unknown) => error)) as RefusedError
    expect(refused.refusal).toEqual({ kind: 'busy', reason: 'Too many security failures' })
  })

  test('takes a reason for what it is when none comes, and one that is too long for its begin', async () => {
    const none = said('RFB 003.008\n', [1, 2], Buffer.alloc(16), word(2))
    const refused = (await signIn(none.channel, client()).catch((error: unknown) => error)) as RefusedError
    expect(refused.refusal).toMatchObject({ kind: 'credential', isTooMany: true, reason: undefined })
    const long = said('RFB 003.008\n', [0], [255, 255, 255, 255], Buffer.alloc(10_000, 'x'))
    const busy = (await signIn(long.channel, client()).catch((error: unknown) => error)) as RefusedError
    expect(busy.refusal).toEqual({ kind: 'busy', reason: 'x'.repeat(4096) })
  })

  test('without a credential needs no result before 3.8, and one from then on', async () => {
    const options = client({ allowed: ['none'], password: undefined, user: '', isShared: false })
    const three = said('RFB 003.003\n', word(1))
    expect(await signIn(three.channel, options)).toMatchObject({ security: 'none', version: 3.3 })
    expect(three.wrote()).toEqual(Buffer.from('RFB 003.003\n\0'))
    const eight = said('RFB 003.008\n', [1, 1])
    await expect(signIn(eight.channel, options)).rejects.toThrow(EndedError)
  })

  const tight = (code: number, name: string): number[] => [...word(code), ...Buffer.from(name)]
  test.each([
    ['none', [word(0)], [], 'none'],
    ['a way without a credential', [word(1), tight(1, 'STDVNOAUTH__')], word(1), 'none'],
    ['VNC authentication', [word(1), tight(2, 'STDVVNCAUTH_'), Buffer.alloc(16)], word(2), 'vncauth'],
    [
      'a login of the system',
      [word(2), tight(129, 'TGHTULGNAUTH'), tight(2, 'STDVVNCAUTH_')],
      word(129),
      'plain',
    ],
  ] as const)('signs in within Tight: %s', async (_, pieces, chosen, security) => {
    const tunnel = [...word(1), ...tight(0, 'TGHTNOTUNNEL')]
    const { channel, wrote } = said(
      'RFB 003.008\n',
      [2, 30, 16],
      tunnel,
      ...pieces.map((piece) => [...piece]),
      word(0),
    )
    const options = client({ allowed: ['plain', 'vncauth', 'none'] })
    expect(await signIn(channel, options)).toEqual({ security, version: 3.8, isTight: true })
    const begin = Buffer.concat([Buffer.from('RFB 003.008\n'), Buffer.from([16, ...word(0), ...chosen])])
    expect(wrote().subarray(0, begin.length)).toEqual(begin)
  })

  test('does not take a number of Tight for what its name says that it is not', async () => {
    const { channel } = said('RFB 003.008\n', [1, 16], word(0), word(1), tight(1, 'TGHTULGNAUTH'))
    const refused = (await signIn(channel, client({ allowed: ['none'] })).catch(
      (e: unknown) => e,
    )) as RefusedError
    expect(refused.refusal).toEqual({ kind: 'no-type', offered: [], within: 'tight' })
  })

  test.each([
    ['a prime of 64 bytes', [...[0, 2], ...[0, 64], ...Buffer.alloc(128, 7)]],
    ['a prime of 64 KiB', [...[0, 2], ...[255, 255]]],
    ['a public number 0', [...[0, 2], ...[0, 128], ...Buffer.alloc(128, 0xfb), ...Buffer.alloc(128)]],
    ['a public number 1', [...[0, 2], ...[0, 128], ...Buffer.alloc(128, 0xfb), ...Buffer.alloc(127), 1]],
    ['the prime itself', [...[0, 2], ...[0, 128], ...Buffer.alloc(256, 0xfb)]],
    ['a generator 0', [...[0, 0], ...[0, 128], ...Buffer.alloc(128, 0xfb), ...Buffer.alloc(128, 3)]],
  ])('refuses Diffie-Hellman with %s', async (_, parameters) => {
    const { channel, wrote } = said('RFB 003.008\n', [1, 30], parameters, Buffer.alloc(4))
    await expect(signIn(channel, client({ allowed: ['apple_dh'] }))).rejects.toThrow(MalformedError)
    expect(wrote().length).toBe(12 + 1)
  })

  test.each([
    ['of 512 bits', 512, Buffer.alloc(64, 0xff)],
    ['of 16 million bits', 2 ** 24, Buffer.alloc(0)],
    ['with leading zeros', 2048, Buffer.concat([Buffer.alloc(200), Buffer.alloc(56, 0xff)])],
    ['of zeros', 2048, Buffer.alloc(256)],
  ])('refuses an RSA key %s', async (_, bits, modulus) => {
    const exponent = Buffer.alloc(modulus.length)
    if (exponent.length > 0) exponent[exponent.length - 1] = 3
    const { channel } = said('RFB 003.008\n', [1, 5], uint32(bits), modulus, exponent)
    await expect(signIn(channel, client({ allowed: ['ra2'] }))).rejects.toThrow(MalformedError)
  })
})

describe('MSLogonII', () => {
  /** UltraVNC's side: a prime of 64 bits, and DES under the secret. */
  test('says both fields under the secret', async () => {
    const prime = 0xffffffffffffffc5n
    const field = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(16, '0'), 'hex')
    const own = 0x123456789abcdefn
    const power = (base: bigint, exponent: bigint): bigint => {
      let result = 1n
      for (const bit of exponent.toString(2)) result = (result * result * (bit === '1' ? base : 1n)) % prime
      return result
    }
    const { channel, wrote } = said(
      'RFB 003.008\n',
      [1, 113],
      Buffer.concat([field(5n), field(prime), field(power(5n, own))]),
      word(0),
    )
    expect(await signIn(channel, client({ allowed: ['mslogon2'] }))).toMatchObject({ security: 'mslogon2' })
    const sent = wrote().subarray(12 + 1)
    const secret = field(power(BigInt(`0x${sent.subarray(0, 8).toString('hex')}`), own))
    const decrypt = (bytes: Buffer): string => {
      const decipher = createDecipheriv('des-ede3-cbc', vncDesKey(secret), secret).setAutoPadding(false)
      return decipher.update(bytes).toString('utf8').split('\0')[0]!
    }
    expect([decrypt(sent.subarray(8, 264)), decrypt(sent.subarray(264, 328))]).toEqual([USER, PASSWORD])
  })

  test.each([[0n], [1n], [2n]])('refuses the prime %d', async (prime) => {
    const numbers = Buffer.alloc(24)
    numbers.writeBigUInt64BE(5n, 0)
    numbers.writeBigUInt64BE(prime, 8)
    numbers.writeBigUInt64BE(1n, 16)
    const { channel } = said('RFB 003.008\n', [1, 113], numbers)
    await expect(signIn(channel, client({ allowed: ['mslogon2'] }))).rejects.toThrow(MalformedError)
  })
})

describe('noVNC', () => {
  const novnc = join(import.meta.dirname, '../../../../node_modules/@novnc/novnc/core/ra2.js')

  test('signs in by RA2 with its own arithmetic', async () => {
    vi.stubGlobal('window', globalThis)
    const { default: Ra2 } = (await import(novnc)) as { default: new (...arguments_: unknown[]) => NoVncRa2 }
    const channel = new MemoryChannel()
    let queue = Buffer.alloc(0)
    const shift = (bytes: number): Buffer => {
      const taken = queue.subarray(0, bytes)
      queue = queue.subarray(bytes)
      return taken
    }
    const sock = {
      rQwait: (_: string, bytes: number) => queue.length < bytes,
      rQpeekBytes: (bytes: number) => queue.subarray(0, bytes),
      rQshift16: () => shift(2).readUInt16BE(),
      rQshift32: () => shift(4).readUInt32BE(),
      rQshiftBytes: shift,
      sQpushBytes: (bytes: Uint8Array) => channel.receive(bytes),
      flush: () => undefined,
    }
    const state = new Ra2(sock, () => ({ username: USER, password: PASSWORD }))
    state.addEventListener('serververification', () => setImmediate(() => state.approveServer()))
    channel.onWrite = (bytes) => {
      queue = Buffer.concat([queue, bytes])
      state.checkInternalEvents()
    }
    const received = receiveRsaAes(channel, RA2_KIND, rsa.privateKey)
    await state.negotiateRA2neAuthAsync()
    expect(await received).toEqual({ user: USER, password: PASSWORD })
    vi.unstubAllGlobals()
  })
})

interface NoVncRa2 {
  addEventListener(name: string, listener: () => void): void
  approveServer(): void
  checkInternalEvents(): void
  negotiateRA2neAuthAsync(): Promise<void>
}
