/** The RDP relay between a test client and a test target. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FIRST_UPDATE_MS, STALL_LOOK_MS } from '../../../../proxies/desktop/limits.ts'
import { FLOOD_MARK } from '../../../../proxies/net/limits.ts'
import { RedirectionRefusedError } from '../../../../proxies/rdp/back/destination.ts'
import { LogonWatch } from '../../../../proxies/rdp/back/logon-watch.ts'
import { buildDemandActive } from '../../../../proxies/rdp/codec/active.ts'
import { CAPABILITY } from '../../../../proxies/rdp/codec/capabilities.ts'
import { buildFastPathUpdate } from '../../../../proxies/rdp/codec/fast-path-output.ts'
import { buildFastPathInput, FAST_PATH_EVENTS, POINTER_FLAG } from '../../../../proxies/rdp/codec/input.ts'
import {
  buildErrorInfo,
  buildRefreshRectangle,
  ERROR_INFO,
} from '../../../../proxies/rdp/codec/session-pdus.ts'
import {
  buildDeactivateAll,
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
} from '../../../../proxies/rdp/codec/share.ts'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { CONFIRM_MS } from '../../../../proxies/rdp/relay/desktop-watch.ts'
import { CATCH_UP_MS, SETTLE_MS } from '../../../../proxies/rdp/relay/picture-gate.ts'
import { AWAY_MS, READING_MS } from '../../../../proxies/rdp/relay/reading-watch.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { parseDesktopSize, parseKey, parsePointer } from '../../../../recordings/decode/graphics/events.ts'
import { message } from '../../../recordings/decode/graphics/rdp/updates.ts'
import { hex } from '../../stream-events.ts'
import { clientCapabilities } from '../connection/target.ts'
import {
  DESKTOP,
  newWorld,
  newWorldWithDesktop,
  redirection,
  SHARE,
  type World,
  wholeOf,
} from '../relay-world.ts'

const A = { kind: 'key', code: 30, extended: 0, isDown: true } as const
/** The same on the slow path. */
const SLOW_A = '0100000000000000040000001e000000'
const bitmap = (length = 20) => {
  const data = Buffer.alloc(length, 7)
  data.writeUInt16LE(UPDATE.bitmap)
  // With no bitmaps, the bytes after the count are ignored.
  data.writeUInt16LE(0, 2)
  return { code: UPDATE.bitmap, data }
}
const recorded = ({ code, data }: { code: number; data: Uint8Array }) => hex(message(code, data))
const frames = (world: World, type: number) =>
  world.frames.filter(([one]) => one === type).map(([, payload]) => payload)
const json = (world: World, type: number) =>
  frames(world, type).map((payload) => JSON.parse(payload.toString()))
/** The end of the session as shown to the client. */
const lastWords = async (world: World) => {
  await vi.waitFor(() => expect(world.lastWords).toHaveLength(1))
  return world.lastWords[0]!
}
const parseShareDataType = (bytes: Buffer) => {
  const [pdu] = parseShare(bytes)
  return pdu?.type === CONTROL_PDU.data ? parseShareData(pdu).type : undefined
}
const types = (pdus: readonly Buffer[]) => pdus.flatMap((pdu) => parseShare(pdu).map(({ type }) => type))

describe('a desktop', () => {
  test('is offered to the client, confirmed to the target, and begins the recording', async () => {
    const world = await newWorld()
    const { client, target } = world
    target.offer()
    expect(types(client.heard().io)).toEqual([CONTROL_PDU.demandActive])
    client.confirm()
    expect(types(target.heard().io)).toEqual([CONTROL_PDU.confirmActive])
    expect(json(world, FRAME.channelOpen)).toEqual([
      { kind: 'rdp', subprotocol: 'RDP', desktop: { width: 800, height: 600 } },
    ])
  })

  test('that changes its size is news for the recording', async () => {
    const world = await newWorldWithDesktop()
    const { client, target } = world
    target.io(buildDeactivateAll(SHARE))
    client.input(A)
    expect(target.heard().fastPath).toEqual([])
    const larger = { ...DESKTOP, width: 1024, height: 768 }
    target.offer(larger)
    client.confirm()
    target.draw(wholeOf(larger))
    client.input(A)
    expect(target.heard().fastPath).toHaveLength(1)
    expect(frames(world, FRAME.desktopSize).map((payload) => parseDesktopSize(payload))).toEqual([
      { width: 1024, height: 768 },
    ])
    expect(frames(world, FRAME.channelOpen)).toHaveLength(1)
  })
})

