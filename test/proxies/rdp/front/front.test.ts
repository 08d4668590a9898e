/** The front with misbehaving clients and with real ones, up to their Client Info. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TLSSocket, connect as tls } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { buildTargetBlocks, parseClientData } from '../../../../proxies/rdp/codec/client-data.ts'
import { buildClientInfo, type ClientInfo, INFO_FLAG } from '../../../../proxies/rdp/codec/client-info.ts'
import { BLOCK, buildBlocks } from '../../../../proxies/rdp/codec/data-blocks.ts'
import { buildAttachRequest, buildDataRequest } from '../../../../proxies/rdp/codec/mcs.ts'
import { buildConnectInitial } from '../../../../proxies/rdp/codec/mcs-connect.ts'
import { buildSecured, SECURITY_FLAG } from '../../../../proxies/rdp/codec/security-header.ts'
import {
  buildConnectionRequest,
  NEGOTIATION_FAILURE,
  parseConnectionConfirm,
  REQUEST_FLAG,
  SECURITY_PROTOCOL,
} from '../../../../proxies/rdp/codec/x224.ts'
import { BackConnection } from '../../../../proxies/rdp/connection/back-connection.ts'
import { IO_CHANNEL } from '../../../../proxies/rdp/connection/front-connection.ts'
import type { AuthenticateAnswer } from '../../../../src/contract/gate.ts'
import { RDP_TICKET_TOKEN } from '../../../../src/model/rdp-ticket.ts'
import { run } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { GSSAPI_PEERS, gssapiClient } from '../../../peers/rdp/gssapi.ts'
import { SCREEN_PEERS, type Screen, startScreen } from '../../../peers/screen.ts'
import { type CertificateFiles, certificateFiles } from '../../../peers/vnc/certificate.ts'
import { until } from '../../../until.ts'
import { WITHOUT_LICENSE } from '../connection/pair.ts'
import { clientCore } from '../connection/target.ts'
import { type FrontWorld, type FrontWorldOptions, startFront, TICKET } from '../front-world.ts'

const { tls: TLS, credssp: CREDSSP } = SECURITY_PROTOCOL
const LOGIN = 'ops1:root@local@win1:rdp'
const PASSWORD = 'Schlüssel & 1'

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

function dial(): Socket {
  const socket = connect(world.port, '127.0.0.1')
  socket.on('error', () => undefined)
  sockets.push(socket)
  return socket
}

const over = async (socket: Socket): Promise<void> => {
  if (!socket.closed) await once(socket, 'close', { signal: AbortSignal.timeout(10_000) })
}

interface Wish {
  protocols?: number
  flags?: number
  cookie?: string
}

/** Sends a negotiation request, and returns the response. */
async function ask(socket: Socket, { protocols = TLS | CREDSSP, flags = 0, cookie }: Wish = {}) {
  socket.write(
    buildConnectionRequest({ ...(cookie !== undefined && { cookie }), negotiation: { flags, protocols } }),
  )
  const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(10_000) })) as [Buffer]
  return parseConnectionConfirm(answer)
}

async function intoTls(socket: Socket): Promise<TLSSocket> {
  const secured = tls({ socket, rejectUnauthorized: false })
  secured.on('error', () => undefined)
  await once(secured, 'secureConnect', { signal: AbortSignal.timeout(10_000) })
  return secured
}

const INFO: ClientInfo = {
  codePage: 0x409,
  flags: INFO_FLAG.mouse,
  domain: '',
  login: LOGIN,
  password: PASSWORD,
  alternateShell: '',
  workingFolder: '',
  extended: new Uint8Array(0),
}

/** Runs our own client's end up to the Client Info. */
function introduce(secured: TLSSocket, info: Partial<ClientInfo> = {}): BackConnection {
  const back = new BackConnection({
    client: parseClientData([{ type: BLOCK.clientCore, body: clientCore(800, 600) }]),
    view: { selectedProtocol: 1, channels: [], colourDepth: 32 },
    info: { ...INFO, ...info },
    licensing: WITHOUT_LICENSE,
    write: (bytes) => secured.write(bytes),
    visitor: {
      license: () => {},
      licensed: () => {},
      io: () => {},
      channel: () => {},
      fastPath: () => {},
      disconnect: () => {},
    },
  })
  secured.on('data', (chunk: Buffer) => back.receive(chunk))
  back.start()
  return back
}

const arrived = (count = 1) => until('a client past its Client Info', () => world.arrivals[count - 1])

