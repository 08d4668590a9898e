/** The back against targets that refuse, lie, stop responding or send invalid data. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { OWN_NAME } from '../../../../proxies/rdp/back/own-name.ts'
import { buildLicense, buildValidClient, LICENSE_MESSAGE } from '../../../../proxies/rdp/codec/licensing.ts'
import { buildDataIndication } from '../../../../proxies/rdp/codec/mcs.ts'
import { buildErrorInfo, ERROR_INFO } from '../../../../proxies/rdp/codec/session-pdus.ts'
import { buildShareData } from '../../../../proxies/rdp/codec/share.ts'
import {
  buildConnectionConfirm,
  NEGOTIATION_FAILURE,
  parseConnectionRequest,
  SECURITY_PROTOCOL,
} from '../../../../proxies/rdp/codec/x224.ts'
import { FrontConnection, IO_CHANNEL } from '../../../../proxies/rdp/connection/front-connection.ts'
import { buildTsRequest, VERSION } from '../../../../proxies/rdp/credssp/ts-request.ts'
import { CredentialRefusedError, TargetError } from '../../../../proxies/wording/errors.ts'
import { type Event, hex, keep } from '../../stream-events.ts'
import {
  createIdentity,
  type Identity,
  listen,
  listenBetween,
  type Outcome,
  serveCredSsp,
} from '../credssp/connections.ts'
import { LicenseServer } from '../licensing/server.ts'
import { noTicket, openTarget, type SessionOptions } from '../sessions.ts'

const LOGIN = { login: 'administrator', password: 'Target-Pass1' }

let identity: Identity
const closing: (() => unknown)[] = []

beforeAll(async () => {
  identity = await createIdentity()
})
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A target that completes TLS and chooses CredSSP. */
async function nlaTarget(serve: (socket: TLSSocket) => Promise<void>): Promise<number> {
  const target = await listen(identity, serve)
  closing.push(target.close)
  return target.port
}

/** A target that responds to the first bytes with `answer`, and sends nothing more. */
async function rawTarget(answer: Uint8Array, isOver = false): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(answer)
      if (isOver) socket.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function refusal(session: SessionOptions, options?: Parameters<typeof openTarget>[1]): Promise<Error> {
  const error = await openTarget({ ...LOGIN, ...session }, options).then(
    () => new Error('it has let us in'),
    (error: Error) => error,
  )
  expect(error).toBeInstanceOf(TargetError)
  expect(error.message).not.toContain(LOGIN.password)
  return error
}