describe('pictures', () => {
  test('of either path pass as they are and are recorded alike', async () => {
    const world = await newWorldWithDesktop()
    const { client, target } = world
    target.draw(bitmap())
    target.data({ type: DATA_PDU.update, body: bitmap().data })
    const heard = client.heard()
    expect(heard.fastPath).toHaveLength(1)
    expect(parseShareData(parseShare(heard.io[0]!)[0]!).type).toBe(DATA_PDU.update)
    expect(hex(world.graphics())).toBe(recorded(bitmap()).repeat(2))
    expect(world.session.bytesOut).toBeGreaterThan(40)
  })

  test('in many fragments are one update of the recording, whatever their size', async () => {
    const world = await newWorldWithDesktop()
    for (const length of [60_000, 65_531, 65_532, 200_000]) world.target.draw(bitmap(length))
    const all = [60_000, 65_531, 65_532, 200_000].map((length) => recorded(bitmap(length)))
    expect(hex(world.graphics())).toBe(all.join(''))
  })

  test('wait for their recording where it is strict', async () => {
    const world = await newWorldWithDesktop({ opened: { isStrict: true }, isBlank: true })
    let flushed = () => {}
    world.session.recording.flush = () => new Promise((resolve) => (flushed = resolve))
    world.target.draw(bitmap())
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(world.client.heard().fastPath).toEqual([])
    flushed()
    await vi.waitFor(() => expect(world.client.heard().fastPath).toHaveLength(1))
  })

  test('are never shown when their recording has failed', async () => {
    const world = await newWorldWithDesktop({ opened: { isStrict: true }, isBlank: true })
    world.session.recording.flush = () => Promise.reject(new Error('no'))
    world.target.draw(bitmap())
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(world.client.heard().fastPath).toEqual([])
  })

  test('past the quota end the session', async () => {
    const world = await newWorldWithDesktop({ options: { desktopQuota: 100 } })
    world.target.draw(bitmap(200))
    await vi.waitFor(() => expect(world.closed).toHaveLength(1))
    expect(world.closed[0]).toEqual({
      result: 'failure',
      reason: 'the recording quota of the session is used up',
    })
  })
})

