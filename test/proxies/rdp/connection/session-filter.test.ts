/** Data between a client and a target: forwarded, changed or dropped. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  buildDemandActive,
  parseConfirmActive,
  parseDemandActive,
} from '../../../../proxies/rdp/codec/active.ts'
import { CAPABILITY, findCapability } from '../../../../proxies/rdp/codec/capabilities.ts'
import { buildFastPathUpdate } from '../../../../proxies/rdp/codec/fast-path-output.ts'
import { buildFastPathInput } from '../../../../proxies/rdp/codec/input.ts'
import { buildErrorInfo, ERROR_INFO } from '../../../../proxies/rdp/codec/session-pdus.ts'
import {
  buildDeactivateAll,
  buildShare,
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
} from '../../../../proxies/rdp/codec/share.ts'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { ByteWriter } from '../../../../proxies/rdp/codec/writer.ts'
import { SessionFilter } from '../../../../proxies/rdp/connection/session-filter.ts'
import { type Event, hex, keep } from '../../stream-events.ts'
import { CONFIRM_ACTIVE, FINALIZATION } from '../codec/examples.ts'
import { clientCapabilities } from './target.ts'

const SHARE = 0x000103ea
const USER = 1010

function open(passes = true, skips = () => false): { filter: SessionFilter; heard: Event[] } {
  const heard: Event[] = []
  const note =
    (kind: string) =>
    (...values: unknown[]): void =>
      keep(heard, kind, ...values)
  const filter = new SessionFilter(
    {
      desktop: note('desktop'),
      deactivated: note('deactivated'),
      confirmed: note('confirmed'),
      update: ({ code, data }) => note('update')(code, hex(data)),
      skips,
      input: (events) => {
        note('input')(events)
        return passes
      },
      sessionInfo: note('sessionInfo'),
      errorInfo: note('errorInfo'),
      redirected: note('redirected'),
    },
    USER,
  )
  return { filter, heard }
}
test('of two sets of one type nobody takes the first and nobody the last', () => {
  const bitmap = (width: number) => ({
    type: CAPABILITY.bitmap,
    body: new ByteWriter().uint16(32).zeros(6).uint16(width).uint16(480).zeros(12).finish(),
  })
  const offer = buildDemandActive({ shareId: SHARE, capabilities: [bitmap(640), bitmap(1920)] })
  const { filter, heard } = open()
  expect(() => filter.fromTarget(offer)).toThrow(
    'capability sets of different types were expected, found type 2 twice',
  )
  expect(heard).toEqual([])
})

/** A filter with a confirmed desktop, and nothing heard yet. */
function openInSession(passes = true): ReturnType<typeof open> {
  const { filter, heard } = open(passes)
  filter.fromTarget(offer)
  filter.fromClient(CONFIRM_ACTIVE)
  heard.length = 0
  return { filter, heard }
}
const offer = buildDemandActive({
  shareId: SHARE,
  capabilities: clientCapabilities({ width: 800, height: 600, depth: 32 }),
})
const data = (type: number, body: Uint8Array) => buildShareData({ shareId: SHARE, type, body })

test('a desktop is offered without what could not be recorded', () => {
  const { filter, heard } = open()
  const capabilities = clientCapabilities({ width: 800, height: 600, depth: 32 })
  const [offered, ...more] = filter.fromTarget(buildDemandActive({ shareId: 7, capabilities }))
  expect(more).toEqual([])
  const { shareId, capabilities: left } = parseDemandActive(parseShare(offered!)[0]!.body)
  expect(shareId).toBe(7)
  expect(left.map(({ type }) => type)).not.toContain(CAPABILITY.surfaceCommands)
  expect(left).toHaveLength(capabilities.length - 1)
  expect(hex(findCapability(left, CAPABILITY.virtualChannel))).toBe('0000000040060000')
  expect(heard).toEqual([['desktop', { width: 800, height: 600, depth: 32 }]])
})

test('agreement to another desktop than the one that was offered is none', () => {
  const { filter, heard } = open()
  const capabilities = clientCapabilities({ width: 800, height: 600, depth: 32 })
  filter.fromTarget(buildDemandActive({ shareId: 7, capabilities }))
  heard.length = 0
  expect(filter.fromClient(CONFIRM_ACTIVE)).toEqual([])
  expect([filter.isConfirmed, heard]).toEqual([false, []])
})

