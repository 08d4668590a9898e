/** New keys in the middle of a transfer, asked for by the client, the target, and the bastion: not a byte is lost. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectTarget } from '../../proxies/ssh/back.ts'
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
import { REKEY_LIMITS } from '../../proxies/ssh/limits.ts'
import type { Gate, OpenSession } from '../../src/gate/messages.ts'
import { SSH_OPTIONS } from '../../src/model/ssh-options.ts'
import { scp, ssh } from '../peers/openssh.ts'
import { type Bastion, startBastion } from './bastion.ts'

const FILE_BYTES = 24 * 1024 * 1024

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

test('the bastion toward the target, while data goes both ways', async () => {
  const target = { canonical: '', host: '127.0.0.1', port: bastion.sshd.port, device: '', service: '' }
  const session: OpenSession = {
    id: '',
    user: '',
    target: { ...target, login: bastion.account.name },
    credentials: [{ type: 'password', password: bastion.account.password }],
    rights: [],
    hostKeyTypes: [],
    options: SSH_OPTIONS,
  }
  // All that connectTarget asks of the gate.
  const gate = { hostKey: async () => ({ result: 'accepted' }) } as unknown as Gate
  const leg = await connectTarget(session, gate, 'Test', new AbortController().signal)

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
    const open = {
      type: 'session',
      sender: 0,
      window: 1 << 21,
      maxPacket: 32_768,
      typeData: new Uint8Array(0),
    }
    leg.send(buildChannelOpen(open))
  })
  await finished
  leg.end()
  expect(rekeys).toBe(8)
  expect(sha256(Buffer.concat(received))).toBe(sha256(sent))
})