describe('input', () => {
  test('reaches the target and is recorded, keys without which they were', async () => {
    const world = await newWorldWithDesktop()
    world.client.input(A, { kind: 'pointer', flags: POINTER_FLAG.move, x: 3, y: 4 })
    expect(world.target.heard().fastPath).toHaveLength(1)
    expect(frames(world, FRAME.key).map((payload) => parseKey(payload))).toEqual([
      { participant: 0, isDown: true },
    ])
    expect(frames(world, FRAME.pointer).map((payload) => parsePointer(payload))).toEqual([
      { participant: 0, buttons: 0, x: 3, y: 4 },
    ])
    expect(world.session.signs).toBe(1)
  })

  test('is recorded with its keys where the policy says so', async () => {
    const world = await newWorldWithDesktop({ options: { maskKeys: false } })
    world.client.input(
      A,
      { kind: 'key', code: 0x48, extended: 1, isDown: true },
      { kind: 'character', code: 0xe9, isDown: true },
      { kind: 'character', code: 0x20ac, isDown: false },
    )
    expect(frames(world, FRAME.key).map((payload) => parseKey(payload))).toEqual([
      { participant: 0, isDown: true, keysym: 0, code: 30 },
      { participant: 0, isDown: true, keysym: 0, code: 0xc8 },
      { participant: 0, isDown: true, keysym: 0xe9 },
      { participant: 0, isDown: false, keysym: 0x010020ac },
    ])
  })

  test('of the mouse is recorded with the buttons that are down', async () => {
    const world = await newWorldWithDesktop()
    const { left, right, middle, down, wheel, horizontalWheel, move } = POINTER_FLAG
    const at = (flags: number, x = 5, y = 6) => ({ kind: 'pointer', flags, x, y }) as const
    world.client.input(
      at(left | down),
      at(move, 7, 8),
      at(right | down, 7, 8),
      at(left, 7, 8),
      at(middle | right, 7, 8),
      at(wheel | 0x78),
      at(wheel | 0x188),
      at(horizontalWheel | 0x78),
      { kind: 'pointer-extended', flags: 0x8001, x: 1, y: 2 },
      { kind: 'pointer-relative', flags: move, x: 10, y: -20 },
      { kind: 'pointer-relative', flags: move, x: 32_000, y: 32_000 },
    )
    const seen = frames(world, FRAME.pointer).map((payload) => {
      const { buttons, x, y } = parsePointer(payload)!
      return [buttons, x, y]
    })
    expect(seen).toEqual([
      [1, 5, 6],
      [1, 7, 8],
      [5, 7, 8],
      [4, 7, 8],
      [0, 7, 8],
      [8, 7, 8],
      [0, 7, 8],
      [16, 7, 8],
      [0, 7, 8],
      [64, 7, 8],
      [0, 7, 8],
      [128, 1, 2],
      [128, 11, 0],
      [128, 799, 599],
    ])
  })

  test('does not pass in a session that is for viewing only', async () => {
    const world = await newWorldWithDesktop({ options: { viewOnly: true } })
    world.client.input(A)
    world.client.io(
      buildShareData({ shareId: SHARE, type: DATA_PDU.input, body: Buffer.from(SLOW_A, 'hex') }, 1010),
    )
    expect(world.target.heard()).toEqual({ io: [], fastPath: [], channels: [] })
    expect(frames(world, FRAME.key)).toEqual([])
    expect(world.session.signs).toBe(2)
  })

  test('waits until the account is known to be in', async () => {
    const watch = new LogonWatch({ name: 'desk1', seconds: 30 })
    const world = await newWorldWithDesktop({ watch })
    const locks = { kind: 'locks', flags: 2 } as const
    world.client.input(A)
    world.client.input(locks, A)
    expect(world.target.heard().fastPath).toEqual([])
    world.client.input(locks)
    expect(world.target.heard().fastPath).toEqual([buildFastPathInput([locks])])
    world.target.data({ type: DATA_PDU.saveSessionInfo, body: Buffer.alloc(580) })
    world.client.input(A)
    expect(world.target.heard().fastPath).toHaveLength(1)
    expect(frames(world, FRAME.key)).toHaveLength(1)
  })

  test('to an account that is not in ends the session', async () => {
    const watch = new LogonWatch({ name: 'desk1', seconds: 30 })
    const world = await newWorldWithDesktop({ watch })
    world.target.data(buildErrorInfo(SHARE, ERROR_INFO.insufficientPrivileges))
    await vi.waitFor(() => expect(world.closed).toHaveLength(1))
    expect(world.closed[0]!.reason).toContain('the account has no right to log in by remote desktop')
    expect(world.lastWords).toHaveLength(1)
  })

  test('that breaks the protocol ends the session', async () => {
    const world = await newWorldWithDesktop()
    world.client.stream.say(Buffer.from('0403e0', 'hex'))
    await vi.waitFor(() => expect(world.closed).toHaveLength(1))
    expect(world.closed[0]).toMatchObject({ result: 'failure' })
    expect(world.closed[0]!.reason).toContain('the client broke the RDP protocol')
  })
})