test('a client agrees without orders, by the name that the target knows it by', () => {
  const { filter, heard } = open()
  expect(filter.fromClient(CONFIRM_ACTIVE)).toEqual([])
  filter.fromTarget(offer)
  const [agreed] = filter.fromClient(CONFIRM_ACTIVE)
  const [pdu] = parseShare(agreed!)
  expect(pdu).toMatchObject({ type: CONTROL_PDU.confirmActive, source: USER })
  const { capabilities } = parseConfirmActive(pdu!.body)
  expect(hex(findCapability(capabilities, CAPABILITY.order).subarray(32, 64))).toBe('00'.repeat(32))
  expect(heard.slice(1)).toEqual([['confirmed']])
  expect(filter.fromClient(CONFIRM_ACTIVE)).toEqual([])
})

test('the begin of a session passes as it is, and so does its end', () => {
  const { filter, heard } = openInSession()
  const { synchronize, cooperate, requestControl, fontList, grantedControl, fontMap } = FINALIZATION
  for (const pdu of [synchronize, cooperate, requestControl, fontList]) {
    expect(filter.fromClient(pdu).map(hex)).toEqual([hex(pdu)])
  }
  const error = buildShareData(buildErrorInfo(SHARE, ERROR_INFO.loggedOffByUser))
  for (const pdu of [grantedControl, fontMap, error, buildDeactivateAll(SHARE)]) {
    expect(filter.fromTarget(pdu).map(hex)).toEqual([hex(pdu)])
  }
  expect(heard).toEqual([['errorInfo', ERROR_INFO.loggedOffByUser], ['deactivated']])
})

test('pictures of either path are recorded alike', () => {
  const { filter, heard } = openInSession()
  const bitmap = Buffer.from('0100000000000000', 'hex')
  const slow = data(DATA_PDU.update, bitmap)
  expect(filter.fromTarget(slow).map(hex)).toEqual([hex(slow)])
  const [fast] = buildFastPathUpdate({ code: UPDATE.bitmap, data: bitmap })
  expect(hex(filter.fastPathFromTarget(fast!)!)).toBe(hex(fast!))
  const pointer = data(DATA_PDU.pointer, Buffer.from('0100000000000000', 'hex'))
  expect(filter.fromTarget(pointer)).toHaveLength(1)
  expect(heard).toEqual([
    ['update', UPDATE.bitmap, hex(bitmap)],
    ['update', UPDATE.bitmap, hex(bitmap)],
    ['update', UPDATE.pointerHidden, ''],
  ])
})

test('nothing is shown that could not be recorded', () => {
  const { filter, heard } = openInSession()
  expect(filter.fromTarget(data(DATA_PDU.update, Buffer.alloc(12)))).toEqual([])
  const update = (code: number) => buildFastPathUpdate({ code, data: Buffer.from('abcd') })[0]!
  expect(filter.fastPathFromTarget(update(UPDATE.surfaceCommands))).toBeUndefined()
  const position = update(UPDATE.pointerPosition)
  const both = Buffer.concat([position, update(UPDATE.orders).subarray(3)])
  both[2] = both.length
  expect(hex(filter.fastPathFromTarget(both)!)).toBe(hex(position))
  expect(heard).toEqual([['update', UPDATE.pointerPosition, hex(Buffer.from('abcd'))]])
})

test.each([
  // 4096 × 1100 pixels, in orders of a few bytes.
  [
    'a bitmap too large to be recorded',
    UPDATE.bitmap,
    '01000100 00000000ff0f4b04 00104c04 1000 0104 0400 f3ffff07',
  ],
  [
    'a bitmap of a depth without decoder',
    UPDATE.bitmap,
    '01000100 0000000000000000 01000100 0400 0000 0400 00000000',
  ],
  [
    'a bitmap without all of its pixels',
    UPDATE.bitmap,
    '01000100 0000000000000000 01000200 1000 0000 0400 00000000',
  ],
  ['a bitmap that is not there', UPDATE.bitmap, '01000200'],
  ['a palette of 16 colours', UPDATE.palette, '02000000 10000000'],
  ['a pointer of 385 pixels', UPDATE.pointerLarge, '2000 0000 00000000 8101 0100 00000000 04060000'],
  ['a pointer without its mask', UPDATE.pointerColour, '0000 00000000 0100 0100 0000 0300 ffffff'],
  ['a pointer beyond the cache', UPDATE.pointerCached, '8000'],
])('%s ends the session before the client has it', (_title, code, bytes) => {
  const { filter, heard } = openInSession()
  const [pdu] = buildFastPathUpdate({ code, data: Buffer.from(bytes.replaceAll(' ', ''), 'hex') })
  expect(() => filter.fastPathFromTarget(pdu!)).toThrow(MalformedError)
  expect(heard).toEqual([])
})

