/** The front with viewers that break every rule: its offers, its disconnects, and the state that remains. */
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ByteStream } from '../../../proxies/net/byte-stream.ts'
import { openVncTarget, type VncTarget } from '../../../proxies/vnc/back.ts'
import { RGB888 } from '../../../proxies/vnc/codec/pixel-format.ts'
import { encodeServerInit } from '../../../proxies/vnc/codec/server-init.ts'
import { VncSignIn } from '../../../proxies/vnc/sign-in.ts'
import { certificateContext } from '../../../proxies/vnc/tls.ts'
import type { AuthenticateAnswer, AuthenticateRequest } from '../../../src/contract/gate.ts'
import type { VncSecurityType } from '../../../src/model/vnc-options.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { until } from '../../until.ts'
import { FakeStream } from '../net/fake-stream.ts'
import { type FrontWorld, type FrontWorldOptions, LOGIN, PASSWORD, startFront } from './front-world.ts'
import { trustingGate, vncSession } from './sessions.ts'

let certificate: CertificateFiles
let world: FrontWorld
const sockets: Socket[] = []

beforeAll(async () => {
  certificate = await certificateFiles()
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  world?.stop()
})
afterAll(() => certificate?.remove())

async function start(options: Partial<FrontWorldOptions> = {}): Promise<void> {
  world = await startFront({ certificate, ...options })
}

interface Raw {
  socket: Socket
  received(): Buffer
  /** Waits until so many bytes have arrived, and returns them. */
  take(bytes: number): Promise<Buffer>
  /** Waits for the end of the connection. */
  over(): Promise<void>
}

function raw(socket: Socket = connect(world.port, '127.0.0.1')): Raw {
  sockets.push(socket)
  let all = Buffer.alloc(0)
  let isOver = false
  const came = new EventEmitter()
  socket.on('data', (bytes) => {
    all = Buffer.concat([all, bytes])
    came.emit('bytes')
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    isOver = true
  })
  return {
    socket,
    received: () => all,
    take: async (bytes) => {
      await until(`${bytes} bytes, came: ${all.toString('hex')}`, () =>
        bytes <= all.length ? true : undefined,
      )
      const taken = all.subarray(0, bytes)
      all = all.subarray(bytes)
      return taken
    },
    over: async () => {
      if (!isOver) await once(socket, 'close', { signal: AbortSignal.timeout(10_000) })
    },
  }
}

/** Continues up to the list of security types, and returns it. */
async function listed(viewer: Raw): Promise<number[]> {
  await viewer.take(12)
  viewer.socket.write('RFB 003.008\n')
  const [count] = await viewer.take(1)
  return [...(await viewer.take(count!))]
}

async function vencrypt(viewer: Raw): Promise<number[]> {
  await listed(viewer)
  viewer.socket.write(Buffer.from([19]))
  await viewer.take(2)
  viewer.socket.write(Buffer.from([0, 2]))
  const [, count] = await viewer.take(2)
  const types = await viewer.take(4 * count!)
  return Array.from({ length: count! }, (_, at) => types.readUInt32BE(4 * at))
}

describe('what is offered', () => {
  test('to networks of allow_clear: all, the strongest first', async () => {
    await start()
    expect(await listed(raw())).toEqual([19, 129, 5, 30, 2])
    expect(await vencrypt(raw())).toEqual([262, 261, 259, 258, 256])
  })

  test('to others: nothing that leaves the desktop in clear text', async () => {
    await start({ allowClear: ['192.0.2.0/24'] })
    expect(await listed(raw())).toEqual([19, 129, 5])
    expect(await vencrypt(raw())).toEqual([262, 261, 259, 258])
  })

  test.each([2, 30, 1, 16, 0, 255])('type %d that was not offered ends the connection', async (type) => {
    await start({ allowClear: [] })
    const viewer = raw()
    await listed(viewer)
    viewer.socket.write(Buffer.from([type]))
    await viewer.over()
    expect(world.asked).toEqual([])
  })

  test.each([256, 257, 2, 1, 0xffffffff])(
    'sub-type %d that was not offered ends the connection',
    async (type) => {
      await start({ allowClear: [] })
      const viewer = raw()
      await vencrypt(viewer)
      const word = Buffer.alloc(4)
      word.writeUInt32BE(type)
      viewer.socket.write(word)
      await viewer.over()
      expect(viewer.received().length).toBe(0)
      expect(world.asked).toEqual([])
    },
  )

  test('a viewer of version 3.3 is told where there is no way for it', async () => {
    await start({ allowClear: [] })
    const viewer = raw()
    await viewer.take(12)
    viewer.socket.write('RFB 003.003\n')
    await viewer.over()
    expect(String(viewer.received())).toContain('one-time ticket')
  })
})

