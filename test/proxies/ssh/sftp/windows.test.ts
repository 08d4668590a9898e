/** A filtered channel respects both peers' windows, and holds a bounded number of bytes. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Suspension } from '../../../../proxies/session/suspension.ts'
import { MAX_WINDOW } from '../../../../proxies/ssh/channel/limits.ts'
import {
  buildChannelRequest,
  buildClose,
  buildData,
  buildEof,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import { dataOf, MSG, windowAdjustOf } from '../../../../proxies/ssh/codec/messages.ts'
import { FXP } from '../../../../proxies/ssh/codec/sftp.ts'
import { Writer } from '../../../../proxies/ssh/codec/writer.ts'
import { OpenSizes } from '../../../../proxies/ssh/files/open-sizes.ts'
import type { SshSession } from '../../../../proxies/ssh/policy/session.ts'
import type { ChannelHost } from '../../../../proxies/ssh/relay/channel.ts'
import { SessionChannel } from '../../../../proxies/ssh/relay/session-channel.ts'
import { Turns } from '../../../../proxies/ssh/sftp/turns.ts'
import type { Transport } from '../../../../proxies/ssh/transport/transport.ts'
import { FileJudge } from '../../../../src/model/file-judge.ts'
import { parseFileRule } from '../../../../src/model/file-rules.ts'
import type { Right } from '../../../../src/model/rights.ts'
import { idOf, init, named, open, packetsOf, READ, read, Target } from './support/packets.ts'

const MAX_PACKET = 1_000

/** A peer that tracks the window it was granted, and the one that it grants. */
class Peer {
  /** Bytes that it may send. */
  credit = 0
  /** Bytes granted and not yet received. */
  window: number
  data = Buffer.alloc(0)
  /** Types of messages other than data and adjustments. */
  readonly others: number[] = []

  constructor(window: number) {
    this.window = window
  }

  receive(payload: Buffer): void {
    switch (payload[0]) {
      case MSG.channelData: {
        const data = dataOf(payload)
        expect(data.length).toBeLessThanOrEqual(Math.min(this.window, MAX_PACKET))
        this.window -= data.length
        this.data = Buffer.concat([this.data, data])
        return
      }
      case MSG.channelWindowAdjust:
        this.credit += windowAdjustOf(payload)
        return
      case MSG.channelOpenConfirmation:
        this.credit += payload.readUInt32BE(9)
        return
    }
    this.others.push(payload[0]!)
  }
}

class Scene {
  readonly client: Peer
  readonly target: Peer
  readonly channel: SessionChannel
  readonly server = new Target()
  denials = 0
  #toSend = Buffer.alloc(0)
  #served = 0

  constructor(rights: Right[], clientWindow: number, targetWindow: number, rules: string[] = []) {
    this.client = new Peer(clientWindow)
    this.target = new Peer(targetWindow)
    const leg = (peer: Peer) => ({ send: (payload: Buffer) => peer.receive(payload) }) as unknown as Transport
    const session = {
      rights: new Set(rights),
      target: { device: 'srv1', protocol: 'SSH' },
      granted: async () => undefined,
      denied: () => undefined,
      deniedFile: () => void this.denials++,
      recorder: () => undefined,
      fileRules: new FileJudge(rules.map(parseFileRule)),
      openSizes: new OpenSizes(),
      turns: new Turns(),
      filtersSftp: true,
      suspension: new Suspension(),
      questionFor: () => undefined,
    }
    const host: ChannelHost = {
      client: leg(this.client),
      target: leg(this.target),
      session: session as unknown as SshSession,
      onClosed: () => undefined,
      takeMotd: () => undefined,
      isClientStuck: false,
      setDeciding: () => undefined,
      guarded: (work) => work(),
    }
    this.channel = new SessionChannel(host, 7, { id: 3, window: clientWindow, maxPacket: MAX_PACKET })
  }

  async begin(): Promise<this> {
    this.target.credit += this.channel.offer().window
    this.channel.confirmed({
      recipient: 7,
      sender: 9,
      window: this.target.window,
      maxPacket: MAX_PACKET,
      typeData: new Uint8Array(0),
    })
    this.channel.fromClient(buildChannelRequest(7, 'subsystem', false, new Writer().string('sftp').finish()))
    await new Promise((resolve) => setImmediate(resolve))
    this.say(init())
    this.serve()
    return this
  }

  /** Queues bytes for the client to send. */
  say(bytes: Buffer): void {
    this.#toSend = Buffer.concat([this.#toSend, bytes])
    this.push()
  }

  /** Sends as much as the client may. */
  push(): void {
    while (this.#toSend.length > 0 && this.client.credit > 0) {
      const piece = this.#toSend.subarray(0, Math.min(this.client.credit, MAX_PACKET))
      this.client.credit -= piece.length
      this.#toSend = this.#toSend.subarray(piece.length)
      this.channel.fromClient(buildData(7, piece))
    }
  }

  get unsent(): number {
    return this.#toSend.length
  }

  #answers = Buffer.alloc(0)

