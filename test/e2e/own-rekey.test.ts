/** Rekeying that the bastion starts on each leg: by bytes, by packets, by time, in both directions. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { connectTarget } from '../../proxies/ssh/back/back.ts'
import {
  buildChannelOpen,
  buildChannelOpenConfirmation,
  buildChannelSuccess,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildExitStatus,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import {
  dataOf,
  MSG,
  parseChannelOpen,
  parseChannelOpenConfirmation,
  windowAdjustOf,
} from '../../proxies/ssh/codec/messages.ts'
import { SshFront } from '../../proxies/ssh/front/front.ts'
import type { RekeyLimits, Transport } from '../../proxies/ssh/transport/transport.ts'
import type { Gate, OpenSession } from '../../src/contract/gate.ts'
import { newSshKey } from '../../src/host/ssh-keys.ts'
import { LOGIN_OPTIONS } from '../../src/model/login-options.ts'
import { RDP_OPTIONS } from '../../src/model/rdp-options.ts'
import { SSH_OPTIONS } from '../../src/model/ssh-options.ts'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'
import { createHome, type Home } from '../peers/home.ts'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { until } from '../until.ts'

const BYTES = 8 * 1024 * 1024
const NEVER: RekeyLimits = { bytes: Number.MAX_SAFE_INTEGER, packets: 2 ** 52, intervalMs: 2 ** 52 }
/** The minimum of exchanges: up to a window of 2 MiB is under way at each, and counts for the old keys. */
const CASES: [string, Partial<RekeyLimits>, number][] = [
  ['bytes', { bytes: 1024 * 1024 }, 3],
  ['packets', { packets: 50 }, 2],
  ['nothing', {}, 0],
]

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const data = randomBytes(BYTES)
const exchangesIn = (log: string) => log.split('SSH2_MSG_KEXINIT received').length - 1

/** Sends as much of `data` as the window allows; `pump` returns whether all was sent. */
class Sender {
  window = 0
  #at = 0
  readonly #leg: Transport

  constructor(leg: Transport) {
    this.#leg = leg
  }

