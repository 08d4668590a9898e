/** Bytes that are not SSH, before and after the keys: the connection ends, and only that connection. */
import { createDiffieHellmanGroup, generateKeyPairSync, randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { buildGlobalRequest } from '../../proxies/ssh/codec/build.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import {
  AUTH,
  authRequest,
  clearPacket,
  connectRaw,
  connectSocket,
  connectToSignIn,
  type RawClient,
  signInRaw,
} from './raw.ts'
import { PEERS, residentOf } from './setting.ts'

const KEXINIT = 20
const NEWKEYS = 21
const KEX_INIT = 30
const KEX_REPLY = 31

describeWithPeers('the wire', PEERS, () => {
  let bastion: Bastion
  let port: number
  const sockets: Socket[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    port = bastion.broker.ports.ssh
  })
  afterAll(async () => {
    const { code } = await ssh(bastion.home, bastion.login(), ['true'])
    await bastion.stop()
    expect(code).toBe(0)
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    // The broker has survived the test's messages.
    sockets.push((await connectRaw({ port })).socket)
  })

  interface Bare {
    socket: Socket
    /** Returns the data so far. */
    bytes(): Buffer
    untilClosed(): Promise<void>
  }

  async function bare(): Promise<Bare> {
    const socket = await connectSocket({ port })
    sockets.push(socket)
    const chunks: Buffer[] = []
    let closed = false
    socket.on('data', (data) => chunks.push(data))
    socket.on('end', () => {
      closed = true
    })
    socket.on('close', () => {
      closed = true
    })
    return {
      socket,
      bytes: () => Buffer.concat(chunks),
      untilClosed: async () => {
        await until('the end of the connection', () => closed || undefined)
      },
    }
  }

  /** byte 20, 16 random bytes, ten name-lists, boolean, uint32 (RFC 4253 7.1). */
  function kexInit(kex: string, more: { hostKey?: string } = {}): Buffer {
    const cipher = 'aes128-ctr'
    const mac = 'hmac-sha2-256'
    const lists = [kex, more.hostKey ?? 'ssh-ed25519', cipher, cipher, mac, mac, 'none', 'none', '', '']
    const writer = new Writer().byte(KEXINIT).raw(randomBytes(16))
    for (const list of lists) writer.string(list)
    return writer.boolean(false).uint32(0).finish()
  }

  /** Returns the numbers of the clear packets after the greeting. */
  function messagesIn(bytes: Buffer): number[] {
    const found: number[] = []
    let at = bytes.indexOf('\r\n') + 2
    while (at + 6 <= bytes.length) {
      const length = bytes.readUInt32BE(at)
      const type = bytes[at + 5]!
      found.push(type)
      // The rest is encrypted.
      if (type === NEWKEYS) break
      at += 4 + length
    }
    return found
  }

  const GREETING = Buffer.from('SSH-2.0-bare\r\n')

  describe('before the keys', () => {
    const nonsense: [string, Buffer][] = [
      ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: bastion\r\n\r\n')],
      ['SSH 1', Buffer.from('SSH-1.5-old\r\n')],
      ['a greeting without an end', Buffer.alloc(100_000, 'a')],
      ['random bytes', randomBytes(2_000)],
      ['a packet of 4 GB', Buffer.concat([GREETING, Buffer.from('ffffffff', 'hex'), randomBytes(64)])],
      [
        'a packet of 2 GB that begins',
        Buffer.concat([GREETING, Buffer.from('7ffffffc', 'hex'), randomBytes(64)]),
      ],
      ['a packet of nothing', Buffer.concat([GREETING, Buffer.alloc(64)])],
      [
        'more padding than packet',
        Buffer.concat([GREETING, Buffer.from('0000000cff140000000000000000000000', 'hex')]),
      ],
      [
        'a KEXINIT that is cut short',
        Buffer.concat([GREETING, clearPacket(Buffer.from([KEXINIT, 1, 2, 3]))]),
      ],
      [
        'no algorithm in common',
        Buffer.concat([GREETING, clearPacket(kexInit('diffie-hellman-group1-sha1'))]),
      ],
      [
        'an RSA host key with SHA-1',
        Buffer.concat([GREETING, clearPacket(kexInit('curve25519-sha256', { hostKey: 'ssh-rsa' }))]),
      ],
      [
        'sign-in in clear',
        Buffer.concat([GREETING, clearPacket(Buffer.from([AUTH.serviceRequest, 0, 0, 0, 0]))]),
      ],
      ['keys in use that nobody agreed', Buffer.concat([GREETING, clearPacket(Buffer.from([NEWKEYS]))])],
    ]

    test.each(nonsense)('%s', async (_, bytes) => {
      const { socket, untilClosed, bytes: came } = await bare()
      socket.write(bytes)
      await untilClosed()
      expect(messagesIn(came())).not.toContain(KEX_REPLY)
    })

    const points: [string, string, Buffer][] = [
      ['curve25519-sha256', 'of 31 bytes', randomBytes(31)],
      ['curve25519-sha256', 'of 33 bytes', randomBytes(33)],
      ['curve25519-sha256', 'of no bytes', Buffer.alloc(0)],
      ['curve25519-sha256', 'of small order: zero', Buffer.alloc(32)],
      ['curve25519-sha256', 'of small order: one', Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])],
      ['ecdh-sha2-nistp256', 'that is no point', Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 0xff)])],
      ['ecdh-sha2-nistp256', 'at infinity', Buffer.from([0])],
      ['ecdh-sha2-nistp256', 'of another length', Buffer.concat([Buffer.from([4]), randomBytes(96)])],
      ['diffie-hellman-group14-sha256', 'zero', Buffer.alloc(0)],
      ['diffie-hellman-group14-sha256', 'one', Buffer.from([1])],
      ['diffie-hellman-group14-sha256', 'p - 1', minusOne()],
      [
        'diffie-hellman-group14-sha256',
        'much larger than p',
        Buffer.concat([Buffer.from([1]), randomBytes(4096)]),
      ],
    ]

    test.each(points)('%s with a public value %s agrees no keys', async (kex, _, value) => {
      const { socket, untilClosed, bytes } = await bare()
      socket.write(Buffer.concat([GREETING, clearPacket(kexInit(kex))]))
      socket.write(clearPacket(new Writer().byte(KEX_INIT).string(value).finish()))
      await untilClosed()
      expect(messagesIn(bytes())).not.toContain(KEX_REPLY)
    })

    test('and with one as it should be, it does', async () => {
      const { publicKey } = generateKeyPairSync('x25519')
      const { socket, bytes } = await bare()
      socket.write(Buffer.concat([GREETING, clearPacket(kexInit('curve25519-sha256'))]))
      const value = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
      socket.write(clearPacket(new Writer().byte(KEX_INIT).string(value).finish()))
      await until('an answer', () => messagesIn(bytes()).includes(KEX_REPLY) || undefined)
    })

    test('the strict key exchange is on offer (CVE-2023-48795)', async () => {
      const { socket, bytes } = await bare()
      socket.write(GREETING)
      await until('KEXINIT', () => messagesIn(bytes()).includes(KEXINIT) || undefined)
      expect(bytes().includes('kex-strict-s-v00@openssh.com')).toBe(true)
    })

    test.each([
      ['IGNORE', Buffer.from([AUTH.ignore, 0, 0, 0, 0])],
      ['DEBUG', Buffer.from([AUTH.debug, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
    ])('a message put in before the keys ends the connection: %s', async (_, payload) => {
      await expect(connectRaw({ port, insert: clearPacket(payload) })).rejects.toThrow(
        /ended before keys were agreed/,
      )
    })
  })

  describe('with keys', () => {
    async function arrive() {
      const client = await signInRaw({ port, user: bastion.login().user, password: bastion.password })
      sockets.push(client.socket)
      return client
    }

    const broken: [string, Buffer][] = [
      [
        'IGNORE over 80,000 bytes',
        Buffer.concat([Buffer.from([AUTH.ignore]), new Writer().string(Buffer.alloc(90_000)).finish()]),
      ],
      [
        'DEBUG over 35,000 bytes',
        Buffer.concat([
          Buffer.from([AUTH.debug, 0]),
          new Writer().string(Buffer.alloc(40_000)).string('').finish(),
        ]),
      ],
      ['DEBUG cut short', Buffer.from([AUTH.debug, 0, 0, 0])],
      ['GLOBAL_REQUEST cut short', Buffer.from([80, 0, 0, 0, 9, 120])],
      ['GLOBAL_REQUEST with a name of 4 GB', Buffer.from([80, 0xff, 0xff, 0xff, 0xff])],
      ['CHANNEL_OPEN cut short', Buffer.from([90, 0, 0])],
      ['CHANNEL_DATA without a channel', Buffer.from([94])],
      ['CHANNEL_REQUEST without a channel', Buffer.from([98])],
      ['CHANNEL_OPEN_CONFIRMATION of nothing', Buffer.from([91, 0, 0, 0, 0])],
      ['CHANNEL_OPEN_FAILURE of nothing', Buffer.from([92, 0, 0, 0, 0])],
    ]

    test.each(broken)('%s ends the connection', async (_, payload) => {
      const client = await arrive()
      client.send(payload)
      await client.untilClosed()
    })

    test('a bit turned over on the way ends the connection', async () => {
      const client = await arrive()
      client.socket.write(randomBytes(64))
      await client.untilClosed()
    })

    test('empty messages and unknown ones are passed over', async () => {
      const client = await arrive()
      for (const type of [8, 19, 63, 79, 128, 192, 255]) client.send(Buffer.from([type, 1, 2, 3]))
      client.send(
        buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: Buffer.alloc(0) }),
      )
      expect((await client.next(81, 82))[0]).toBe(82)
    })

    /** OpenSSH answers its PING (192) with as much data (CVE-2025-26466); here it is unknown. */
    const idle: [string, Buffer][] = [
      ['IGNORE', Buffer.of(AUTH.ignore)],
      ['DEBUG', Buffer.of(AUTH.debug, 1)],
      ['PING', Buffer.of(192)],
    ]

    async function flood(client: RawClient, head: Buffer): Promise<number> {
      const before = residentOf(bastion)
      const message = Buffer.concat([head, new Writer().string(randomBytes(30_000)).string('').finish()])
      client.socket.pause()
      for (let n = 0; n < 7_000 && !client.closed; n++) {
        client.send(message)
        if (client.socket.writableLength > 1_000_000)
          await until('room', () => client.closed || client.socket.writableLength < 500_000 || undefined)
      }
      client.socket.resume()
      return residentOf(bastion) - before
    }

    test.each(idle)('200 MB of %s are not kept, and not answered', async (_, head) => {
      const client = await arrive()
      expect(await flood(client, head)).toBeLessThan(100_000)
      client.send(
        buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: Buffer.alloc(0) }),
      )
      await client.next(81, 82)
    })

    test.each(idle)('nor before the sign-in: %s', async (_, head) => {
      const client = await connectToSignIn({ port })
      sockets.push(client.socket)
      expect(await flood(client, head)).toBeLessThan(100_000)
      client.send(authRequest('ops1', 'none'))
      await client.next(AUTH.failure)
    })
  })

  function minusOne(): Buffer {
    const prime = createDiffieHellmanGroup('modp14').getPrime()
    prime[prime.length - 1]! -= 1
    return Buffer.concat([Buffer.alloc(1), prime])
  }
})
