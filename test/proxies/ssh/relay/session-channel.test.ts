/** One session channel with peers that break the rules; the legs only collect its messages. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { Suspension } from '../../../../proxies/session/suspension.ts'
import { DRAIN_MS, HELD_OUTPUT, MAX_QUEUED, TYPED_WINDOW } from '../../../../proxies/ssh/channel/limits.ts'
import { TAKING_MS } from '../../../../proxies/ssh/channel/taking-watch.ts'
import {
  buildChannelRequest,
  buildClose,
  buildData,
  buildEof,
  buildExec,
  buildExtendedData,
  buildPtyRequest,
  buildShell,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import {
  dataOf,
  MSG,
  parseChannelOpenConfirmation,
  parseChannelRequest,
  recipientOf,
  windowAdjustOf,
} from '../../../../proxies/ssh/codec/messages.ts'
import { OpenSizes } from '../../../../proxies/ssh/files/open-sizes.ts'
import type { SshSession } from '../../../../proxies/ssh/policy/session.ts'
import type { ChannelRecorder } from '../../../../proxies/ssh/recorder/recorder.ts'
import type { ChannelHost } from '../../../../proxies/ssh/relay/channel.ts'
import { SessionChannel } from '../../../../proxies/ssh/relay/session-channel.ts'
import { Turns } from '../../../../proxies/ssh/sftp/turns.ts'
import type { Transport } from '../../../../proxies/ssh/transport/transport.ts'
import { FileJudge } from '../../../../src/model/file-judge.ts'
import type { Right } from '../../../../src/model/rights.ts'

let toClient: Buffer[]
let toTarget: Buffer[]
let granted: Right[]
let breach: unknown
let limits: SshSession['limits']
let recorder: Partial<ChannelRecorder> | undefined
let channel: SessionChannel
/** Called when the recorder may admit more. */
let again: () => void

const NOTHING = new Uint8Array(0)

function newChannel(
  rights: Right[],
  adopted?: ConstructorParameters<typeof SessionChannel>[3],
  window = 100_000,
): SessionChannel {
  const leg = (sent: Buffer[]) =>
    ({ send: (payload: Buffer) => sent.push(Buffer.from(payload)) }) as unknown as Transport
  const session = {
    suspension: new Suspension(),
    questionFor: () => undefined,
    rights: new Set(rights),
    target: { device: 'srv1', protocol: 'SSH' },
    limits,
    granted: async ({ right }: { right: Right }) => void granted.push(right),
    denied: () => undefined,
    recorder: (...[, , , , admit]: Parameters<SshSession['recorder']>) => {
      again = admit
      return recorder
    },
    fileRules: new FileJudge([]),
    openSizes: new OpenSizes(),
    turns: new Turns(),
    filtersSftp: false,
    bytesIn: 0,
    bytesOut: 0,
  } as unknown as SshSession
  const host: ChannelHost = {
    client: leg(toClient),
    target: leg(toTarget),
    session,
    onClosed: () => undefined,
    takeMotd: () => undefined,
    isClientStuck: false,
    setDeciding: () => undefined,
    guarded: (work) => {
      try {
        work()
      } catch (error) {
        breach = error
      }
    },
  }
  return new SessionChannel(host, 7, { id: 3, window, maxPacket: 32_768 }, adopted)
}

function opened(rights: Right[], window = 100_000): SessionChannel {
  const one = newChannel(rights)
  one.offer()
  one.confirmed({ recipient: 7, sender: 9, window, maxPacket: 32_768, typeData: NOTHING })
  return one
}

const decided = () => new Promise((resolve) => setImmediate(resolve))
const kinds = (sent: Buffer[]) => sent.map(([type]) => type)

beforeEach(() => {
  toClient = []
  toTarget = []
  granted = []
  breach = undefined
  recorder = undefined
  limits = undefined
  channel = opened(['SSH_REMOTE_COMMAND', 'SSH_SCP_UP'])
})

test('a menu that had a terminal is not followed by a shell without one', () => {
  limits = { noTerminal: true }
  const pty = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
  const messages = [buildPtyRequest(7, false, pty), buildShell(7, true)]
  channel = newChannel(['SSH_SHELL'], { credit: 1000, messages, isAnswered: true })
  channel.offer()
  channel.confirmed({ recipient: 7, sender: 9, window: 1000, maxPacket: 32_768, typeData: NOTHING })
  expect(Buffer.concat(toClient).toString('latin1')).toContain('your certificate allows no terminal')
  expect(kinds(toClient)).toContain(MSG.channelClose)
  expect(kinds(toTarget)).toEqual([MSG.channelClose])
})