describe('a sign-in by NLA', () => {
  test.each([
    [0xc000006d, 'the user name or the password is wrong', true],
    [0xc0000071, "the account's password has expired", true],
    [0xc0000224, "the account's password must be changed first", true],
    [0xc0000234, 'the account is locked', true],
    [0xc0000072, 'the account is disabled', true],
    [0xc0000193, 'the account has expired', true],
    [0xc000006f, 'the account may not log in at this time', true],
    [0xc000015b, 'the account has no right to log in by remote desktop', true],
    [0xc0000133, "its clock differs too much from the domain controller's", false],
    [0xc0000418, 'it does not allow NTLM, or not for this account', false],
    [0xc000005e, 'it reaches no domain controller', false],
    [0xc0ffee00, 'the reason is not known here', false],
  ])('refused with 0x%s: %s', async (errorCode, words, isAboutAccount) => {
    const port = await nlaTarget(async (socket) => {
      await once(socket, 'data')
      socket.write(buildTsRequest({ version: VERSION, errorCode }))
    })
    const error = await refusal({ port })
    expect(error.message).toBe(
      `win1 (127.0.0.1:${port}): the target refused the sign-in: ${words} (0x${errorCode.toString(16)})`,
    )
    expect(error instanceof CredentialRefusedError).toBe(isAboutAccount)
  })

  /** Accepts the credentials, then sends `answer` or closes. */
  const takesAnd = (answer?: Uint8Array) =>
    nlaTarget(async (socket) => {
      await serveCredSsp(socket, identity, { [LOGIN.login]: LOGIN.password })
      if (answer) {
        socket.write(answer)
        await once(socket, 'close')
      }
    })

  test('refused after the password was handed over', async () => {
    const port = await takesAnd(buildTsRequest({ version: VERSION, errorCode: 0xc000015b }))
    const error = await refusal({ port })
    expect(error).toBeInstanceOf(CredentialRefusedError)
    expect(error.message).toContain('the account has no right to log in by remote desktop (0xc000015b)')
  })

  test('closed after the password was handed over', async () => {
    const error = await refusal({ port: await takesAnd() })
    expect(error).toBeInstanceOf(CredentialRefusedError)
    expect(error.message).toContain('took the password and closed the connection')
  })

  test('closed before anything was proven: not by the account', async () => {
    const error = await refusal({
      port: await nlaTarget(async (socket) => void (await once(socket, 'data'))),
    })
    expect(error).not.toBeInstanceOf(CredentialRefusedError)
    expect(error.message).toContain('closed the connection when it was asked for NLA')
  })

  test('the domain goes where it belongs', async () => {
    const outcomes: Outcome[] = []
    const port = await nlaTarget(async (socket) => {
      outcomes.push(await serveCredSsp(socket, identity, { [LOGIN.login]: LOGIN.password }))
    })
    await refusal({ port, login: `CORP\\${LOGIN.login}` })
    await refusal({ port, login: LOGIN.login })
    expect(outcomes).toMatchObject([
      { credentials: { user: LOGIN.login, domain: 'CORP' } },
      { credentials: { user: LOGIN.login, domain: '' } },
    ])
  })

  test.each([
    ['a message that is longer than any', Buffer.from('3083ffffff', 'hex'), 'at most 65536 bytes'],
    ['another protocol', Buffer.from('HTTP/1.1 400'), 'a TSRequest was expected'],
    [
      'a version that is open to attacks',
      buildTsRequest({ version: 4, negoToken: Buffer.from('x') }),
      'version 4',
    ],
    ['no token', buildTsRequest({ version: VERSION }), 'a token was expected'],
  ])('%s: no password goes out', async (_, answer, words) => {
    const sent: Buffer[] = []
    const port = await nlaTarget(async (socket) => {
      await once(socket, 'data')
      socket.on('data', (chunk: Buffer) => sent.push(chunk))
      socket.write(answer)
      await once(socket, 'close')
    })
    expect((await refusal({ port })).message).toContain(words)
    expect(sent).toEqual([])
  })
})

test.each([
  ['no password', {}, 'requires a password'],
  ['a password that RDP has no room for', { password: 'x'.repeat(256) }, 'at most 255 characters'],
])('%s: nobody is dialled', async (_, credential, words) => {
  const error = await openTarget({ login: LOGIN.login, port: 1, ...credential }).catch((error) => error)
  expect(error).toBeInstanceOf(TargetError)
  expect(error.message).toContain(words)
})

describe('the certificate', () => {
  test('one that the gate refuses: nothing is sent within its TLS', async () => {
    const sent: Buffer[] = []
    const port = await nlaTarget(async (socket) => {
      socket.on('data', (chunk: Buffer) => sent.push(chunk))
      await once(socket, 'close')
    })
    const hostKey = async () => ({ result: 'refused' as const, message: 'its host key has changed' })
    const gate = { hostKey, serviceTicket: noTicket }
    expect((await refusal({ port }, { gate })).message).toContain('its host key has changed')
    expect(sent).toEqual([])
  })

  test('somebody in between with a key of their own that was taken: no password goes out', async () => {
    const behind = await nlaTarget(async (socket) => {
      await serveCredSsp(socket, identity, { [LOGIN.login]: LOGIN.password })
    })
    const between = await listenBetween(behind)
    closing.push(between.close)
    await refusal({ port: between.port })
    expect(between.seen.length).toBeGreaterThan(1)
    expect(between.seen.filter(({ authInfo }) => authInfo)).toEqual([])
  })
})