describe('back-pressure', () => {
  test('a slow target is what the client waits for', async () => {
    const { client, target } = await newWorldWithDesktop()
    expect([client.stream.paused, target.stream.paused]).toEqual([false, false])
    target.stream.congested = true
    client.input(A)
    expect([client.stream.paused, target.stream.paused]).toEqual([true, false])
    target.stream.congested = false
    target.stream.queued = FLOOD_MARK + 1
    target.stream.onDrain?.()
    expect([client.stream.paused, target.stream.paused]).toEqual([false, true])
  })

  test('a slow client does without bitmaps, which are recorded all the same', async () => {
    const world = await newWorldWithDesktop()
    const { client, target } = world
    client.stream.congested = true
    target.draw(bitmap())
    target.draw({ code: UPDATE.pointerHidden, data: Buffer.alloc(0) })
    target.data({ type: DATA_PDU.update, body: bitmap().data })
    expect([client.stream.paused, target.stream.paused]).toEqual([false, false])
    const heard = client.heard()
    expect(heard.fastPath.map((pdu) => pdu[3]! & 0xf)).toEqual([UPDATE.pointerHidden])
    expect(heard.io).toEqual([])
    expect(hex(world.graphics())).toBe(
      recorded(bitmap()) +
        recorded({ code: UPDATE.pointerHidden, data: Buffer.alloc(0) }) +
        recorded(bitmap()),
    )
  })

  test('what cannot be left out for a client is what the target waits for in the end', async () => {
    const { client, target } = await newWorldWithDesktop()
    client.stream.congested = true
    client.stream.queued = FLOOD_MARK + 1
    target.draw(bitmap())
    expect([client.stream.paused, target.stream.paused]).toEqual([true, true])
    client.stream.congested = false
    client.stream.queued = 0
    client.stream.onDrain?.()
    expect([client.stream.paused, target.stream.paused]).toEqual([false, false])
  })

  test('a target that draws nothing again waits for its client', async () => {
    const { client, target } = await newWorld()
    const capabilities = clientCapabilities(DESKTOP).map(({ type, body }) => {
      const copy = Buffer.from(body)
      if (type === CAPABILITY.general) copy[18] = 0
      return { type, body: copy }
    })
    target.io(buildDemandActive({ shareId: SHARE, capabilities }))
    client.confirm()
    target.draw(wholeOf(DESKTOP))
    client.stream.congested = true
    target.draw(bitmap())
    target.heard()
    client.input(A)
    expect(target.stream.paused).toBe(true)
    expect(target.heard().fastPath).toEqual([])
    client.stream.congested = false
    client.stream.onDrain?.()
    expect(target.stream.paused).toBe(false)
    expect(target.heard().fastPath).toHaveLength(1)
  })

  test('a recording that takes no more is what both sides wait for', async () => {
    const world = await newWorldWithDesktop()
    const { client, target, session } = world
    let isFull = true
    Object.defineProperty(session, 'isFull', { get: () => isFull })
    target.draw(bitmap())
    expect([client.stream.paused, target.stream.paused]).toEqual([true, true])
    isFull = false
    session.onDrain?.()
    expect([client.stream.paused, target.stream.paused]).toEqual([false, false])
  })
})

