/**
 * Targets in the key exchange: values that lead to a secret that anybody knows, invalid keys, inserted
 * messages. Each is signed correctly where possible, and each ends before the credential is sent.
 */
import {
  createDiffieHellmanGroup,
  createECDH,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign as signWith,
} from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { mpint as mpintField } from '../identity/keys.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { type Answer, type FalseTarget, type Plan, startFalseTarget } from './false-target.ts'
import { AUTH, clearPacket } from './raw.ts'
import { noSession, PEERS, provisionTarget, residentOf } from './setting.ts'
import { startHostileTarget } from './target.ts'

const ED25519 = 'ssh-ed25519'
const NEWKEYS = 21
const CURVE = 'curve25519-sha256'
const P256 = 'ecdh-sha2-nistp256'
const GROUP14 = 'diffie-hellman-group14-sha256'
const X25519_HEAD = Buffer.from('302a300506032b656e032100', 'hex')
/** Points whose multiple by the cofactor is zero: so is every shared secret with them. */
const LOW_ORDER = {
  zero: Buffer.alloc(32),
  one: Buffer.concat([Buffer.of(1), Buffer.alloc(31)]),
  'of order 8': Buffer.from('e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800', 'hex'),
  'p - 1': Buffer.concat([Buffer.of(0xec), Buffer.alloc(30, 0xff), Buffer.of(0x7f)]),
  p: Buffer.concat([Buffer.of(0xed), Buffer.alloc(30, 0xff), Buffer.of(0x7f)]),
}

const TWO_GB = Buffer.from('7ffffffc', 'hex')