describe('the first answer', () => {
  const failure = (code: number) => buildConnectionConfirm({ result: 'failure', code })

  test.each([
    ['RDP without TLS', failure(NEGOTIATION_FAILURE.tlsNotAllowed), "it has RDP's own security only"],
    ['no certificate', failure(NEGOTIATION_FAILURE.noCertificate), 'it has no certificate for TLS'],
    [
      'another protocol',
      Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'),
      'broke the RDP protocol: rdp: TPKT was expected',
    ],
    [
      'a length that no answer has',
      Buffer.from('0300ffff', 'hex'),
      'broke the RDP protocol: rdp: TPKT: a length of',
    ],
    [
      'more than it, before TLS',
      Buffer.concat([
        buildConnectionConfirm({ result: 'selected', flags: 0, protocol: SECURITY_PROTOCOL.tls }),
        Buffer.from('more'),
      ]),
      'TLS was expected, 4 bytes came before its begin',
    ],
    [
      'a protocol that was not offered',
      buildConnectionConfirm({ result: 'selected', flags: 0, protocol: SECURITY_PROTOCOL.rdstls }),
      'a protocol that was offered was expected, found 0x4',
    ],
  ])('%s', async (_, answer, words) => {
    const error = await refusal({ port: await rawTarget(answer) })
    expect(error.message).toMatch(/^win1 \(127\.0\.0\.1:\d+\)/)
    expect(error.message).toContain(words)
  })

  test('cut off', async () => {
    const whole = buildConnectionConfirm({ result: 'selected', flags: 0, protocol: SECURITY_PROTOCOL.tls })
    for (const end of [0, 3, 4, whole.length - 1, whole.length]) {
      const error = await refusal({ port: await rawTarget(whole.subarray(0, end), true) })
      expect(error.message).toContain('ended the connection before the session had begun')
    }
  })
})

describe('what follows TLS', () => {
  /** A target whose messages after TLS are changed by `through`; it closes if that returns undefined. */
  const target = async (
    through: (bytes: Buffer) => Uint8Array | undefined,
    licenses?: LicenseServer,
  ): Promise<number> => {
    const { port, close } = await listen(
      identity,
      async (socket) => {
        const front = new FrontConnection({
          requestedProtocols: SECURITY_PROTOCOL.tls,
          write: (bytes) => {
            const changed = through(Buffer.from(bytes))
            if (changed) socket.write(changed)
            else socket.end()
          },
          visitor: {
            settings: () => {},
            logon: () => (licenses ? front.sendIo(licenses.request) : front.licensed()),
            license: (data) => {
              front.sendIo(licenses!.answer(data))
              if (licenses!.issued) front.startSession()
            },
            io: () => {},
            channel: () => {},
            fastPath: () => {},
            disconnect: () => {},
          },
        })
        socket.on('data', (chunk: Buffer) => front.receive(chunk))
        await once(socket, 'close')
      },
      SECURITY_PROTOCOL.tls,
    )
    closing.push(close)
    return port
  }
  const rdp = { security: ['tls'] as const }

  test('as it should be', async () => {
    const { stream } = await openTarget({ ...LOGIN, port: await target((bytes) => bytes), rdp })
    stream.destroy()
  })

  test('a host that wants licenses is asked for one for the account', async () => {
    const licenses = new LicenseServer()
    const { stream } = await openTarget({ ...LOGIN, port: await target((bytes) => bytes, licenses), rdp })
    expect(licenses.issued).toMatchObject({ userName: LOGIN.login, machineName: OWN_NAME })
    stream.destroy()
  })

  test('a host that has none left says so', async () => {
    const alert = buildLicense(LICENSE_MESSAGE.errorAlert, Buffer.from('060000000100000004000000', 'hex'))
    const port = await target((bytes) =>
      bytes.includes(buildValidClient()) ? buildDataIndication(IO_CHANNEL, alert) : bytes,
    )
    expect((await refusal({ port, rdp })).message).toContain(
      'it finds no license server for remote desktops (licensing error 6)',
    )
  })

  test('each message cut in the middle, left out, and with a byte more than its length', async () => {
    let count = 0
    const all = await openTarget({
      ...LOGIN,
      port: await target((bytes) => {
        count++
        return bytes
      }),
      rdp,
    })
    all.stream.destroy()
    expect(count).toBeGreaterThan(4)
    const nth = (at: number, change: (bytes: Buffer) => Uint8Array | undefined) => {
      let seen = 0
      return (bytes: Buffer) => {
        const index = seen++
        if (index < at) return bytes
        return index === at ? change(bytes) : undefined
      }
    }
    for (let at = 0; at < count; at++) {
      const cut = await refusal(
        {
          port: await target(nth(at, (bytes) => bytes.subarray(0, bytes.length >> 1))),
          rdp,
        },
        { signal: AbortSignal.timeout(300) },
      )
      expect(cut.message).toMatch(/TimeoutError|ended the connection/)
      const missing = await refusal({ port: await target(nth(at, () => undefined)), rdp })
      expect(missing.message).toContain('ended the connection before the session had begun')
      const wrong = (bytes: Buffer) => {
        const changed = Buffer.from(bytes)
        changed.writeUInt16BE(3, 2)
        return changed
      }
      const broken = await refusal({ port: await target(nth(at, wrong)), rdp })
      expect(broken.message).toContain('broke the RDP protocol')
    }
  })

  test('a target that says why it ends', async () => {
    const port = await target((bytes) => {
      const isLicense = bytes.includes(buildValidClient())
      return isLicense
        ? buildDataIndication(IO_CHANNEL, buildShareData(buildErrorInfo(0, ERROR_INFO.noLicense)))
        : bytes
    })
    const error = await refusal({ port, rdp })
    expect(error.message).toBe(
      `win1 (127.0.0.1:${port}): the target refuses the connection: there is no license for remote desktops left`,
    )
  })

  test.each([
    [
      'a channel speaks',
      buildDataIndication(1004, Buffer.from('early')),
      'licensing was expected, found data on channel 1004',
    ],
    ['a picture comes', Buffer.from([0, 4, 0, 0]), 'TPKT was expected, found a first byte of 0x0'],
  ])('before licensing is over %s', async (_, early, words) => {
    const port = await target((bytes) => (bytes.includes(buildValidClient()) ? early : bytes))
    expect((await refusal({ port, rdp })).message).toContain(words)
  })

  test('what comes in one piece with the end of licensing is told to who takes it over', async () => {
    const early = buildDataIndication(IO_CHANNEL, Buffer.from('a desktop'))
    const port = await target((bytes) =>
      bytes.includes(buildValidClient()) ? Buffer.concat([bytes, early, Buffer.from([0, 4, 7, 7])]) : bytes,
    )
    const opened = await openTarget({ ...LOGIN, port, rdp })
    const heard: Event[] = []
    const note = (kind: string) => (data?: unknown) =>
      keep(heard, kind, data instanceof Uint8Array ? hex(data) : data)
    opened.visitor = {
      license: note('license'),
      licensed: note('licensed'),
      io: note('io'),
      channel: note('channel'),
      fastPath: note('fastPath'),
      disconnect: note('disconnect'),
    }
    expect(heard).toEqual([
      ['licensed', undefined],
      ['io', hex(Buffer.from('a desktop'))],
      ['fastPath', '00040707'],
    ])
    opened.stream.destroy()
  })
})