describe('what is agreed in clear text', () => {
  test.each<[string, Partial<FrontWorldOptions>, Wish, number]>([
    ['TLS, where a client has more', {}, {}, TLS],
    ['TLS, where NLA is off', { nla: 'off' }, { cookie: RDP_TICKET_TOKEN }, TLS],
    ['TLS for a login that looks like a ticket', {}, { cookie: 'Cookie: mstshash=t-01' }, TLS],
    ['NLA for who has nothing else', {}, { protocols: CREDSSP }, CREDSSP],
    ['NLA for who comes with a ticket', {}, { cookie: RDP_TICKET_TOKEN }, CREDSSP],
    ['NLA for a ticket’s token of an even length', {}, { cookie: `${RDP_TICKET_TOKEN} ` }, CREDSSP],
    ['NLA where it is required', { nla: 'required' }, {}, CREDSSP],
  ])('%s', async (_, options, wish, protocol) => {
    await start(options)
    expect(await ask(dial(), wish)).toEqual({ result: 'selected', flags: 1, protocol })
  })

  test.each<[string, Partial<FrontWorldOptions>, Wish, number]>([
    ['RDP’s own security', {}, { protocols: SECURITY_PROTOCOL.rdp }, NEGOTIATION_FAILURE.tlsRequired],
    ['RDSTLS alone', {}, { protocols: SECURITY_PROTOCOL.rdstls }, NEGOTIATION_FAILURE.tlsRequired],
    ['NLA alone, where it is off', { nla: 'off' }, { protocols: CREDSSP }, NEGOTIATION_FAILURE.tlsRequired],
    [
      'TLS, where NLA is required',
      { nla: 'required' },
      { protocols: TLS },
      NEGOTIATION_FAILURE.credsspRequired,
    ],
    [
      'a client that hands over no password',
      {},
      { flags: REQUEST_FLAG.restrictedAdmin },
      NEGOTIATION_FAILURE.inconsistentFlags,
    ],
  ])('%s is refused with the code that says why, and the connection ends', async (_, options, wish, code) => {
    await start(options)
    const socket = dial()
    expect(await ask(socket, wish)).toEqual({ result: 'failure', code })
    await over(socket)
  })

  test('what knows of no negotiation is refused', async () => {
    await start()
    const socket = dial()
    socket.write(buildConnectionRequest({}))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(parseConnectionConfirm(answer)).toEqual({
      result: 'failure',
      code: NEGOTIATION_FAILURE.tlsRequired,
    })
    await over(socket)
  })

  test('what comes in clear text behind the request is not read as anything', async () => {
    await start()
    const socket = dial()
    const request = buildConnectionRequest({ negotiation: { flags: 0, protocols: TLS } })
    socket.write(Buffer.concat([request, Buffer.from('0300000702f080', 'hex')]))
    await over(socket)
    expect(world.arrivals).toEqual([])
  })

  test('what comes in place of TLS ends the connection', async () => {
    await start()
    const socket = dial()
    await ask(socket)
    socket.write(Buffer.from('0300000702f080', 'hex'))
    await over(socket)
    expect(world.arrivals).toEqual([])
  })
})

describe('the grace', () => {
  test.each<[string, (socket: Socket) => Promise<unknown>]>([
    ['before a byte', async () => undefined],
    ['in the request', async (socket) => socket.write(Buffer.from('0300', 'hex'))],
    ['before TLS', (socket) => ask(socket)],
    ['after TLS', (socket) => ask(socket).then(() => intoTls(socket))],
    [
      'in NLA',
      async (socket) => {
        await ask(socket, { cookie: RDP_TICKET_TOKEN })
        const secured = await intoTls(socket)
        secured.write(Buffer.from('3082', 'hex'))
      },
    ],
  ])('cuts who stops %s', async (_, go) => {
    await start({ loginGraceMs: 300 })
    const socket = dial()
    await go(socket)
    await over(socket)
    expect(world.arrivals).toEqual([])
  })

  test('goes on after the Client Info, until somebody has signed in', async () => {
    await start({ loginGraceMs: 1_500 })
    const [first, second] = [dial(), dial()]
    for (const socket of [first, second]) {
      await ask(socket)
      introduce(await intoTls(socket))
    }
    await arrived(2)
    world.arrivals[1]!.signedIn()
    const kept = world.arrivals[1]!.client
    await until(
      'one of them to be cut',
      () => world.arrivals.some(({ client }) => client.stream.closed) || undefined,
    )
    expect(world.arrivals[0]!.client.stream.closed).toBe(true)
    expect(kept.stream.closed).toBe(false)
  })
})