test('input of either path is told before it passes', () => {
  const { filter, heard } = openInSession()
  const event = { kind: 'key', code: 30, extended: 0, isDown: true } as const
  const fast = buildFastPathInput([event])
  expect(filter.fastPathFromClient(fast)).toBe(fast)
  const slow = data(DATA_PDU.input, Buffer.from('0100000000000000040000001e000000', 'hex'))
  expect(filter.fromClient(slow).map(hex)).toEqual([hex(slow)])
  expect(heard).toEqual([
    ['input', [event]],
    ['input', [event]],
  ])
})

test('a picture without a desktop is none', () => {
  const { filter } = open()
  const [fast] = buildFastPathUpdate({ code: UPDATE.pointerHidden, data: Buffer.alloc(0) })
  expect(() => filter.fastPathFromTarget(fast!)).toThrow(MalformedError)
  expect(() => filter.fromTarget(data(DATA_PDU.update, Buffer.from('0100000000000000', 'hex')))).toThrow(
    MalformedError,
  )
})

test('a client cannot have the target stop drawing while it works on', () => {
  const { filter } = openInSession()
  const suppress = (body: string) => data(DATA_PDU.suppressOutput, Buffer.from(body, 'hex'))
  for (const never of ['00000000', '02000000']) expect(filter.fromClient(suppress(never))).toEqual([])
  const ofUser = (type: number, body: string) =>
    hex(buildShareData({ shareId: SHARE, type, body: Buffer.from(body, 'hex') }, USER))
  const whole = ofUser(DATA_PDU.suppressOutput, '01000000000000001f035702')
  for (const part of ['010000000000000020035802', '010000000000000000000000', '01']) {
    expect(filter.fromClient(suppress(part)).map(hex)).toEqual([whole])
  }
  const refresh = (body: string) => data(DATA_PDU.refreshRectangle, Buffer.from(body, 'hex'))
  const all = ofUser(DATA_PDU.refreshRectangle, '01000000000000001f035702')
  for (const part of ['01000000050005000500ffff', '00', '']) {
    expect(filter.fromClient(refresh(part)).map(hex)).toEqual([all])
  }
})

test('input stays here where it may not pass', () => {
  const { filter, heard } = openInSession(false)
  const fast = buildFastPathInput([{ kind: 'key', code: 30, extended: 0, isDown: true }])
  expect(filter.fastPathFromClient(fast)).toBeUndefined()
  const slow = data(DATA_PDU.input, Buffer.from('0100000000000000040000001e000000', 'hex'))
  expect(filter.fromClient(slow)).toEqual([])
  expect(heard).toHaveLength(2)
})

test('a desktop can be taken away while an update is under way, or when it is whole', () => {
  const { filter } = openInSession()
  expect(filter.isWithinUpdate).toBe(false)
  const [first] = buildFastPathUpdate({ code: UPDATE.bitmap, data: Buffer.alloc(20_000) })
  filter.fastPathFromTarget(first!)
  expect(filter.isWithinUpdate).toBe(true)
  expect(hex(filter.takeAway().at(-1)!)).toBe(hex(buildDeactivateAll(SHARE)))
  expect(filter.takeAway()).toEqual([])
  expect(filter.isConfirmed).toBe(false)
})

test('a client has all of the begin of a desktop before it is taken away', () => {
  const { filter } = openInSession()
  const { synchronize, cooperate, grantedControl, fontMap } = FINALIZATION
  const kinds = (pdus: readonly Uint8Array[]) =>
    pdus.slice(0, -1).map((pdu) => parseShareData(parseShare(pdu)[0]!).type)
  filter.fromTarget(synchronize)
  filter.fromTarget(cooperate)
  expect(kinds(filter.takeAway())).toEqual([DATA_PDU.control, DATA_PDU.fontMap])
  filter.fromTarget(offer)
  filter.fromClient(CONFIRM_ACTIVE)
  for (const pdu of [synchronize, cooperate, grantedControl, fontMap]) filter.fromTarget(pdu)
  expect(kinds(filter.takeAway())).toEqual([])
})

