/** Key exchanges of the front: the additions and fixes of ssh2's patch, seen by a client without ssh2. */
import { createHash, createPublicKey, decapsulate, diffieHellman, generateKeyPairSync } from 'node:crypto'
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from 'node:net'
import ssh2, { type KexAlgorithm } from 'ssh2'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { SshFront } from '../../../../proxies/ssh/front/front.ts'
import { BACK_ALGORITHMS } from '../../../../proxies/ssh/transport/algorithms.ts'
import type { Gate } from '../../../../src/contract/gate.ts'
import { newSshKey } from '../../../../src/host/ssh-keys.ts'
import { run } from '../../../peers/process.ts'
import { describeWithPeers } from '../../../peers/program.ts'
import { type Bare, connectBare, isSignedOver, KEX, kexPacket, readReply } from '../bare.ts'

const ML_KEM = 'mlkem768x25519-sha256'

let server: Server
let port: number
const open: Bare[] = []

beforeAll(async () => {
  const front = new SshFront({
    gate: { authenticate: async () => ({ result: 'rejected' }) } as unknown as Gate,
    hostKeys: (['ed25519', 'ecdsa', 'rsa'] as const).map((type) => newSshKey(type).private),
    ident: 'Test',
    onSignedIn: () => undefined,
  })
  server = createServer((socket) => front.accept(socket)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  for (const { socket } of open.splice(0)) socket.destroy()
})
afterAll(() => {
  server.close()
})

const rawOf = (key: ReturnType<typeof createPublicKey>, length: number): Buffer =>
  key.export({ format: 'der', type: 'spki' }).subarray(-length)
const x25519Of = (raw: Uint8Array) =>
  createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b656e032100', 'hex'), raw]),
    format: 'der',
    type: 'spki',
  })

function share() {
  const kem = generateKeyPairSync('ml-kem-768')
  const curve = generateKeyPairSync('x25519')
  return { kem, curve, value: Buffer.concat([rawOf(kem.publicKey, 1184), rawOf(curve.publicKey, 32)]) }
}

async function connect(options: Omit<Parameters<typeof connectBare>[0], 'port'>): Promise<Bare> {
  const client = await connectBare({ port, ...options })
  open.push(client)
  return client
}

describe(ML_KEM, () => {
  test('K is SHA-256 of both secrets, in the hash as a string (draft-ietf-sshm-mlkem-hybrid-kex)', async () => {
    const { kem, curve, value } = share()
    const client = await connect({ kex: ML_KEM, packets: [kexPacket(value)] })
    const reply = await client.payload(KEX.reply)
    const theirs = readReply(reply).value
    expect(theirs.length).toBe(1088 + 32)
    const secret = createHash('sha256')
      .update(decapsulate(kem.privateKey, theirs.subarray(0, 1088)))
      .update(diffieHellman({ privateKey: curve.privateKey, publicKey: x25519Of(theirs.subarray(1088)) }))
      .digest()
    expect(isSignedOver(client.exchangeHash(value, reply, secret), reply)).toBe(true)
    expect(isSignedOver(client.exchangeHash(value, reply, Buffer.alloc(32)), reply)).toBe(false)
  })

  const { value } = share()
  const outOfRange = Buffer.from(value)
  // FIPS 203 7.2: coefficients of 12 bits, each below 3329.
  outOfRange.fill(0xff, 0, 3)
  test.each([
    ['of no bytes', Buffer.alloc(0)],
    ['without its X25519 part', value.subarray(0, 1184)],
    ['one byte short', value.subarray(1)],
    ['one byte long', Buffer.concat([value, Buffer.alloc(1)])],
    ['with a coefficient out of range', outOfRange],
    ['with an X25519 part of zeros', Buffer.concat([value.subarray(0, 1184), Buffer.alloc(32)])],
  ])('a share %s agrees no keys', async (_, bytes) => {
    const client = await connect({ kex: ML_KEM, packets: [kexPacket(bytes)] })
    await expect(client.payload(KEX.reply)).rejects.toThrow('ended')
    expect(client.types().at(-1)).toBe(KEX.disconnect)
  })

  test('ssh2 as a client, as toward targets, agrees and agrees anew', async () => {
    const client = new ssh2.Client()
    const names: string[] = []
    await new Promise<void>((resolve, reject) => {
      client.on('handshake', ({ kex }) => {
        names.push(kex)
        if (names.length === 2) resolve()
      })
      // No client gets in here; the second exchange begins before one could.
      client.on('error', reject)
      client.connect({
        host: '127.0.0.1',
        port: ssh2Port,
        username: 'x',
        password: 'x',
        algorithms: BACK_ALGORITHMS,
      })
      client.on('ready', () => {
        ;(client as unknown as { _protocol: { rekey(): void } })._protocol.rekey()
      })
    })
    client.end()
    expect(names).toEqual([ML_KEM, ML_KEM])
  })

  let ssh2Port: number
  let other: ssh2.Server
  beforeAll(async () => {
    other = new ssh2.Server(
      {
        hostKeys: [newSshKey('ed25519').private],
        algorithms: { kex: [ML_KEM as string as KexAlgorithm] },
      },
      (connection) => {
        connection.on('authentication', (context) => context.accept())
        connection.on('error', () => undefined)
      },
    )
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    ssh2Port = (other.address() as AddressInfo).port
  })
  afterAll(() => {
    other.close()
  })
})