describe('a client past TLS', () => {
  async function client(info: Partial<ClientInfo> = {}) {
    await start()
    const socket = dial()
    await ask(socket)
    const secured = await intoTls(socket)
    const back = introduce(secured, info)
    const { client } = await arrived()
    return { socket, secured, back, client }
  }

  test('is known by its Client Info; its password is told once', async () => {
    const { client: one } = await client({ domain: 'CORP' })
    expect(world.arrivals[0]).toMatchObject({
      source: { address: '127.0.0.1' },
      identity: undefined,
    })
    expect(one.info).toMatchObject({ login: LOGIN, domain: 'CORP' })
    expect(one.requestedProtocols).toBe(TLS | CREDSSP)
    expect(one.settings.core).toMatchObject({ width: 800, height: 600 })
    expect(one.takePassword()).toBe(PASSWORD)
    expect(one.takePassword()).toBe('')
    expect(world.asked).toEqual([])
  })

  test('that sends input before it has a desktop has broken the protocol', async () => {
    const { client: one, back } = await client()
    const broken = new Promise<Error>((resolve) => {
      one.onBroken = resolve
    })
    back.sendFastPath(Uint8Array.of(0x04, 0x04, 0x00, 0x1e))
    expect((await broken).message).toContain('no input was expected')
  })

  /** Without channels, the client's user id follows the I/O channel's id. */
  const allAtOnce = Buffer.concat([
    buildConnectInitial(
      buildBlocks(
        buildTargetBlocks(parseClientData([{ type: BLOCK.clientCore, body: clientCore(800, 600) }]), {
          selectedProtocol: 1,
          channels: [],
          colourDepth: 32,
        }),
      ),
    ),
    buildAttachRequest(),
    buildDataRequest(IO_CHANNEL + 1, IO_CHANNEL, buildSecured(SECURITY_FLAG.info, buildClientInfo(INFO))),
  ])

  test('that waits for no answer is known all the same', async () => {
    await start()
    const socket = dial()
    await ask(socket)
    const secured = await intoTls(socket)
    secured.write(allAtOnce)
    expect((await arrived()).client.info.login).toBe(LOGIN)
  })

  test('that has something malformed behind its Client Info is cut off', async () => {
    await start()
    const socket = dial()
    await ask(socket)
    const secured = await intoTls(socket)
    secured.write(Buffer.concat([allAtOnce, Buffer.from('04040005', 'hex')]))
    secured.resume()
    await over(socket)
    expect(world.arrivals).toEqual([])
  })

  test('that goes is gone, once', async () => {
    const { client: one, secured } = await client()
    let times = 0
    one.onClosed = () => times++
    secured.destroy()
    await until('its end', () => times || undefined)
    expect(times).toBe(1)
  })

  test('is handed what is held back for it in its order', async () => {
    const { client: one, secured } = await client()
    const held: Uint8Array[] = []
    one.onSend = (bytes) => held.push(bytes)
    one.license()
    one.sendIo(Uint8Array.of(1, 2, 3))
    expect(held).toHaveLength(2)
    one.onSend = undefined
    for (const bytes of held) one.sendNow(bytes)
    one.sendDisconnect()
    one.stream.close()
    await over(secured)
  })
})

describeWithPeers('NLA by real clients', [...SCREEN_PEERS, ...GSSAPI_PEERS, 'xfreerdp'], () => {
  let screen: Screen
  let home: string
  beforeAll(async () => {
    screen = await startScreen(640, 480)
    home = mkdtempSync(join(tmpdir(), 'sallyport-rdp-'))
  })
  afterAll(async () => {
    await screen.stop()
    rmSync(home, { recursive: true, force: true })
  })

  const xfreerdp = (password: string) =>
    run(
      findProgram('xfreerdp'),
      [
        `/v:127.0.0.1:${world.port}`,
        `/u:${TICKET.login}`,
        `/p:${password}`,
        '/cert:ignore',
        '/sec:nla',
        '+auth-only',
        `/load-balance-info:${RDP_TICKET_TOKEN}`,
      ],
      { env: { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8', DISPLAY: screen.display } },
    )

  test('FreeRDP with a ticket is in, and one with another password is not', async () => {
    await start()
    const client = xfreerdp(TICKET.password)
    const { identity, client: one } = await arrived()
    expect(identity).toMatchObject({ token: 'token' })
    one.stream.destroy()
    await client
    expect(world.asked).toHaveLength(1)
    expect(world.asked[0]).toMatchObject({ protocol: 'RDP', source: { address: '127.0.0.1' } })
    expect(JSON.stringify(world.asked)).not.toContain(TICKET.password)
    const refused = await xfreerdp('another ticket')
    expect(`${refused.stdout}${refused.stderr}`).toContain('LOGON_FAILURE')
    expect(world.arrivals).toHaveLength(1)
  })

  test('MIT’s SPNEGO with gss-ntlmssp, which is as strict as mstsc', async () => {
    await start({ nla: 'required' })
    const login = { user: TICKET.login, domain: 'CORP', password: TICKET.password }
    expect(await gssapiClient(world.port, login)).toEqual({ result: 'in' })
    expect(await gssapiClient(world.port, { ...login, password: 'another' })).toMatchObject({
      result: 'refused',
    })
    // The client disconnects after the sign-in, and its identity is released.
    await until('the identity to be left', () => world.left.includes('token') || undefined)
  })

  test('a gate that cannot be asked lets nobody in', async () => {
    await start({ authenticate: () => Promise.reject<AuthenticateAnswer>(new Error('gone')) })
    const refused = await xfreerdp(TICKET.password)
    expect(`${refused.stdout}${refused.stderr}`).toContain('LOGON_FAILURE')
  })
})