describe('while the main request waits for the audit log', () => {
  test('nothing goes to the target', async () => {
    channel.fromClient(buildExec(7, true, 'id'))
    channel.fromClient(buildData(7, 'typed early'))
    channel.fromClient(buildEof(7))
    expect(toTarget).toEqual([])
    await decided()
    expect(kinds(toTarget)).toEqual([MSG.channelRequest, MSG.channelData, MSG.channelEof])
  })

  test('a malformed message behind it ends the session, and not the broker', async () => {
    channel.fromClient(buildExec(7, true, 'id'))
    channel.fromClient(buildExtendedData(7, 'no client sends this'))
    await decided()
    expect(breach).toBeInstanceOf(MalformedError)
  })

  test('what waits is bounded in bytes, not in messages', () => {
    channel.fromClient(buildExec(7, true, 'id'))
    for (let n = 0; n < 500; n++) channel.fromClient(buildData(7, 'x'))
    const large = buildChannelRequest(7, 'env', false, Buffer.alloc(30_000))
    expect(() => {
      for (let n = 0; n * large.length <= MAX_QUEUED; n++) channel.fromClient(large)
    }).toThrow(MalformedError)
  })
})

describe('before the main request', () => {
  test.each([
    ['data', buildData(7, 'x')],
    ['an end', buildEof(7)],
  ])('%s is a breach, and blocks nothing', (_, message) => {
    expect(() => channel.fromClient(message)).toThrow('before a shell, command or subsystem')
  })
})

test('on a terminal a transfer is a command, for its files would not be seen', async () => {
  const pty = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
  channel.fromClient(buildPtyRequest(7, true, pty))
  channel.fromClient(buildExec(7, true, 'scp -t /tmp/x'))
  await decided()
  expect(granted).toEqual(['SSH_REMOTE_COMMAND'])
  const other = opened(['SSH_SCP_UP'])
  other.fromClient(buildPtyRequest(7, true, pty))
  other.fromClient(buildExec(7, true, 'scp -t /tmp/x'))
  await decided()
  expect(granted).toEqual(['SSH_REMOTE_COMMAND'])
})

test('window that the client of a menu adds before the target has confirmed is granted afterwards', () => {
  const one = newChannel(['SSH_REMOTE_COMMAND'], { credit: 100, messages: [], isAnswered: true })
  one.offer()
  toTarget.length = 0
  one.fromClient(buildWindowAdjust(7, 5_000))
  expect(toTarget).toEqual([])
  one.confirmed({ recipient: 7, sender: 9, window: 1, maxPacket: 32_768, typeData: NOTHING })
  expect(toTarget.map(recipientOf)).toEqual([9])
  expect(toTarget.map(windowAdjustOf)).toEqual([5_000])
})

test('a message before the client knows the channel breaks the protocol', () => {
  const one = newChannel(['SSH_REMOTE_COMMAND'])
  one.offer()
  expect(() => one.fromClient(buildWindowAdjust(7, 5_000))).toThrow('a message before the confirmation')
})

test('a second main request on a channel is refused', async () => {
  channel.fromClient(buildExec(7, true, 'id'))
  await decided()
  channel.fromClient(buildExec(7, true, 'reboot'))
  channel.fromTarget(Buffer.from([MSG.channelSuccess, 0, 0, 0, 7]))
  expect(kinds(toTarget)).toEqual([MSG.channelRequest])
  expect(kinds(toClient).slice(-2)).toEqual([MSG.channelSuccess, MSG.channelFailure])
})

test('the target may only say how its program ended', async () => {
  channel.fromClient(buildExec(7, false, 'id'))
  await decided()
  toClient.length = 0
  channel.fromTarget(buildChannelRequest(7, 'x11-req', true, NOTHING))
  channel.fromTarget(buildChannelRequest(7, 'exit-status', false, Buffer.from([0, 0, 0, 5])))
  expect(toClient.map((payload) => parseChannelRequest(payload).type)).toEqual(['exit-status'])
  expect(kinds(toTarget).at(-1)).toBe(MSG.channelFailure)
})

test('a client that has closed its terminal gets the exit status, and no more output', async () => {
  const pty = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
  channel = opened(['SSH_SHELL'])
  channel.fromClient(buildPtyRequest(7, false, pty))
  channel.fromClient(buildShell(7, false))
  await decided()
  channel.fromTarget(buildEof(7))
  channel.fromClient(buildClose(7))
  toClient.length = 0
  channel.fromTarget(buildData(7, Buffer.from('late')))
  channel.fromTarget(buildChannelRequest(7, 'exit-status', false, Buffer.from([0, 0, 0, 5])))
  channel.fromTarget(buildClose(7))
  expect(kinds(toClient)).toEqual([MSG.channelRequest, MSG.channelClose])
})