describe('TLS', () => {
  async function upgraded(type: number, options: object): Promise<TLSSocket> {
    const viewer = raw()
    await vencrypt(viewer)
    const word = Buffer.alloc(4)
    word.writeUInt32BE(type)
    viewer.socket.write(word)
    expect([...(await viewer.take(1))]).toEqual([1])
    viewer.socket.removeAllListeners('data')
    const secure = connectTls({ socket: viewer.socket, rejectUnauthorized: false, ...options })
    secure.on('error', () => undefined)
    return secure
  }

  const isSecured = (secure: TLSSocket): Promise<boolean> =>
    new Promise((resolve) => {
      secure.once('secureConnect', () => resolve(true))
      secure.once('close', () => resolve(false))
    })

  test('of a version below 1.2 is refused', async () => {
    await start()
    const options = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }
    expect(await isSecured(await upgraded(262, options))).toBe(false)
    expect(await isSecured(await upgraded(262, { maxVersion: 'TLSv1.2' }))).toBe(true)
  })

  test('is not negotiated anew', async () => {
    await start()
    const secure = await upgraded(262, { maxVersion: 'TLSv1.2' })
    expect(await isSecured(secure)).toBe(true)
    const outcome = new Promise((resolve) => {
      secure.once('close', () => resolve('closed'))
      secure.renegotiate({}, (error) => resolve(error ? 'refused' : 'renegotiated'))
    })
    expect(await outcome).not.toBe('renegotiated')
  })

  test('does not take for its own what came before it', async () => {
    await start()
    const viewer = raw()
    await vencrypt(viewer)
    // The beginning of Plain in clear text, behind the choice of TLS: an attacker on the path could have
    // inserted it.
    viewer.socket.write(Buffer.from([0, 0, 1, 6, 0, 0, 0, 4, 0, 0, 0, 4]))
    await viewer.over()
    expect(world.asked).toEqual([])
  })

  test('that is no TLS ends the connection', async () => {
    await start()
    const viewer = raw()
    await vencrypt(viewer)
    viewer.socket.write(Buffer.from([0, 0, 1, 6]))
    await viewer.take(1)
    viewer.socket.write('GET / HTTP/1.1\r\n\r\n')
    await viewer.over()
  })

  test('that breaks after the sign-in ends the connection', async () => {
    await start()
    let middle: Socket | undefined
    const relay = createServer((socket) => {
      middle = connect(world.port, '127.0.0.1')
      sockets.push(socket, middle)
      for (const one of [socket, middle]) one.on('error', () => undefined)
      socket.pipe(middle).pipe(socket)
    })
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
    await signedIn('x509plain', (relay.address() as AddressInfo).port)
    const { stream } = world.viewers[0]!
    let isClosed = false
    stream.onClosed = () => {
      isClosed = true
    }
    stream.onData = () => undefined
    stream.paused = false
    middle!.write('these are no records of TLS, but enough bytes for one')
    await until('the end', () => (isClosed ? true : undefined))
    expect(stream.failure?.message).toMatch(/SSL|wrong version/)
    relay.close()
  })

  test('goes on with the new certificate for those who come after a reload', async () => {
    await start()
    const shown = async (): Promise<string | undefined> => {
      const secure = await upgraded(262, { maxVersion: 'TLSv1.2' })
      await isSecured(secure)
      return secure.getPeerX509Certificate()?.fingerprint256
    }
    const before = await shown()
    const renewed = await certificateFiles()
    world.front.security = { ...world.front.security, certificate: certificateContext(renewed.pem) }
    expect(await shown()).not.toBe(before)
    renewed.remove()
  })
})

/** Signs in with the client's side of the handshake, as at a target. */
async function signedIn(type: VncSecurityType, port = world.port): Promise<VncTarget> {
  const session = vncSession({ port, login: LOGIN, password: PASSWORD, types: [type] })
  const signal = AbortSignal.timeout(10_000)
  const opening = openVncTarget(session, { gate: trustingGate(), signal, isShared: true })
  await until('the viewer', () => world.viewers[0])
  world.viewers[0]!.stream.write(encodeServerInit({ width: 64, height: 48, format: RGB888, name: 'test' }))
  return await opening
}