describe('a session that was sent on', () => {
  test('begins with the token, at the same target, with the account of the session', async () => {
    const asked: Buffer[] = []
    const sockets = createServer((socket) => {
      socket.once('data', (chunk: Buffer) => {
        asked.push(chunk)
        socket.destroy()
      })
    })
    sockets.listen(0, '127.0.0.1')
    await once(sockets, 'listening')
    closing.push(() => sockets.close())
    const { port } = sockets.address() as AddressInfo
    const redirection = { session: 1, routingToken: 'Cookie: msts=1.2.3\r\n', login: 'guest', domain: 'CORP' }
    await refusal({ port }, { redirection })
    await refusal({ port })
    expect(asked.map((request) => parseConnectionRequest(request).cookie)).toEqual([
      'Cookie: msts=1.2.3',
      'Cookie: mstshash=administr',
    ])
  })

  test('does not begin where the policy does not let it', async () => {
    const hostKey = () => Promise.reject(new Error('nobody was to be dialled'))
    const gate = { hostKey, serviceTicket: noTicket }
    const redirection = { session: 1, address: '192.0.2.7' }
    const error = await refusal({ port: 1 }, { redirection, gate })
    expect(error.message).toContain('sends the session to 192.0.2.7, which is not in redirect_to')
  })
})

describe('time', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('a target that falls silent is given up after 30 s', async () => {
    const silent = await nlaTarget(async (socket) => {
      await once(socket, 'data')
      vi.advanceTimersByTime(30_000)
      await once(socket, 'close')
    })
    expect((await refusal({ port: silent })).message).toBe(
      `win1 (127.0.0.1:${silent}) did not let the bastion in within 30 s`,
    )
  })

  test('whoever asked does not want it any more', async () => {
    const gone = new AbortController()
    const silent = await nlaTarget(async (socket) => {
      await once(socket, 'data')
      gone.abort('the client has gone')
      await once(socket, 'close')
    })
    expect((await refusal({ port: silent }, { signal: gone.signal })).message).toContain(
      'the client has gone',
    )
  })
})