test('data beyond the window that was granted is a breach, from either side', async () => {
  channel.fromClient(buildExec(7, false, 'cat'))
  await decided()
  expect(() => {
    for (let n = 0; n < 5; n++) channel.fromTarget(buildData(7, Buffer.alloc(30_000)))
  }).toThrow('more data than the window allows')
  expect(() => {
    for (let n = 0; n < 5; n++) channel.fromClient(buildData(7, Buffer.alloc(30_000)))
  }).toThrow('more data than the window allows')
})

describe('a recorder that holds input back', () => {
  let may: number
  let shown: string
  const sent = () =>
    toTarget
      .filter(([type]) => type === MSG.channelData)
      .map((payload) => Buffer.from(dataOf(payload)).toString())

  async function begun(request = buildExec(7, true, 'sh')): Promise<void> {
    may = 0
    shown = ''
    recorder = {
      admit: (data) => Math.min(may, data.length),
      fromClient: (data) => {
        may -= data.length
        shown += Buffer.from(data).toString()
      },
    }
    channel.fromClient(request)
    await decided()
  }

  test('gets it in parts, and nothing overtakes what waits', async () => {
    await begun()
    may = 3
    channel.fromClient(buildData(7, 'abcdef'))
    channel.fromClient(buildData(7, 'ghi'))
    channel.fromClient(buildEof(7))
    expect(sent()).toEqual(['abc'])
    may = 1
    again()
    expect(sent()).toEqual(['abc', 'd'])
    may = 100
    again()
    expect(sent().join('')).toEqual('abcdefghi')
    expect(shown).toBe('abcdefghi')
    expect(kinds(toTarget).at(-1)).toBe(MSG.channelEof)
  })

  /** Pastes into a terminal as fast as the window allows; the recorder admits `step` bytes at a time. */
  async function pasted(total: number, { window, step }: { window: number; step: number }) {
    const size = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0 }
    channel = newChannel(['SSH_SHELL'])
    channel.offer()
    toClient.length = 0
    channel.confirmed({ recipient: 7, sender: 9, window, maxPacket: 32_768, typeData: NOTHING })
    const { window: begin } = parseChannelOpenConfirmation(toClient[0]!)
    channel.fromClient(buildPtyRequest(7, false, { ...size, modes: NOTHING }))
    await begun(buildShell(7, false))
    toTarget.length = 0
    let [pasted, arrived, taken, most] = [0, 0, 0, 0]
    for (let before = -1; arrived < total && before < pasted + arrived; ) {
      before = pasted + arrived
      const granted = toClient.filter(([type]) => type === MSG.channelWindowAdjust).map(windowAdjustOf)
      const left = Math.min(total, begin + granted.reduce((sum, bytes) => sum + bytes, 0)) - pasted
      const piece = Math.min(left, 32_768)
      if (piece > 0) channel.fromClient(buildData(7, Buffer.alloc(piece, 'x')))
      pasted += piece
      may = step
      again()
      arrived = shown.length
      most = Math.max(most, pasted - arrived)
      if (arrived - taken < window / 2) continue
      channel.fromTarget(buildWindowAdjust(7, arrived - taken))
      taken = arrived
    }
    return { arrived, most }
  }

  test.each([
    ['more than the bastion grants', 2 * 1024 * 1024],
    ['less than that', 24 * 1024],
  ])(
    'has a paste whole, and never more of it than one window, of a target that takes %s',
    async (_, window) => {
      const { arrived, most } = await pasted(1024 * 1024, { window, step: 1_000 })
      expect(arrived).toBe(1024 * 1024)
      expect(most).toBeLessThanOrEqual(Math.min(window, TYPED_WINDOW))
      expect(breach).toBeUndefined()
    },
  )

  test('and ends the channel has let nothing more pass', async () => {
    await begun()
    recorder = Object.assign(recorder!, {
      admit: () => {
        channel.refuse('no')
        return 0
      },
    })
    channel.fromClient(buildData(7, 'abc'))
    again()
    expect(sent()).toEqual([])
    expect(kinds(toClient).at(-1)).toBe(MSG.channelClose)
  })
})