describeWithPeers('a target in the key exchange', PEERS, () => {
  let bastion: Bastion
  let target: FalseTarget
  const ed25519 = generateKeyPairSync('ed25519')
  const point = rawOf(ed25519.publicKey)

  beforeAll(async () => {
    bastion = await startBastion()
    target = await startFalseTarget({ kex: CURVE, hostKey: ED25519 })
    await provisionTarget(bastion, 'false1', target.port, ['SSH_REMOTE_COMMAND'])
  })
  afterAll(async () => {
    const { code } = await ssh(bastion.home, bastion.login(), ['true'])
    target.stop()
    await bastion.stop()
    expect(code).toBe(0)
  })
  let pinned = 0
  beforeEach(async () => {
    pinned = (await bastion.events('hostkey.new')).length
  })
  afterEach(() => noSession(bastion))

  /** Returns the error that the user reads. */
  async function attempt(plan: Plan): Promise<string> {
    target.plan = plan
    const { code, stderr } = await ssh(bastion.home, bastion.login({ user: 'ops1+root@false1' }), ['id'])
    expect(code).toBe(255)
    return stderr
  }

  /** Expects the end before the keys: nothing about this target is stored, and nothing was sent to it. */
  async function refuses(plan: Plan, reason: RegExp): Promise<void> {
    expect(await attempt(plan)).toMatch(reason)
    expect((await bastion.events('hostkey.new')).length).toBe(pinned)
  }

  const string = (...parts: (string | Uint8Array)[]): Buffer =>
    parts.reduce((writer: Writer, part) => writer.string(part), new Writer()).finish()
  const signed = (value: Uint8Array, secret?: Uint8Array): Answer => ({
    hostKey: string(ED25519, point),
    value,
    ...(secret && { secret }),
    sign: (hash) => string(ED25519, signWith(null, hash, ed25519.privateKey)),
  })
  const answering = (kex: string, value: Uint8Array, secret?: Uint8Array): Plan => ({
    kex,
    hostKey: ED25519,
    answer: () => signed(value, secret),
  })

  /** A correct exchange by X25519, with the changes applied. */
  const honest = (change: Partial<Answer> = {}, plan: Partial<Plan> = {}): Plan => ({
    kex: CURVE,
    hostKey: ED25519,
    answer: (init) => {
      const { privateKey, publicKey } = generateKeyPairSync('x25519')
      const theirs = createPublicKey({
        key: Buffer.concat([X25519_HEAD, init]),
        format: 'der',
        type: 'spki',
      })
      return {
        ...signed(rawOf(publicKey), mpint(diffieHellman({ privateKey, publicKey: theirs }))),
        ...change,
      }
    },
    ...plan,
  })

  describe('a public value', () => {
    const values: [string, Plan][] = [
      ...Object.entries(LOW_ORDER).map(([name, value]): [string, Plan] => [
        `${CURVE}, of small order: ${name}`,
        answering(CURVE, value, Buffer.alloc(0)),
      ]),
      [`${CURVE}, of 31 bytes`, answering(CURVE, randomBytes(31))],
      [`${CURVE}, of 33 bytes`, answering(CURVE, randomBytes(33))],
      [`${CURVE}, of no bytes`, answering(CURVE, Buffer.alloc(0))],
      [`${P256}, that is no point`, answering(P256, Buffer.concat([Buffer.of(4), Buffer.alloc(64, 0xff)]))],
      [`${P256}, at infinity`, answering(P256, Buffer.of(0), Buffer.alloc(0))],
      [`${P256}, of another length`, answering(P256, Buffer.concat([Buffer.of(4), randomBytes(96)]))],
      [`${P256}, of another curve`, answering(P256, createECDH('secp384r1').generateKeys())],
      [`${GROUP14}, of no bytes`, answering(GROUP14, Buffer.alloc(0), Buffer.alloc(0))],
      [`${GROUP14}, zero`, answering(GROUP14, Buffer.of(0), Buffer.alloc(0))],
      [`${GROUP14}, one`, answering(GROUP14, Buffer.of(1), Buffer.of(1))],
      [`${GROUP14}, p - 1`, answering(GROUP14, mpint(modp14(-1)), Buffer.of(1))],
      [`${GROUP14}, p`, answering(GROUP14, mpint(modp14(0)), Buffer.alloc(0))],
      [`${GROUP14}, p + 1`, answering(GROUP14, mpint(modp14(1)), Buffer.of(1))],
      [
        `${GROUP14}, of 30,000 bytes`,
        answering(GROUP14, Buffer.concat([Buffer.of(1), randomBytes(29_999)]), Buffer.of(1)),
      ],
      ['mlkem768x25519-sha256, one byte short', answering('mlkem768x25519-sha256', randomBytes(1119))],
      [
        'mlkem768x25519-sha256, of small order',
        answering('mlkem768x25519-sha256', Buffer.concat([randomBytes(1088), Buffer.alloc(32)])),
      ],
    ]

    test.each(values)('%s agrees no keys', async (_, plan) => {
      // A wrong signature would be found only later.
      await refuses(plan, /false1 .*broke off the SSH handshake: (?!.*(signature|closed))/)
    })

    test('as it should be agrees keys', async () => {
      expect(await attempt(honest({}, { behind: randomBytes(64) }))).toMatch(/sallyport: .*false1/)
      expect(target.received).toContain(NEWKEYS)
    })
  })

  describe('a host key', () => {
    const keys: [string, string, Partial<Answer>][] = [
      ['of Ed25519 with 31 bytes', ED25519, { hostKey: string(ED25519, point.subarray(1)) }],
      [
        'of Ed25519 with 33 bytes',
        ED25519,
        { hostKey: string(ED25519, Buffer.concat([point, Buffer.of(0)])) },
      ],
      ['of Ed25519 with none', ED25519, { hostKey: string(ED25519, '') }],
      ['of Ed25519 cut short', ED25519, { hostKey: string(ED25519, point).subarray(0, -1) }],
      [
        'of Ed25519 of small order, for which a signature needs no secret',
        ED25519,
        {
          hostKey: string(ED25519, LOW_ORDER.one),
          sign: () => string(ED25519, Buffer.concat([LOW_ORDER.one, Buffer.alloc(32)])),
        },
      ],
      ['of no type', ED25519, { hostKey: Buffer.alloc(0) }],
      ['of another type than was agreed', 'ecdsa-sha2-nistp256', {}],
      [
        'of ECDSA that is no point',
        'ecdsa-sha2-nistp256',
        {
          hostKey: string(
            'ecdsa-sha2-nistp256',
            'nistp256',
            Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]),
          ),
          sign: () => string('ecdsa-sha2-nistp256', string(Buffer.of(1), Buffer.of(1))),
        },
      ],
      [
        'of RSA with 240,000 bits',
        'rsa-sha2-256',
        {
          hostKey: string('ssh-rsa', Buffer.of(3), Buffer.concat([Buffer.of(0), Buffer.alloc(30_000, 0xff)])),
          sign: () => string('rsa-sha2-256', randomBytes(1_000)),
        },
      ],
      [
        'of RSA with an exponent of 2,000 bits',
        'rsa-sha2-256',
        {
          hostKey: string('ssh-rsa', Buffer.alloc(250, 0x7f), Buffer.alloc(512, 0x7f)),
          sign: () => string('rsa-sha2-256', randomBytes(512)),
        },
      ],
      ['that did not sign', ED25519, { sign: () => string(ED25519, randomBytes(64)) }],
      [
        'that signed something else',
        ED25519,
        { sign: () => string(ED25519, signWith(null, point, ed25519.privateKey)) },
      ],
    ]

    test.each(keys)('%s is none', async (_, hostKey, change) => {
      await refuses(honest(change, { hostKey }), /false1 .*broke off the SSH handshake/)
    })

    test('of RSA with 768 bits is not accepted, though it signed', async () => {
      const { privateKey } = generateKeyPairSync('rsa', {
        modulusLength: 768,
        privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
        publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
      })
      const passwords: string[] = []
      const weak = await startHostileTarget(bastion.home.folder, { privateKey, passwords })
      const service = '/devices/false1/services/ssh'
      await bastion.broker.must('PUT', service, { port: weak.port })
      expect(await attempt(target.plan)).toMatch(/false1 .* is refused: the RSA key has 768 bits/)
      await bastion.broker.must('PUT', service, { port: target.port })
      weak.stop()
      expect(passwords).toEqual([])
      const events = (await bastion.events('hostkey.new', pinned + 1)).slice(pinned)
      expect(events.map(({ result }) => result)).toEqual(['refused'])
    })
  })

  describe('a message put in', () => {
    const ignore = clearPacket(Buffer.of(AUTH.ignore, 0, 0, 0, 0))
    const debug = clearPacket(Buffer.of(AUTH.debug, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    const reason = /false1 .*broke off the SSH handshake: (?!.*closed)/

    test.each([
      ['IGNORE before KEXINIT', { before: ignore }],
      ['DEBUG before KEXINIT', { before: debug }],
      ['IGNORE behind KEXINIT', { between: ignore }],
      ['DEBUG behind KEXINIT', { between: debug }],
      ['a second KEXINIT', { between: clearPacket(Buffer.concat([Buffer.of(20), Buffer.alloc(60)])) }],
      ['sign-in accepted', { between: clearPacket(Buffer.of(AUTH.success)) }],
      ['a command in clear', { between: clearPacket(Buffer.of(98, 0, 0, 0, 0)) }],
      ['a packet of 4 GB', { between: Buffer.from('ffffffff', 'hex') }],
      ['a packet of nothing', { between: Buffer.alloc(16) }],
      ['a packet of 2 GB', { between: TWO_GB }],
    ])('%s ends it (CVE-2023-48795)', async (_, plan) => {
      await refuses(honest({}, plan), reason)
    })
  })

  const ESCAPE = '\x1b]0;title\x07\x1b[2J\x9b2J'
  test.each([
    ['its identification', { greeting: Buffer.from(`SSH-2.0-${ESCAPE}\r\n`, 'latin1') }],
    ['lines before it', { greeting: Buffer.from(`${ESCAPE}\r\nSSH-1.5-${ESCAPE}\r\n`, 'latin1') }],
    [
      'the words of its goodbye',
      {
        between: clearPacket(
          Buffer.concat([Buffer.of(AUTH.disconnect, 0, 0, 0, 2), string(Buffer.from(ESCAPE, 'latin1'), '')]),
        ),
      },
    ],
    ['the names of its algorithms', { kex: ESCAPE }],
  ])('escape sequences in %s do not reach a terminal', async (_, plan) => {
    const shown = await attempt({ ...honest({}, { behind: randomBytes(64) }), ...plan })
    expect(shown).toMatch(/^sallyport: false1 /)
    expect(shown).not.toMatch(/[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]/)
  })

  test.each([
    ['a packet of 2 GB', Buffer.concat([Buffer.from('SSH-2.0-endless\r\n'), TWO_GB]), randomBytes(100_000)],
    ['a greeting', Buffer.alloc(0), Buffer.from(`${'x'.repeat(250)}\r\n`)],
    [
      'IGNORE',
      Buffer.from('SSH-2.0-endless\r\n'),
      clearPacket(Buffer.concat([Buffer.of(2), string(Buffer.alloc(30_000))])),
    ],
  ])('%s without end is no memory', async (_, first, again) => {
    const before = residentOf(bastion)
    let peak = 0
    const stop = setInterval(() => {
      peak = Math.max(peak, residentOf(bastion))
    }, 20)
    target.plan = {
      kex: CURVE,
      hostKey: ED25519,
      before: Buffer.concat([first, ...Array(2_000).fill(again)]),
    }
    await attempt(target.plan)
    clearInterval(stop)
    await until('a look', () => peak > 0 || undefined)
    expect(peak - before).toBeLessThan(100_000)
  })
})

/** A positive mpint without its length (RFC 4251 5). */
const mpint = (number: Buffer): Buffer => mpintField(number).subarray(4)

function rawOf(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(-32)
}

/** Returns the prime of group 14 (RFC 3526 3), plus a number. */
function modp14(plus: number): Buffer {
  const prime = BigInt(`0x${createDiffieHellmanGroup('modp14').getPrime('hex')}`)
  return Buffer.from((prime + BigInt(plus)).toString(16), 'hex')
}