describe('a packet that is sent on a guess (RFC 4253 7.1)', () => {
  const curve = () => rawOf(generateKeyPairSync('x25519').publicKey, 32)

  test('counts when the guess is right', async () => {
    const client = await connect({ kex: ML_KEM, follows: true, packets: [kexPacket(share().value)] })
    await client.payload(KEX.newkeys)
    expect(client.types()).toEqual([KEX.kexinit, KEX.reply, KEX.newkeys])
  })

  test.each([
    ['key exchange', { kex: 'curve25519-sha256' }],
    ['host key', { kex: `${ML_KEM},curve25519-sha256`, hostKey: 'ecdsa-sha2-nistp256,ssh-ed25519' }],
  ])('is ignored when the %s was guessed wrongly, and only that one', async (_, lists) => {
    const wrong = kexPacket(Buffer.from('anything'))
    const right = kexPacket(lists.kex.startsWith(ML_KEM) ? share().value : curve())
    const client = await connect({ ...lists, follows: true, packets: [wrong, right] })
    await client.payload(KEX.newkeys)
    expect(client.types()).toEqual([KEX.kexinit, KEX.reply, KEX.newkeys])
    const third = await connect({ ...lists, follows: true, packets: [wrong, wrong] })
    await expect(third.payload(KEX.reply)).rejects.toThrow('ended')
  })
})

describe('an identification string in many pieces', () => {
  const PIECES = 40
  const PAUSE_MS = 3

  /** Forwards a port, the first bytes one by one. */
  async function dripping(to: number): Promise<Server> {
    const drip = async (from: Socket, into: Socket): Promise<void> => {
      let passed = 0
      from.on('error', () => into.destroy())
      from.on('close', () => into.destroy())
      for await (const chunk of from as AsyncIterable<Buffer>) {
        let at = 0
        for (; at < chunk.length && passed < PIECES; at++, passed++) {
          into.write(chunk.subarray(at, at + 1))
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
        }
        if (at < chunk.length) into.write(chunk.subarray(at))
      }
    }
    const relay = createServer((one) => {
      const other = connectTcp({ port: to, host: '127.0.0.1', noDelay: true })
      for (const [from, into] of [
        [one.setNoDelay(true), other],
        [other, one],
      ] as const) {
        drip(from, into).catch(() => into.destroy())
      }
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => relay.once('listening', resolve))
    return relay
  }

  test('is read by both sides', async () => {
    const relay = await dripping(port)
    const client = new ssh2.Client()
    const kex = await new Promise<string>((resolve, reject) => {
      client.on('handshake', (negotiated) => resolve(negotiated.kex))
      client.on('error', reject)
      const { port: through } = relay.address() as AddressInfo
      client.connect({ host: '127.0.0.1', port: through, username: 'x', algorithms: BACK_ALGORITHMS })
    })
    client.removeAllListeners('error')
    client.on('error', () => undefined)
    client.destroy()
    relay.close()
    expect(kex).toBe(ML_KEM)
  })

  test('does not come in the end: a server that talks before it gets no more than 64 KiB in', async () => {
    let sent = 0
    const talker = createServer((socket) => {
      socket.on('error', () => undefined)
      const timer = setInterval(() => {
        sent += 1000
        socket.write(`${'x'.repeat(998)}\r\n`)
      }, 1)
      socket.on('close', () => clearInterval(timer))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => talker.once('listening', resolve))
    const client = new ssh2.Client()
    const error = await new Promise<Error>((resolve) => {
      client.on('error', resolve)
      client.connect({ host: '127.0.0.1', port: (talker.address() as AddressInfo).port, username: 'x' })
    })
    client.destroy()
    talker.close()
    expect(error.message).toBe('Header too long')
    expect(sent).toBeLessThan(1_000_000)
  })
})

describe('the host keys', () => {
  test('RSA signs with SHA-2, and with nothing else', async () => {
    for (const [hostKey, expected] of [
      ['rsa-sha2-512', 'rsa-sha2-512'],
      ['rsa-sha2-256', 'rsa-sha2-256'],
      ['ssh-rsa,rsa-sha2-256', 'rsa-sha2-256'],
    ] as const) {
      const client = await connect({ kex: ML_KEM, hostKey, packets: [kexPacket(share().value)] })
      const { signature } = readReply(await client.payload(KEX.reply))
      expect(signature.subarray(4, 4 + expected.length).toString()).toBe(expected)
    }
    const client = await connect({ kex: ML_KEM, hostKey: 'ssh-rsa', packets: [] })
    await expect(client.payload(KEX.reply)).rejects.toThrow('ended')
  })
})

describeWithPeers('OpenSSH', ['ssh'], () => {
  async function knock(...options: string[]): Promise<string> {
    const { stderr } = await run('ssh', [
      ...['-v', '-F', 'none', '-p', String(port), '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=no'],
      ...['-o', 'UserKnownHostsFile=/dev/null', ...options, 'x@127.0.0.1', 'true'],
    ])
    return stderr
  }

  test.each(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512', 'rsa-sha2-256'])(
    'comes to the sign-in past a host key of %s',
    async (name) => {
      expect(await knock('-o', `HostKeyAlgorithms=${name}`)).toContain('Permission denied')
    },
  )

  test('reads the signature algorithms one by one, without SHA-1', async () => {
    const [, names = ''] = /server-sig-algs=<(.*)>/.exec(await knock()) ?? []
    expect(names.split(',')).toEqual([
      'ssh-ed25519',
      'ecdsa-sha2-nistp256',
      'ecdsa-sha2-nistp384',
      'ecdsa-sha2-nistp521',
      'rsa-sha2-512',
      'rsa-sha2-256',
      'sk-ssh-ed25519@openssh.com',
      'sk-ecdsa-sha2-nistp256@openssh.com',
    ])
  })
})