describe('a terminal', () => {
  const pty = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }
  const shown = () =>
    Buffer.concat(
      toClient.filter(([type]) => type === MSG.channelData).map((message) => dataOf(message)),
    ).toString()
  const typed = () =>
    toTarget
      .filter(([type]) => type === MSG.channelData)
      .map((message) => Buffer.from(dataOf(message)).toString())

  beforeEach(() => void vi.useFakeTimers({ now: 0, toFake: ['performance', 'setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  /** Opens a terminal whose client reads no output. */
  async function blind() {
    channel = newChannel(['SSH_SHELL'], undefined, 0)
    channel.offer()
    channel.confirmed({ recipient: 7, sender: 9, window: 100_000, maxPacket: 32_768, typeData: NOTHING })
    channel.fromClient(buildPtyRequest(7, false, pty))
    channel.fromClient(buildShell(7, false))
    await decided()
    channel.fromTarget(buildData(7, '$ '))
    vi.advanceTimersByTime(TAKING_MS)
  }

  test('grants its target the same whether the client takes anything or not, and no more than that', async () => {
    await blind()
    expect(toTarget.filter(([type]) => type === MSG.channelWindowAdjust).map(windowAdjustOf)).toEqual([
      HELD_OUTPUT,
    ])
    for (let left = HELD_OUTPUT - 2; left > 0; left -= 16_384) {
      channel.fromTarget(buildData(7, Buffer.alloc(Math.min(left, 16_384), 'x')))
    }
    expect(() => channel.fromTarget(buildData(7, 'x'))).toThrow('more data than the window allows')
    expect(shown()).toBe('')
    channel.fromClient(buildWindowAdjust(7, 1_000))
    expect(shown()).toBe(`$ ${'x'.repeat(998)}`)
  })

  test('types nothing for a client that does not look, and all of it when that looks again', async () => {
    await blind()
    for (const key of 'ls\r') channel.fromClient(buildData(7, key))
    expect(typed()).toEqual([])
    channel.fromClient(buildWindowAdjust(7, 10))
    expect(typed().join('')).toBe('ls\r')
  })

  test('types nothing for one that takes a byte now and then, and again once it is not late', async () => {
    await blind()
    channel.fromTarget(buildData(7, Buffer.alloc(1_000, 'x')))
    for (let taken = 0; taken < 5; taken++) {
      channel.fromClient(buildWindowAdjust(7, 1))
      channel.fromClient(buildData(7, 'i'))
      expect(typed()).toEqual(taken < 1 ? [] : ['i', 'i'])
      vi.advanceTimersByTime(TAKING_MS - 100)
    }
    const before = typed().join('').length
    channel.fromClient(buildData(7, 'd'))
    expect(typed().join('').length).toBe(before)
    channel.fromClient(buildWindowAdjust(7, 2_000))
    expect(typed().join('')).toBe('iiiiid')
  })

  test('types nothing while so much waits that its target is not read, however young it is', async () => {
    await blind()
    channel.fromClient(buildWindowAdjust(7, 10))
    for (let left = HELD_OUTPUT; left > 0; left -= 16_384) {
      channel.fromTarget(buildData(7, Buffer.alloc(16_384, 'x')))
    }
    channel.fromClient(buildData(7, 'id\r'))
    expect(typed()).toEqual([])
    channel.fromClient(buildData(7, '\x03'))
    expect(typed()).toEqual(['\x03'])
  })

  test.each(['\x03', '\x1a', '\x1c'])('passes an interrupt: %j', async (key) => {
    await blind()
    channel.fromClient(buildData(7, 'rm'))
    channel.fromClient(buildData(7, ` x\r${key}id`))
    expect(typed()).toEqual([key])
    channel.fromClient(buildWindowAdjust(7, 10))
    expect(typed()).toEqual([key, 'id'])
  })

  test.each(['signal', 'break'])('passes a %s', async (type) => {
    await blind()
    channel.fromClient(buildData(7, 'rm'))
    channel.fromClient(buildChannelRequest(7, type, false, Buffer.from([0, 0, 0, 0])))
    expect(kinds(toTarget).at(-1)).toBe(MSG.channelRequest)
    expect(typed()).toEqual([])
  })

  test('that is closed while input waits does not send it', async () => {
    await blind()
    channel.fromClient(buildData(7, 'rm x\r'))
    channel.fromClient(Buffer.from([MSG.channelClose, 0, 0, 0, 7]))
    vi.advanceTimersByTime(DRAIN_MS)
    expect(typed()).toEqual([])
    expect(kinds(toTarget).at(-1)).toBe(MSG.channelClose)
  })

  test('of many keys that wait keeps little', async () => {
    await blind()
    expect(() => {
      for (let n = 0; n < TYPED_WINDOW; n++) channel.fromClient(buildData(7, 'x'))
    }).not.toThrow()
    expect(() => channel.fromClient(buildData(7, 'x'))).toThrow('more data than the window allows')
    channel.fromClient(buildWindowAdjust(7, 10))
    expect(typed().join('')).toBe('x'.repeat(TYPED_WINDOW))
  })

  test('has its last words heard, as long as they come and no longer than its time', async () => {
    await blind()
    channel.fromClient(buildWindowAdjust(7, 10))
    channel.fromClient(buildData(7, 'id\r'))
    channel.fromClient(Buffer.from([MSG.channelClose, 0, 0, 0, 7]))
    for (let waited = 0; waited + 400 < DRAIN_MS; waited += 400) {
      vi.advanceTimersByTime(400)
      channel.fromTarget(buildData(7, 'word '))
      expect(kinds(toTarget)).not.toContain(MSG.channelClose)
    }
    vi.advanceTimersByTime(400)
    expect(kinds(toTarget)).toContain(MSG.channelClose)
  })
})