  pump(channel: number): boolean {
    while (this.#at < data.length && this.window > 0) {
      const piece = data.subarray(this.#at, this.#at + Math.min(32_768, this.window))
      this.#leg.send(buildData(channel, piece))
      this.window -= piece.length
      this.#at += piece.length
    }
    return this.#at === data.length
  }
}

describeWithPeers('toward a client', ['ssh'], () => {
  let home: Home
  let file: string
  let server: Server | undefined

  beforeAll(() => {
    home = createHome()
    file = join(home.folder, 'data.bin')
    writeFileSync(file, data)
  })
  afterEach(() => server?.close())
  afterAll(() => home.remove())

  /** Starts a bastion's front whose channels all send `data`, and read until the end of input. */
  async function front(rekey: RekeyLimits, onLeg: (leg: Transport) => void): Promise<[number, () => Buffer]> {
    const received: Buffer[] = []
    const gate = {
      authenticate: async () => ({
        result: 'accepted',
        identity: { token: '', user: 'x', displayName: '', hasTarget: true },
      }),
      leave: async () => undefined,
    } as unknown as Gate
    const sshFront = new SshFront({
      gate,
      hostKeys: [newSshKey('ed25519').private],
      ident: 'Test',
      rekey,
      onSignedIn: (_identity, _source, leg) => {
        const sender = new Sender(leg)
        let channel = 0
        let ended = 0
        const end = (): void => {
          if (++ended < 2) return
          leg.send(buildExitStatus(channel, 0))
          leg.send(buildClose(channel))
        }
        const pump = (): void => {
          if (!sending || !sender.pump(channel)) return
          sending = false
          leg.send(buildEof(channel))
          end()
        }
        let sending = false
        leg.onMessage = (payload) => {
          switch (payload[0]) {
            case MSG.channelOpen: {
              const open = parseChannelOpen(payload)
              channel = open.sender
              sender.window = open.window
              leg.send(
                buildChannelOpenConfirmation({
                  recipient: channel,
                  sender: 0,
                  window: 1 << 21,
                  maxPacket: 32_768,
                  typeData: new Uint8Array(0),
                }),
              )
              return
            }
            case MSG.channelRequest:
              if (sending || ended > 0) return
              leg.send(buildChannelSuccess(channel))
              onLeg(leg)
              sending = true
              pump()
              return
            case MSG.channelWindowAdjust:
              sender.window += windowAdjustOf(payload)
              pump()
              return
            case MSG.channelData:
              received.push(Buffer.from(dataOf(payload)))
              leg.send(buildWindowAdjust(channel, dataOf(payload).length))
              return
            case MSG.channelEof:
              end()
          }
        }
      },
    })
    server = createServer((socket) => sshFront.accept(socket)).listen(0, '127.0.0.1')
    await new Promise((resolve) => server!.once('listening', resolve))
    return [(server.address() as AddressInfo).port, () => Buffer.concat(received)]
  }

  test.each(CASES)('by %s, while data goes both ways', async (_, limits, atLeast) => {
    const [port, received] = await front({ ...NEVER, ...limits }, () => undefined)
    const { code, stdout, stderr } = await client(port)
    expect({ code, digest: stdout.trim() }).toEqual({ code: 0, digest: `${sha256(data)}  -` })
    expect(sha256(received())).toBe(sha256(data))
    const rekeys = exchangesIn(stderr) - 1
    expect(rekeys).toBeGreaterThanOrEqual(atLeast)
    if (atLeast === 0) expect(rekeys).toBe(0)
  })

  test('by time', async () => {
    const [port, received] = await front({ ...NEVER, intervalMs: 3_600_000 }, (leg) => {
      leg.refreshKeys(Date.now() + 3_500_000)
      leg.refreshKeys(Date.now() + 3_700_000)
      leg.refreshKeys(Date.now() + 3_700_000)
    })
    const { code, stderr } = await client(port)
    expect({ code, digest: sha256(received()) }).toEqual({ code: 0, digest: sha256(data) })
    expect(exchangesIn(stderr) - 1).toBe(1)
  })

  const client = (port: number) => {
    const ssh = `ssh -v -F none -p ${port} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes`
    return run('bash', ['-c', `set -o pipefail; ${ssh} x@127.0.0.1 it < ${file} | sha256sum`])
  }
})

describeWithPeers('toward a target', ['sshd', 'ssh-keygen'], () => {
  let home: Home
  let sshd: Sshd
  let key: SshKey
  let connections = 0

  beforeAll(async () => {
    home = createHome()
    key = await generateKey(home.folder, { type: 'ed25519' })
    sshd = await startSshd({
      users: [{ name: userInfo().username, authorizedKeys: [key.publicKey] }],
      extraConfig: ['LogLevel DEBUG1'],
    })
  })
  afterAll(async () => {
    await sshd.stop()
    home.remove()
  })

  describe.each([
    ['up', 'sha256sum', true],
    ['down', `cat FILE`, false],
  ])('%s', (_direction, command, isUp) => {
    test.each(CASES)('by %s', async (_, limits, atLeast) => {
      const file = join(home.folder, 'there.bin')
      writeFileSync(file, data)
      const session: OpenSession = {
        id: '',
        user: '',
        target: {
          canonical: '',
          protocol: 'SSH',
          host: '127.0.0.1',
          port: sshd.port,
          device: '',
          service: '',
          login: userInfo().username,
        },
        credentials: [{ type: 'ssh_key', privateKey: readFileSync(key.path, 'utf8') }],
        rights: [],
        hostKeyTypes: [],
        wantsHostCertificate: false,
        loginOptions: LOGIN_OPTIONS,
        vncOptions: VNC_OPTIONS,
        rdpOptions: RDP_OPTIONS,
        options: SSH_OPTIONS,
      }
      const gate = { hostKey: async () => ({ result: 'accepted' }) } as unknown as Gate
      const ident = `Test${++connections}`
      const signal = new AbortController().signal
      const leg = await connectTarget(session, gate, ident, signal, async () => undefined, {
        ...NEVER,
        ...limits,
      })
      const received = await transfer(leg, command.replace('FILE', file), isUp)
      leg.close()
      expect(isUp ? received.toString() : sha256(received)).toMatch(sha256(data))
      const rekeys = await until('key exchanges in the log', () => {
        const [, own] = sshd.log().split(`remote software version ${ident}`)
        const count = own === undefined ? -1 : exchangesIn(own) - 1
        return count < atLeast ? undefined : count
      })
      if (atLeast === 0) expect(rekeys).toBe(0)
    })
  })

  /** Runs the command, with `data` as its input if `isUp`, and returns its output. */
  function transfer(leg: Transport, command: string, isUp: boolean): Promise<Buffer> {
    const received: Buffer[] = []
    const sender = new Sender(leg)
    let channel = 0
    let isSent = false
    return new Promise((resolve) => {
      const pump = (): void => {
        if (isSent || (isUp && !sender.pump(channel))) return
        isSent = true
        leg.send(buildEof(channel))
      }
      leg.onMessage = (payload) => {
        switch (payload[0]) {
          case MSG.channelOpenConfirmation: {
            const confirmation = parseChannelOpenConfirmation(payload)
            channel = confirmation.sender
            sender.window = confirmation.window
            leg.send(buildExec(channel, false, command))
            pump()
            return
          }
          case MSG.channelWindowAdjust:
            sender.window += windowAdjustOf(payload)
            pump()
            return
          case MSG.channelData:
            received.push(Buffer.from(dataOf(payload)))
            leg.send(buildWindowAdjust(channel, dataOf(payload).length))
            return
          case MSG.channelClose:
            resolve(Buffer.concat(received))
        }
      }
      leg.send(
        buildChannelOpen({
          type: 'session',
          sender: 0,
          window: 1 << 21,
          maxPacket: 32_768,
          typeData: new Uint8Array(0),
        }),
      )
    })
  }
})