  /** Lets the target read all its input, grant window again, and reply as far as it may. */
  serve(): void {
    const fresh = this.target.data.subarray(this.#served)
    this.#served = this.target.data.length
    this.#answers = Buffer.concat([this.#answers, this.server.take(fresh)])
    this.target.window += fresh.length
    if (fresh.length > 0) this.channel.fromTarget(buildWindowAdjust(7, fresh.length))
    while (this.#answers.length > 0 && this.target.credit > 0) {
      const piece = this.#answers.subarray(0, Math.min(this.target.credit, MAX_PACKET))
      this.target.credit -= piece.length
      this.#answers = this.#answers.subarray(piece.length)
      this.channel.fromTarget(buildData(7, piece))
    }
  }

  /** Lets the client read its input and grant as much window again. */
  read(): void {
    const taken = this.#read
    this.#read = this.client.data.length
    this.client.window += this.#read - taken
    if (this.#read > taken) this.channel.fromClient(buildWindowAdjust(7, this.#read - taken))
  }
  #read = 0

  /** Runs both sides until nothing changes. */
  settle(): void {
    for (let turn = 0; turn < 2000; turn++) {
      const before = [this.client.data.length, this.target.data.length, this.unsent].join()
      this.read()
      this.push()
      this.serve()
      if (before === [this.client.data.length, this.target.data.length, this.unsent].join()) return
    }
    throw new Error('it never comes to rest')
  }
}

const refused = (count: number, from = 0) =>
  Buffer.concat(Array.from({ length: count }, (_, id) => named(FXP.remove, from + id, '/some/path')))

describe('what the bastion answers itself', () => {
  test('is granted to the client anew, also where the target has a small window', async () => {
    const scene = await new Scene(['SSH_SCP_DOWN'], 100_000, 2_000).begin()
    scene.say(refused(2_000))
    scene.settle()
    expect(scene.unsent).toBe(0)
    expect(scene.denials).toBe(2_000)
    const [, ...answers] = packetsOf(scene.client.data)
    expect(answers.map(idOf)).toEqual(Array.from({ length: 2_000 }, (_, id) => id))
  })

  test('stops the client that does not read it, after its window and a bounded rest', async () => {
    const scene = await new Scene(['SSH_SCP_DOWN'], 5_000, MAX_WINDOW).begin()
    scene.say(refused(500_000))
    for (let turn = 0; turn < 50; turn++) {
      scene.push()
      scene.serve()
    }
    expect(scene.client.window).toBeGreaterThanOrEqual(0)
    const sent = 500_000 * refused(1).length - scene.unsent
    expect(sent).toBeLessThan(MAX_WINDOW + 100_000)
    expect(scene.denials).toBeLessThan(2_000)
  }, 300_000)

  test('goes on when the client reads again', async () => {
    const scene = await new Scene(['SSH_SCP_DOWN'], 5_000, 20_000).begin()
    scene.say(refused(3_000))
    scene.serve()
    scene.settle()
    expect(packetsOf(scene.client.data)).toHaveLength(3_001)
  })

  test('lets the end of the channel wait behind it', async () => {
    const scene = await new Scene(['SSH_SCP_DOWN'], 2_000, 20_000).begin()
    scene.say(refused(200))
    scene.channel.fromTarget(buildChannelRequest(7, 'exit-status', false, Buffer.from([0, 0, 0, 0])))
    scene.channel.fromTarget(buildEof(7))
    scene.channel.fromTarget(buildClose(7))
    expect(scene.client.others).toEqual([])
    scene.settle()
    expect(scene.client.others).toEqual([MSG.channelRequest, MSG.channelEof, MSG.channelClose])
    expect(packetsOf(scene.client.data)).toHaveLength(201)
  })

  test('does not keep a channel that the client has closed', async () => {
    const scene = await new Scene(['SSH_SCP_DOWN'], 2_000, 20_000).begin()
    scene.say(refused(200))
    scene.channel.fromTarget(buildClose(7))
    scene.channel.fromClient(buildClose(7))
    expect(scene.client.others).toEqual([MSG.channelClose])
    expect(scene.target.others.at(-1)).toBe(MSG.channelClose)
  })
})

test("the client's end waits behind what it has sent", async () => {
  const scene = await new Scene(['SFTP_SESSION'], 50_000, 50_000, ['deny down /etc/**']).begin()
  scene.say(Buffer.concat([open(1, '/in/f', READ), named(FXP.stat, 2, '/in/f')]))
  scene.channel.fromClient(buildEof(7))
  expect(scene.target.others).toEqual([MSG.channelRequest])
  scene.settle()
  expect(scene.server.got.map(({ type }) => type)).toEqual([FXP.init, FXP.realpath, FXP.open, FXP.stat])
  expect(scene.target.others).toEqual([MSG.channelRequest, MSG.channelEof])
})

test('any windows, any mixture of requests: nobody gets more than it granted, each request has one answer', async () => {
  const windows = fc.integer({ min: 1_500, max: 20_000 })
  const kind = fc.constantFrom('refused', 'stat', 'read', 'judged')
  const steps = fc.array(fc.constantFrom('read', 'serve', 'push'), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(
      windows,
      windows,
      fc.array(kind, { maxLength: 200 }),
      steps,
      async (c, t, kinds, order) => {
        const rules = ['deny any /etc/**']
        const scene = await new Scene(['SSH_SCP_DOWN'], c, t, rules).begin()
        scene.say(open(100_000, '/in/f', READ))
        scene.settle()
        const requests = kinds.map((what, id) => {
          if (what === 'refused') return named(FXP.remove, id, '/in/f')
          if (what === 'stat') return named(FXP.stat, id, '/in/f')
          if (what === 'read') return read(id, 'h0', 0, 100)
          return named(FXP.opendir, id, id % 2 === 0 ? '/etc' : '/in')
        })
        scene.say(Buffer.concat(requests))
        for (const step of order) scene[step as 'read' | 'serve' | 'push']()
        scene.settle()
        expect(scene.unsent).toBe(0)
        const ids = packetsOf(scene.client.data).slice(2).map(idOf)
        expect(ids.sort((a, b) => a - b)).toEqual(kinds.map((_, id) => id))
        // The remaining state is the open handle's, not bytes.
        expect(scene.client.credit).toBeGreaterThan(0)
      },
    ),
    { numRuns: 150 },
  )
}, 300_000)