describe.each(['x509plain', 'tlsplain', 'ra2_256', 'apple_dh'] as const)('by %s', (type) => {
  test('bytes go both ways, and wait where nobody takes them', async () => {
    await start()
    const { stream: client, init } = await signedIn(type)
    expect(init).toMatchObject({ width: 64, height: 48, name: 'test' })
    const server = world.viewers[0]!.stream
    const sent = randomBytes(16 * 1024 * 1024)
    const received: Buffer[] = []
    client.onData = (bytes) => received.push(Buffer.from(bytes))
    for (let at = 0; at < sent.length; at += 100_000) server.write(sent.subarray(at, at + 100_000))
    await until('back-pressure', () => (server.congested ? true : undefined))
    expect(received.length).toBe(0)
    let drained = false
    server.onDrain = () => {
      drained = true
    }
    client.paused = false
    const count = () => received.reduce((sum, { length }) => sum + length, 0)
    await until('all of it', () => (count() === sent.length ? true : undefined))
    expect(Buffer.concat(received).equals(sent)).toBe(true)
    expect(drained).toBe(true)
    let heard = ''
    server.onData = (bytes) => {
      heard += String(Buffer.from(bytes))
    }
    server.paused = false
    client.write(Buffer.from('from the viewer'))
    client.close()
    await until('the answer', () => (heard === 'from the viewer' ? true : undefined))
    await until('the end', () => (server.closed ? true : undefined))
  })
})

describe('who does not sign in', () => {
  test('is cut off when the grace is over, wherever in the handshake', async () => {
    await start({ loginGraceMs: 300 })
    const silent = raw()
    const inList = raw()
    await listed(inList)
    const inTls = raw()
    await vencrypt(inTls)
    inTls.socket.write(Buffer.from([0, 0, 1, 6]))
    await Promise.all([silent, inList, inTls].map((viewer) => viewer.over()))
  })

  test.each([
    ['a user name of 4 GiB', [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]],
    ['a password of 4 GiB', [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]],
  ])('with %s is not waited for', async (_, lengths) => {
    await start()
    const viewer = raw()
    await vencrypt(viewer)
    viewer.socket.write(Buffer.from([0, 0, 1, 0, ...lengths]))
    await viewer.over()
    expect(world.asked).toEqual([])
  })

  test.each([
    'GET / HTTP/1.1\r\n\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00',
  ])('but says %j is cut off', async (text) => {
    await start()
    const viewer = raw()
    viewer.socket.write(text)
    await viewer.over()
  })

  test('and goes away while the gate thinks leaves nobody signed in', async () => {
    let answer: (() => void) | undefined
    const identity = { token: 'late', user: 'ops1', displayName: 'Ops', hasTarget: true }
    await start({
      authenticate: () =>
        new Promise((resolve) => {
          answer = () => resolve({ result: 'accepted', identity })
        }),
    })
    const viewer = raw()
    await listed(viewer)
    viewer.socket.write(Buffer.from([2]))
    await viewer.take(16)
    viewer.socket.write(Buffer.alloc(16))
    await until('the question', () => answer)
    viewer.socket.destroy()
    answer!()
    await until('that it is forgotten', () => world.left[0])
    expect(world.left).toEqual(['late'])
    expect(world.viewers).toEqual([])
  })

  test('because the broker has failed is told no more than that', async () => {
    await start({ authenticate: () => Promise.reject(new Error('SELECT password FROM users')) })
    await expect(signedInOrNot()).rejects.toThrow(
      /says: the bastion has an internal problem, try again later$/,
    )
  })
})

async function signedInOrNot(): Promise<VncTarget> {
  const session = vncSession({ port: world.port, login: LOGIN, password: PASSWORD, types: ['tlsplain'] })
  const signal = AbortSignal.timeout(10_000)
  return await openVncTarget(session, { gate: trustingGate(), signal, isShared: true })
}