describe('the end', () => {
  test('by somebody else takes the desktop away and tells the client why', async () => {
    const world = await newWorldWithDesktop()
    world.session.stop('killed', 'because')
    expect(await lastWords(world)).toEqual({
      desktop: DESKTOP,
      reason: 'because',
      code: ERROR_INFO.administratorDisconnect,
    })
    expect(types(world.client.heard().io).at(-1)).toBe(CONTROL_PDU.deactivateAll)
    expect(world.target.stream.closed).toBe(true)
    await vi.waitFor(() => expect(world.closed).toEqual([{ result: 'killed', reason: 'because' }]))
    expect(world.ended).toBe(0)
    world.client.stream.onClosed?.()
    await vi.waitFor(() => expect(world.ended).toBe(1))
    expect(world.frames.at(-1)?.[0]).toBe(FRAME.channelClose)
  })

  test('in the begin of a desktop waits until the client can be shown something', async () => {
    const world = await newWorld()
    world.target.offer()
    world.session.stop('killed', 'because')
    await vi.waitFor(() => expect(world.closed).toHaveLength(1))
    expect(world.lastWords).toEqual([])
    world.client.confirm()
    await lastWords(world)
    const heard = types(world.client.heard().io)
    expect(heard).toEqual([
      CONTROL_PDU.demandActive,
      ...Array(4).fill(CONTROL_PDU.data),
      CONTROL_PDU.deactivateAll,
    ])
    expect(world.target.heard().io).toEqual([])
  })

  test('by what a target says passes nothing of that behind it', async () => {
    const world = await newWorldWithDesktop({ watch: new LogonWatch({ name: 'desk1', seconds: 30 }) })
    const code = buildErrorInfo(SHARE, ERROR_INFO.insufficientPrivileges)
    world.target.io(
      Buffer.concat([
        buildShareData(code),
        buildShareData({ shareId: SHARE, type: DATA_PDU.update, body: bitmap().data }),
      ]),
    )
    world.target.draw(bitmap())
    await lastWords(world)
    const heard = world.client.heard()
    expect(types(heard.io).at(-1)).toBe(CONTROL_PDU.deactivateAll)
    expect(heard.io.some((pdu) => parseShareDataType(pdu) === DATA_PDU.update)).toBe(false)
    expect(heard.fastPath).toEqual([])
    expect(world.frames.at(-1)?.[0]).toBe(FRAME.channelClose)
  })

  test('of a strict session whose recording has failed shows nothing in the middle of an update', async () => {
    const world = await newWorldWithDesktop({ opened: { isStrict: true }, isBlank: true })
    let fails = false
    Object.defineProperty(world.session.recording, 'hasFailed', { get: () => fails })
    world.target.fastPath(Buffer.from('0008210300aabbcc', 'hex'))
    await vi.waitFor(() => expect(world.client.heard().fastPath).toHaveLength(1))
    world.session.recording.flush = () => new Promise(() => undefined)
    world.target.fastPath(Buffer.from('0008110300ddeeff', 'hex'))
    fails = true
    world.session.stop('failure', 'no')
    await vi.waitFor(() => expect(world.client.stream.closed).toBe(true))
    expect(world.lastWords).toEqual([])
  })

  test('waits for the rest of an update that has begun to come', async () => {
    const world = await newWorldWithDesktop()
    const { client, target } = world
    target.fastPath(Buffer.from('0008210300010000', 'hex'))
    world.session.stop('killed', 'because')
    expect(world.lastWords).toEqual([])
    client.input(A)
    expect(target.heard().fastPath).toEqual([])
    target.fastPath(Buffer.from('000811030000eeff', 'hex'))
    await lastWords(world)
    expect(client.heard().fastPath).toHaveLength(2)
  })

  test('by the client is no failure', async () => {
    const world = await newWorldWithDesktop()
    world.client.stream.closed = true
    world.client.stream.onClosed?.()
    await vi.waitFor(() => expect(world.closed).toEqual([{ result: 'success' }]))
    expect(world.target.heard()).toBeDefined()
    expect(world.target.disconnects).toEqual([3])
  })

  test('by the target, as its user wanted it', async () => {
    const world = await newWorldWithDesktop()
    world.target.data(buildErrorInfo(SHARE, ERROR_INFO.loggedOffByUser))
    world.target.stream.say(Buffer.from('0300000902f0802180', 'hex'))
    await vi.waitFor(() => expect(world.closed).toEqual([{ result: 'success' }]))
    world.client.heard()
    expect(world.client.disconnects).toHaveLength(1)
    expect(world.lastWords).toEqual([])
  })

  test('by the target for a reason of its own', async () => {
    const world = await newWorldWithDesktop()
    world.target.data(buildErrorInfo(SHARE, ERROR_INFO.serverReboot))
    world.target.stream.say(Buffer.from('0300000902f0802180', 'hex'))
    expect(await lastWords(world)).toEqual({
      desktop: DESKTOP,
      reason: 'the target has ended the session: it is restarting',
      code: ERROR_INFO.serverReboot,
    })
  })

  test('by a target that says nothing', async () => {
    const world = await newWorldWithDesktop()
    world.target.draw(bitmap())
    world.target.stream.onClosed?.()
    expect((await lastWords(world)).reason).toBe('the target closed the connection')
    const other = await newWorldWithDesktop({ isBlank: true })
    other.target.stream.onClosed?.()
    expect((await lastWords(other)).reason).toContain('as soon as the desktop was agreed on')
  })

  test('by a target that breaks the protocol', async () => {
    const world = await newWorldWithDesktop()
    world.target.stream.say(Buffer.from('ff', 'hex'))
    expect((await lastWords(world)).reason).toContain('the target broke the RDP protocol')
    const tooEarly = await newWorld()
    tooEarly.target.draw(bitmap())
    expect((await lastWords(tooEarly)).reason).toContain('a desktop was expected before the first picture')
  })
})