test('what was meant for another desktop does not reach the target', () => {
  const { filter, heard } = open()
  const key = buildFastPathInput([{ kind: 'key', code: 30, extended: 0, isDown: true }])
  const slow = data(DATA_PDU.input, Buffer.from('0100000000000000040000001e000000', 'hex'))
  const passes = () => [filter.fastPathFromClient(key) !== undefined, filter.fromClient(slow).length > 0]
  expect(passes()).toEqual([false, false])
  filter.fromTarget(offer)
  expect(passes()).toEqual([false, false])
  filter.fromClient(CONFIRM_ACTIVE)
  expect(passes()).toEqual([true, true])
  filter.fromTarget(buildDeactivateAll(SHARE))
  expect(passes()).toEqual([false, false])
  expect(heard.filter(([kind]) => kind === 'input')).toHaveLength(2)
})

test('a cookie to log in with again does not reach the client, what is said of the logon does', () => {
  const { filter, heard } = open()
  const cookie = Buffer.alloc(28, 0x55)
  const info = (flags: number, ...fields: Uint8Array[]) => {
    const writer = new ByteWriter().uint32(3).uint16(0).uint32(flags)
    for (const field of fields) writer.uint32(field.length).bytes(field)
    return data(DATA_PDU.saveSessionInfo, writer.zeros(570).finish())
  }
  const error = new ByteWriter().uint32(0xfffffffe).uint32(2).finish()
  expect(filter.fromTarget(info(1, cookie))).toEqual([])
  const [told] = filter.fromTarget(info(3, cookie, error))
  expect(hex(told!)).not.toContain('55555555')
  expect(hex(parseShareData(parseShare(told!)[0]!).body)).toContain(hex(error))
  expect(filter.fromTarget(data(DATA_PDU.saveSessionInfo, Buffer.alloc(580)))).toHaveLength(1)
  expect(heard).toEqual([
    ['sessionInfo', { kind: 'other' }],
    ['sessionInfo', { kind: 'logon-error', type: 0xfffffffe, data: 2 }],
    ['sessionInfo', { kind: 'logon' }],
  ])
})

test('a client is never sent elsewhere', () => {
  const { filter, heard } = open()
  const address = Buffer.from('192.0.2.7\0', 'utf16le')
  const packet = (flags: number) => {
    const writer = new ByteWriter().zeros(2).uint16(0x400).uint16(0).uint32(5).uint32(flags)
    return writer.uint32(address.length).bytes(address).uint32(5).bytes(Buffer.from('tok\r\n')).finish()
  }
  const sends = (flags: number) =>
    filter.fromTarget(buildShare(CONTROL_PDU.serverRedirection, 1002, packet(flags)))
  expect(sends(0x3)).toEqual([])
  expect(heard).toEqual([['redirected', { session: 5, address: '192.0.2.7', routingToken: 'tok\r\n' }]])
  // An informational redirection.
  expect(sends(0x83)).toEqual([])
  expect(heard).toHaveLength(1)
})

test('what nobody knows does not pass', () => {
  const { filter } = openInSession()
  expect(filter.fromTarget(data(0x77, Buffer.alloc(4)))).toEqual([])
  expect(filter.fromTarget(data(DATA_PDU.monitorLayout, Buffer.alloc(4)))).toEqual([])
  expect(filter.fromClient(data(DATA_PDU.persistentKeyList, Buffer.alloc(24)))).toEqual([])
  expect(() => filter.fromTarget(buildShare(CONTROL_PDU.confirmActive, 1002, Buffer.alloc(8)))).toThrow(
    MalformedError,
  )
  expect(() => filter.fromClient(buildDeactivateAll(SHARE))).toThrow(MalformedError)
})

test.each([
  [8192, 4096, true],
  [8192, 4097, false],
  [8193, 1, false],
  [0, 600, false],
])(
  'a target’s desktop of %d × %d is taken where a recording of it can be drawn',
  (width, height, isTaken) => {
    const { filter } = open()
    const capabilities = clientCapabilities({ width, height, depth: 32 })
    const demand = buildDemandActive({ shareId: SHARE, capabilities })
    if (isTaken) expect(filter.fromTarget(demand)).toHaveLength(1)
    else expect(() => filter.fromTarget(demand)).toThrow(MalformedError)
  },
)
