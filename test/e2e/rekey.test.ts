/**
 * Rekeying in the middle of a transfer, started by the client, the target, and the bastion: no byte is lost.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { connectTarget } from '../../proxies/ssh/back/back.ts'
import {
  buildChannelOpen,
  buildData,
  buildEof,
  buildExec,
  buildWindowAdjust,
} from '../../proxies/ssh/codec/build.ts'
import {
  dataOf,
  MSG,
  parseChannelOpenConfirmation,
  windowAdjustOf,
} from '../../proxies/ssh/codec/messages.ts'
import { REKEY_LIMITS } from '../../proxies/ssh/transport/limits.ts'
import type { Transport } from '../../proxies/ssh/transport/transport.ts'
import type { Gate, OpenSession } from '../../src/contract/gate.ts'
import { LOGIN_OPTIONS } from '../../src/model/login-options.ts'
import { RDP_OPTIONS } from '../../src/model/rdp-options.ts'
import { SSH_OPTIONS } from '../../src/model/ssh-options.ts'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'
import { scp, ssh } from '../peers/openssh.ts'
import { times } from '../times.ts'
import { type Bastion, startBastion } from './bastion.ts'

const FILE_BYTES = times(7, 24) * 1024 * 1024

let bastion: Bastion
let file: string
let digest: string

beforeAll(async () => {
  bastion = await startBastion({ sshd: { extraConfig: ['RekeyLimit 2M'] } })
  file = join(bastion.home.folder, 'file.bin')
  writeFileSync(file, randomBytes(FILE_BYTES))
  digest = digestOf(file)
})
afterAll(() => bastion.stop())

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const digestOf = (path: string) => sha256(readFileSync(path))

test.each(['aes128-gcm@openssh.com', 'chacha20-poly1305@openssh.com', 'aes256-ctr'])(
  'the target, and the client with %s, every 2 MiB',
  { timeout: 300_000 },
  async (cipher) => {
    const login = bastion.login({ options: ['RekeyLimit=2M', `Ciphers=${cipher}`] })
    const there = join(bastion.account.home, 'file.bin')
    for (const flags of [[], ['-O']]) {
      expect((await scp(bastion.home, login, file, { remote: there }, flags)).code).toBe(0)
      expect(digestOf(there)).toBe(digest)
      const back = join(bastion.home.folder, 'back.bin')
      expect((await scp(bastion.home, login, { remote: there }, back, flags)).code).toBe(0)
      expect(digestOf(back)).toBe(digest)
    }
    const { bytes } = await ssh(bastion.home, login, [`cat ${there}`])
    expect(sha256(bytes)).toBe(digest)
  },
)

/** Connects a leg to the target without a relay. */
async function legToTarget(): Promise<Transport> {
  const target = {
    canonical: '',
    protocol: 'SSH' as const,
    host: '127.0.0.1',
    port: bastion.sshd.port,
    device: '',
    service: '',
  }
  const session: OpenSession = {
    id: '',
    user: '',
    target: { ...target, login: bastion.account.name },
    credentials: [{ type: 'password', password: bastion.account.password }],
    rights: [],
    hostKeyTypes: [],
    wantsHostCertificate: false,
    loginOptions: LOGIN_OPTIONS,
    vncOptions: VNC_OPTIONS,
    rdpOptions: RDP_OPTIONS,
    options: SSH_OPTIONS,
  }
  // The only method of the gate that connectTarget calls.
  const gate = { hostKey: async () => ({ result: 'accepted' }) } as unknown as Gate
  return connectTarget(session, gate, 'Test', new AbortController().signal, async () => undefined)
}

const SESSION_CHANNEL = {
  type: 'session',
  sender: 0,
  window: 1 << 21,
  maxPacket: 32_768,
  typeData: new Uint8Array(0),
}

test('a leg that is held up agrees on new keys all the same', async () => {
  const leg = await legToTarget()
  let received = 0
  const exchanges: Promise<void>[] = []
  /**
   * Holds the leg from the target's first message of an exchange to its end, as the other leg's exchange
   * would.
   */
  const hold = async (): Promise<void> => {
    leg.paused = true
    await vi.waitUntil(() => !leg.inKex, { timeout: 300_000, interval: 1 })
    leg.paused = false
  }
  const finished = new Promise<void>((resolve) => {
    let channel = 0
    leg.onMessage = (payload) => {
      switch (payload[0]) {
        case MSG.channelOpenConfirmation:
          channel = parseChannelOpenConfirmation(payload).sender
          leg.send(buildExec(channel, false, `head -c ${FILE_BYTES} /dev/zero`))
          return
        case MSG.channelData: {
          const { length } = dataOf(payload)
          received += length
          leg.send(buildWindowAdjust(channel, length))
          return
        }
        case MSG.channelClose:
          resolve()
      }
    }
    leg.send(buildChannelOpen(SESSION_CHANNEL))
  })
  const watch = setInterval(() => {
    if (leg.inKex && !leg.paused) exchanges.push(hold())
  }, 0)
  await finished
  clearInterval(watch)
  await Promise.all(exchanges)
  leg.close()
  expect(exchanges.length).toBeGreaterThan(0)
  expect(received).toBe(FILE_BYTES)
})

test('the bastion toward the target, while data goes both ways', async () => {
  const leg = await legToTarget()
  const sent = randomBytes(8 * 1024 * 1024)
  const received: Buffer[] = []
  let window = 0
  let at = 0
  let rekeys = 0
  const finished = new Promise<void>((resolve) => {
    let channel = 0
    const pump = (): void => {
      while (at < sent.length && window > 0) {
        const piece = sent.subarray(at, at + Math.min(32_768, window))
        leg.send(buildData(channel, piece))
        window -= piece.length
        at += piece.length
        if (Math.floor(at / 2 ** 20) > rekeys)
          leg.refreshKeys(Date.now() + ++rekeys * 2 * REKEY_LIMITS.intervalMs)
      }
      if (at === sent.length) leg.send(buildEof(channel))
    }
    leg.onMessage = (payload) => {
      switch (payload[0]) {
        case MSG.channelOpenConfirmation: {
          const confirmation = parseChannelOpenConfirmation(payload)
          channel = confirmation.sender
          window = confirmation.window
          leg.send(buildExec(channel, false, 'cat'))
          return
        }
        case MSG.channelWindowAdjust:
          window += windowAdjustOf(payload)
          if (at < sent.length) pump()
          return
        case MSG.channelData: {
          const data = dataOf(payload)
          received.push(Buffer.from(data))
          leg.send(buildWindowAdjust(channel, data.length))
          return
        }
        case MSG.channelClose:
          resolve()
      }
    }
    leg.send(buildChannelOpen(SESSION_CHANNEL))
  })
  await finished
  leg.close()
  expect(rekeys).toBe(8)
  expect(sha256(Buffer.concat(received))).toBe(sha256(sent))
})