describe('questions of the gate', () => {
  const prompts = [{ text: 'Code', echo: false }]
  const challenge = { id: 'question', title: '', instructions: '', prompts }
  const ENTER = 0xff0d
  const ESCAPE = 0xff1b

  /** Answers the password with the question, and the question like this. */
  const asks =
    (answer: AuthenticateAnswer) =>
    async ({ proof }: AuthenticateRequest): Promise<AuthenticateAnswer> =>
      'answers' in proof ? answer : { result: 'challenge', challenge }
  const identity = { token: 'token', user: 'ops1', displayName: 'Ops', hasTarget: true }

  const press = (target: VncTarget, ...keysyms: number[]): void => {
    for (const keysym of keysyms) {
      const event = Buffer.from([4, 1, 0, 0, 0, 0, 0, 0])
      event.writeUInt32BE(keysym, 4)
      target.stream.write(event)
    }
  }
  const closed = (target: VncTarget): Promise<void> =>
    new Promise((resolve) => {
      target.stream.onClosed = resolve
      target.stream.onData = () => undefined
      target.stream.paused = false
    })

  test('are asked on the desktop of the bastion, before there is a user', async () => {
    await start({ authenticate: asks({ result: 'accepted', identity }) })
    const target = await signedInOrNot()
    expect([target.init.name, world.viewers]).toEqual(['bastion', []])
    press(target, 0x31, 0x32, ENTER)
    const viewer = await until('the sign-in', () => world.viewers[0])
    expect(viewer.identity).toEqual(identity)
    expect(viewer.begun).toBeDefined()
    expect(world.asked[1]).toMatchObject({
      protocol: 'VNC',
      login: LOGIN,
      proof: { method: 'keyboard-interactive', challenge: 'question', answers: ['12'] },
    })
    expect(world.left).toEqual([])
    target.stream.destroy()
  })

  test('that are answered wrongly end the connection, once the reason is read', async () => {
    await start({ authenticate: asks({ result: 'rejected' }) })
    const target = await signedInOrNot()
    press(target, ENTER)
    await until('the answer', () => world.asked[1])
    const over = closed(target)
    press(target, ENTER)
    await over
    expect([world.viewers, world.left]).toEqual([[], []])
  })

  test.each<[string, (target: VncTarget) => void]>([
    ['given up', (target) => press(target, ESCAPE)],
    ['left', (target) => target.stream.destroy()],
  ])('that are %s leave nothing at the gate', async (_, go) => {
    await start({ authenticate: asks({ result: 'accepted', identity }) })
    const target = await signedInOrNot()
    go(target)
    await until('that it is forgotten', () => world.left[0])
    expect([world.left, world.viewers, world.asked.length]).toEqual([['question'], [], 1])
    target.stream.destroy()
  })

  test('leave nothing behind where the viewer goes away before they are shown', async () => {
    await start({ authenticate: asks({ result: 'accepted', identity }) })
    const viewer = raw()
    await listed(viewer)
    viewer.socket.write(Buffer.from([2]))
    await viewer.take(16)
    viewer.socket.write(Buffer.alloc(16))
    await viewer.take(4)
    viewer.socket.destroy()
    await until('that the question is forgotten', () => world.left[0])
    expect([world.left, world.viewers]).toEqual([['question'], []])
  })

  test('that are accepted after the viewer has gone leave nobody signed in', async () => {
    const stream = new FakeStream()
    const left: string[] = []
    let answer: (() => void) | undefined
    const signIn = new VncSignIn({
      onWaiting: () => undefined,
      gate: {
        authenticate: () =>
          new Promise((resolve) => {
            answer = () => resolve({ result: 'accepted', identity })
          }),
        leave: async (one) => void left.push(one.identity),
      },
      source: { address: '192.0.2.1', port: 1 },
      stream: stream as unknown as ByteStream,
      bastion: 'bastion',
      patienceMs: 60_000,
    })
    const done = signIn.run(LOGIN, challenge)
    const enter = Buffer.from([4, 1, 0, 0, 0, 0, 0xff, 0x0d])
    await until('the answer', () => {
      if (!answer) stream.onData?.(enter)
      return answer
    })
    stream.onClosed?.()
    answer!()
    expect(await done).toBeUndefined()
    expect(left).toEqual(['token'])
  })

  test('that nothing answers in the time of grace are forgotten', async () => {
    await start({ loginGraceMs: 800, authenticate: asks({ result: 'accepted', identity }) })
    const target = await signedInOrNot()
    await closed(target)
    expect([world.left, world.viewers]).toEqual([['question'], []])
  })
})