describe('a target that sends the session on', () => {
  test('is left, and the client gets the desktop of the other one', async () => {
    let second: ReturnType<World['another']> | undefined
    const asked: unknown[] = []
    const world = await newWorldWithDesktop({
      redirect: async (one, wanted) => {
        asked.push(wanted)
        second = one.another()
        return second.target
      },
    })
    world.target.io(redirection())
    await vi.waitFor(() => expect(second?.target.visitor).toBeDefined())
    expect(asked).toEqual([{ session: 5, address: '192.0.2.7' }])
    expect(world.events).toContainEqual(['session.redirect', { destination: '192.0.2.7', result: 'success' }])
    expect(types(world.client.heard().io).at(-1)).toBe(CONTROL_PDU.deactivateAll)
    expect(world.target.stream.closed).toBe(true)
    world.client.input(A)
    second!.end.offer()
    expect(types(world.client.heard().io)).toEqual([CONTROL_PDU.demandActive])
    world.client.confirm()
    second!.end.draw(wholeOf(DESKTOP))
    world.client.input(A)
    const heard = second!.end.heard()
    expect(types(heard.io)).toEqual([CONTROL_PDU.confirmActive])
    expect(heard.fastPath).toHaveLength(1)
    expect(world.client.heard().fastPath).toHaveLength(1)
    expect(hex(world.graphics())).toBe(recorded(wholeOf(DESKTOP)))
    world.target.stream.onData?.(Buffer.from('ff', 'hex'))
    expect(world.lastWords).toEqual([])
  })

  test('to where it may not go ends the session in words', async () => {
    const world = await newWorldWithDesktop({
      redirect: () => Promise.reject(new RedirectionRefusedError('192.0.2.7 is not allowed')),
    })
    world.target.io(redirection())
    await vi.waitFor(() => expect(world.lastWords).toHaveLength(1))
    expect((await lastWords(world)).reason).toBe('192.0.2.7 is not allowed')
    expect(world.events).toContainEqual([
      'session.redirect',
      { destination: '192.0.2.7', result: 'refused', reason: '192.0.2.7 is not allowed' },
    ])
  })

  test('has nobody left there where the audit log cannot have it', async () => {
    let second: ReturnType<World['another']> | undefined
    const world = await newWorldWithDesktop({
      redirect: async (one) => {
        second = one.another()
        return second.target
      },
    })
    world.session.audit = () => Promise.reject(new Error('no'))
    world.target.io(redirection())
    await vi.waitFor(() => expect(second?.target.stream.closed).toBe(true))
    expect(world.target.stream.closed).toBe(true)
    await lastWords(world)
  })

  test('is not reached any more once the session has ended', async () => {
    let second: ReturnType<World['another']> | undefined
    let arrive = () => {}
    const world = await newWorldWithDesktop({
      redirect: (one) =>
        new Promise((resolve) => {
          second = one.another()
          arrive = () => resolve(second!.target)
        }),
    })
    world.target.io(redirection())
    await vi.waitFor(() => expect(second).toBeDefined())
    world.session.stop('killed', 'because')
    arrive()
    await vi.waitFor(() => expect(second?.target.stream.closed).toBe(true))
    expect(world.lastWords).toHaveLength(1)
  })
})

describe('time', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('a target that never offers a desktop is given up', async () => {
    const world = await newWorld()
    await vi.advanceTimersByTimeAsync(FIRST_UPDATE_MS + 2 * STALL_LOOK_MS)
    expect((await lastWords(world)).reason).toContain('the target has sent no picture')
  })

  test('a client that never takes a desktop is given up, and not the target', async () => {
    const world = await newWorld()
    world.target.offer()
    await vi.advanceTimersByTimeAsync(CONFIRM_MS)
    expect(world.closed[0]?.reason).toContain('the client did not confirm the desktop')
    await vi.advanceTimersByTimeAsync(1_000)
    world.client.heard()
    expect(world.client.disconnects).toHaveLength(1)
    expect(world.lastWords).toEqual([])
  })

  test('nobody acts before all of the desktop is drawn, and nothing is lost', async () => {
    const world = await newWorldWithDesktop({ isBlank: true })
    const { client, target } = world
    const upper = { ...DESKTOP, height: 300 }
    client.input(A)
    client.io(
      buildShareData({ shareId: SHARE, type: DATA_PDU.input, body: Buffer.from(SLOW_A, 'hex') }, 1010),
    )
    vi.advanceTimersByTime(20_000)
    target.draw({ code: UPDATE.pointerHidden, data: Buffer.alloc(0) })
    target.draw(wholeOf(upper))
    expect([target.heard().fastPath, frames(world, FRAME.key)]).toEqual([[], []])
    target.draw(wholeOf(DESKTOP))
    const heard = target.heard()
    expect([heard.fastPath.length, heard.io.length, frames(world, FRAME.key).length]).toEqual([1, 1, 2])
    expect(world.lastWords).toEqual([])
  })

  test('the rest of a desktop that is not drawn is not waited for', async () => {
    const { client, target } = await newWorldWithDesktop({ isBlank: true })
    target.draw(wholeOf({ width: 700, height: 600 }))
    client.input(A)
    vi.advanceTimersByTime(SETTLE_MS - 1)
    expect(target.heard().fastPath).toEqual([])
    vi.advanceTimersByTime(1)
    expect(target.heard().fastPath).toHaveLength(1)
  })

  test('input that waits is bounded', async () => {
    const { client, target } = await newWorldWithDesktop({ isBlank: true })
    const keys = buildFastPathInput(Array(FAST_PATH_EVENTS).fill(A))
    client.fastPath(keys)
    expect(client.stream.paused).toBe(false)
    for (let n = 0; n < 200; n++) client.fastPath(keys)
    expect(client.stream.paused).toBe(true)
    target.draw(wholeOf(DESKTOP))
    expect(client.stream.paused).toBe(false)
    expect(target.heard().fastPath).toHaveLength(201)
  })

  test('a client that does not read does nothing that nobody sees, however little it takes', async () => {
    const { client, target } = await newWorldWithDesktop()
    client.stream.queued = 100_000
    target.draw(bitmap())
    for (let passed = 0; passed < READING_MS; passed += 250) vi.advanceTimersByTime(250)
    for (let tries = 0; tries < 20; tries++) {
      client.input(A)
      client.stream.queued -= 100
      vi.advanceTimersByTime(500)
    }
    expect(target.heard().fastPath).toEqual([])
    // The target is still read: the client is not the cause of the wait.
    expect(target.stream.paused).toBe(false)
    client.stream.queued = 0
    client.stream.onDrain?.()
    expect(target.heard().fastPath).toHaveLength(20)
    expect(client.stream.paused).toBe(false)
  })

  test('of a client that takes nothing at all the target is not read, and draws all anew afterwards', async () => {
    const { client, target } = await newWorldWithDesktop()
    client.stream.queued = 100_000
    target.draw(bitmap())
    vi.advanceTimersByTime(AWAY_MS + 1_000)
    expect(target.stream.paused).toBe(true)
    client.input(A)
    client.stream.queued = 0
    client.stream.onDrain?.()
    expect(target.stream.paused).toBe(false)
    await vi.advanceTimersByTimeAsync(0)
    const heard = target.heard()
    expect([heard.io.map(parseShareDataType), heard.fastPath]).toEqual([[DATA_PDU.refreshRectangle], []])
    target.draw(wholeOf(DESKTOP))
    expect(target.heard().fastPath).toHaveLength(1)
  })

  test('a client that waits itself, for a target that takes nothing, is not taken to be away', async () => {
    const { client, target } = await newWorldWithDesktop()
    client.stream.queued = 100_000
    target.stream.congested = true
    target.draw(bitmap())
    for (let passed = 0; passed < 2 * AWAY_MS; passed += 500) {
      vi.advanceTimersByTime(500)
      target.draw(bitmap())
    }
    expect([client.stream.paused, target.stream.paused]).toEqual([true, false])
  })

  test('what a slow client did not get is drawn again once it takes more, and no more often', async () => {
    const { client, target } = await newWorldWithDesktop()
    client.stream.congested = true
    target.draw(wholeOf({ width: 100, height: 50 }))
    target.draw(wholeOf({ width: 30, height: 200 }))
    vi.advanceTimersByTime(10 * CATCH_UP_MS)
    expect(target.heard().io).toEqual([])
    client.stream.congested = false
    vi.advanceTimersByTime(10 * CATCH_UP_MS)
    const area = { left: 0, top: 0, width: 100, height: 200 }
    await vi.advanceTimersByTimeAsync(0)
    const [refresh, ...more] = target.heard().io
    expect(more).toEqual([])
    expect(parseShareData(parseShare(refresh!)[0]!)).toEqual(buildRefreshRectangle(SHARE, area))
    client.heard()
    target.draw(wholeOf(area))
    expect(client.heard().fastPath).toHaveLength(1)
  })

  test('what is done last is recorded before the session ends, whoever ends it', async () => {
    for (const end of ['client', 'bastion', 'protocol']) {
      const world = await newWorldWithDesktop()
      const { client, target, session } = world
      client.input(A)
      vi.advanceTimersByTime(400)
      if (end === 'bastion') session.stop('killed', 'because')
      else if (end === 'protocol') client.stream.say(Buffer.from('0403e0', 'hex'))
      else {
        client.stream.closed = true
        client.stream.onClosed?.()
      }
      vi.advanceTimersByTime(500)
      client.input(A)
      target.draw(bitmap())
      expect(hex(world.graphics()), end).toBe(recorded(bitmap()))
      expect([world.closed, frames(world, FRAME.key).length], end).toEqual([[], 1])
      await vi.advanceTimersByTimeAsync(200)
      expect(world.closed, end).toHaveLength(1)
      expect(world.closed[0]!.result).toBe({ client: 'success', bastion: 'killed', protocol: 'failure' }[end])
      expect(target.stream.closed, end).toBe(true)
    }
  })

  test('a target that has drawn may be silent', async () => {
    const world = await newWorldWithDesktop()
    world.target.draw(bitmap())
    vi.advanceTimersByTime(10 * FIRST_UPDATE_MS)
    expect(world.lastWords).toEqual([])
  })

  test('a line of the bastion is shown, is not in the recording, and is taken away again', async () => {
    const world = await newWorldWithDesktop({ isBlank: true })
    const { client, target, session } = world
    session.onTell?.('this session ends in 1 minute')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(client.heard().fastPath).toEqual([])
    target.draw(bitmap())
    const before = hex(world.graphics())
    client.heard()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(client.heard().fastPath.length).toBeGreaterThan(0)
    expect(hex(world.graphics())).toBe(before)
    target.heard()
    await vi.advanceTimersByTimeAsync(10_000)
    const [refresh] = target.heard().io
    expect(parseShareData(parseShare(refresh!)[0]!).type).toBe(DATA_PDU.refreshRectangle)
  })

  test('the limits of the policy hold', async () => {
    const { SESSION_OPTIONS } = await import('../../../../src/model/session-options.ts')
    const options = { ...SESSION_OPTIONS, idleTimeout: 60 }
    const world = await newWorldWithDesktop({ opened: { options } as never })
    world.target.draw(bitmap())
    vi.advanceTimersByTime(50_000)
    world.client.input(A)
    vi.advanceTimersByTime(50_000)
    expect(world.lastWords).toEqual([])
    await vi.advanceTimersByTimeAsync(20_000)
    expect((await lastWords(world)).reason).toBe('nothing was done for 1 minute')
  })
})

test('a flood of small messages is one write for each piece, either way, and none is lost', async () => {
  const world = await newWorldWithDesktop()
  const { client, target } = world
  const keys = buildFastPathInput(Array(FAST_PATH_EVENTS).fill(A))
  const key = buildFastPathInput([A])
  target.stream.writes = 0
  client.stream.say(...Array(5_000).fill(key), ...Array(20).fill(keys))
  expect(target.stream.writes).toBe(1)
  expect(target.heard().fastPath).toHaveLength(5_020)
  expect(frames(world, FRAME.key)).toHaveLength(5_000 + 20 * FAST_PATH_EVENTS)
  const [pointer] = buildFastPathUpdate({ code: UPDATE.pointerHidden, data: Buffer.alloc(0) })
  client.stream.writes = 0
  target.stream.say(...Array(5_000).fill(pointer))
  expect(client.stream.writes).toBe(1)
  expect(client.heard().fastPath).toHaveLength(5_000)
})
