/** RDP from a peer that sends anything, on either side: a message or the one error, the same wherever chunks end. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { XrdpLogDetector } from '../../proxies/rdp/back/xrdp-log.ts'
import { ClipboardFilter } from '../../proxies/rdp/channels/clipboard-filter.ts'
import { DeviceFilter } from '../../proxies/rdp/channels/device-filter.ts'
import type { SendChunk, Side } from '../../proxies/rdp/channels/direction.ts'
import { DynamicFilter } from '../../proxies/rdp/channels/dynamic-filter.ts'
import { MessageStream } from '../../proxies/rdp/channels/message-stream.ts'
import { parseConfirmActive, parseDemandActive } from '../../proxies/rdp/codec/active.ts'
import { readDesktop, stripConfirm, stripDemand } from '../../proxies/rdp/codec/capabilities.ts'
import { parseClientData } from '../../proxies/rdp/codec/client-data.ts'
import { parseClientInfo } from '../../proxies/rdp/codec/client-info.ts'
import {
  buildClipboardCapabilities,
  parseClipboard,
  parseClipboardCapabilities,
  parseFileContentsRequest,
  parseFileList,
  parseFormatList,
} from '../../proxies/rdp/codec/cliprdr.ts'
import { parseBlocks } from '../../proxies/rdp/codec/data-blocks.ts'
import { parseMonitorLayout } from '../../proxies/rdp/codec/display-control.ts'
import { parseDynamic } from '../../proxies/rdp/codec/drdynvc.ts'
import { buildFastPathUpdate, UpdateAssembler } from '../../proxies/rdp/codec/fast-path-output.ts'
import { FAST_PATH_LIMIT, Framer, TPKT_LIMIT } from '../../proxies/rdp/codec/framer.ts'
import {
  buildFastPathInput,
  type InputEvent,
  parseFastPathInput,
  parseSlowInput,
} from '../../proxies/rdp/codec/input.ts'
import { parseLicense } from '../../proxies/rdp/codec/licensing.ts'
import { buildDataIndication, buildDataRequest, parseMcs } from '../../proxies/rdp/codec/mcs.ts'
import { parseConnectInitial, parseConnectResponse } from '../../proxies/rdp/codec/mcs-connect.ts'
import { parsePreconnection } from '../../proxies/rdp/codec/preconnection.ts'
import {
  parseCreate,
  parseDeviceMessage,
  parseDevices,
  parseIoCompletion,
  parseIoRequest,
  parseSetInformation,
} from '../../proxies/rdp/codec/rdpdr.ts'
import { measureAnswer, measureRequest } from '../../proxies/rdp/codec/rdpdr-measure.ts'
import { parseRedirection } from '../../proxies/rdp/codec/redirection.ts'
import { parseSecured } from '../../proxies/rdp/codec/security-header.ts'
import { parseServerData } from '../../proxies/rdp/codec/server-data.ts'
import { parseSessionInfo, withoutReconnectCookie } from '../../proxies/rdp/codec/session-pdus.ts'
import { parseShare, parseShareData } from '../../proxies/rdp/codec/share.ts'
import { parseSlowPointer, parseSlowUpdate, UPDATE, type Update } from '../../proxies/rdp/codec/updates.ts'
import { buildChunks, ChannelAssembler } from '../../proxies/rdp/codec/virtual-channel.ts'
import { parseConnectionConfirm, parseConnectionRequest } from '../../proxies/rdp/codec/x224.ts'
import { TargetError } from '../../proxies/wording/errors.ts'
import * as example from '../proxies/rdp/codec/examples.ts'
import { joinEnds } from '../proxies/rdp/connection/pair.ts'
import { cut, hex } from '../proxies/stream-events.ts'
import { edited, edits } from './corpus.ts'

/** Whether the parser accepts its input; throws any error that is not MalformedError. */
function read(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error
    expect(error.message).toMatch(/expected|refuses/)
    return false
  }
}

const INTERESTING = [0, 1, 2, 3, 4, 7, 8, 0x0f, 0x10, 0x7f, 0x80, 0x81, 0x82, 0xfe, 0xff]
const byte = fc.oneof(fc.constantFrom(...INTERESTING), fc.nat(255))
const anything = fc.array(byte, { maxLength: 200 }).map((list) => Buffer.from(list))
const sets = example.CLIENT_SETS
const demand = Buffer.concat([Buffer.from([0xea, 3, 1, 0, 0, 0]), Buffer.from([sets.length & 0xff, 1]), sets])
const PARSERS: [string, (bytes: Uint8Array) => unknown, Uint8Array][] = [
  ['X.224 request', parseConnectionRequest, example.CONNECTION_REQUEST],
  ['X.224 confirm', parseConnectionConfirm, example.CONNECTION_CONFIRM],
  ['preconnection', parsePreconnection, Buffer.from('140000000000000002000000000000000100610000', 'hex')],
  [
    'client data',
    (bytes) => parseClientData(parseBlocks(parseConnectInitial(bytes))),
    example.CONNECT_INITIAL,
  ],
  ['server data', (bytes) => parseServerData(parseConnectResponse(bytes)), example.CONNECT_RESPONSE],
  ['MCS', parseMcs, buildDataRequest(1007, 1003, Buffer.from('abc'))],
  ['client info', parseClientInfo, example.CLIENT_INFO],
  ['license', (bytes) => parseLicense(parseSecured(bytes).body), example.VALID_CLIENT],
  [
    'confirm active',
    (bytes) =>
      parseShare(bytes).map(
        ({ body }) =>
          stripConfirm(parseConfirmActive(body).capabilities, { width: 800, height: 600, depth: 32 }).length,
      ),
    example.CONFIRM_ACTIVE,
  ],
  [
    'demand active',
    (bytes) => {
      const { capabilities } = parseDemandActive(bytes)
      return [stripDemand(capabilities), readDesktop(capabilities)]
    },
    demand,
  ],
  ['share data', (bytes) => parseShare(bytes).map(parseShareData), example.FINALIZATION.cooperate],
  [
    'session info',
    (bytes) => [parseSessionInfo(bytes), withoutReconnectCookie(bytes)],
    Buffer.from(`030000002a00010000001c000000${'00'.repeat(28)}`, 'hex'),
  ],
  ['slow update', parseSlowUpdate, Buffer.from('0100010000000000', 'hex')],
  ['slow pointer', parseSlowPointer, Buffer.from('01000000007f0000', 'hex')],
  ['slow input', parseSlowInput, Buffer.from('0100000000000000040000001e000000', 'hex')],
  ['fast input', parseFastPathInput, Buffer.from('0405001e', 'hex')],
  [
    'fast output',
    (bytes) => new UpdateAssembler().feed(bytes, () => {}),
    buildFastPathUpdate({ code: 1, data: Buffer.from('some text') })[0]!,
  ],
  [
    'clipboard capabilities',
    (bytes) => buildClipboardCapabilities(parseClipboardCapabilities(bytes), false),
    Buffer.from('0100000001000c00020000000e000000', 'hex'),
  ],
  [
    'clipboard formats',
    (bytes) => parseFormatList(parseClipboard(bytes), true),
    Buffer.from('020000001200000004c000004e00610074006900760065000000', 'hex'),
  ],
  ['clipboard files', parseFileList, Buffer.concat([Buffer.from('01000000', 'hex'), Buffer.alloc(592, 'x')])],
  [
    'file contents',
    parseFileContentsRequest,
    Buffer.from(`020000000100000002000000${'00'.repeat(12)}`, 'hex'),
  ],
  ['dynamic channel', (bytes) => parseDynamic(bytes, 'server'), Buffer.from('24037b0c7171', 'hex')],
  [
    'display control',
    parseMonitorLayout,
    Buffer.from(
      `020000003800000028000000010000000100000000000000000000000004000000030000${'00'.repeat(20)}`,
      'hex',
    ),
  ],
  [
    'devices',
    (bytes) => parseDevices(parseDeviceMessage(bytes).body),
    Buffer.from('72444144010000000800000001000000433a00000000000002000000abcd', 'hex'),
  ],
  [
    'device request',
    (bytes) => {
      const request = parseIoRequest(bytes)
      const { details } = request
      for (const { length, content } of [measureRequest(request), measureAnswer(request.major, details)]) {
        if (details.length < length || length < content) throw new Error('more was measured than there is')
      }
      return [parseCreate(details), parseSetInformation(details)]
    },
    Buffer.concat([Buffer.alloc(20, 1), Buffer.alloc(32), Buffer.alloc(20)]),
  ],
  ['device completion', parseIoCompletion, Buffer.alloc(16)],
  [
    'places of bitmaps',
    (bytes) => new XrdpLogDetector().update({ code: UPDATE.bitmap, data: bytes }),
    Buffer.from('010001000a000a0099019901010001002000000002000000', 'hex'),
  ],
  ['redirection', parseRedirection, Buffer.from('00000004000005000000010000000400000061000000', 'hex')],
  [
    'channel',
    (bytes) => new ChannelAssembler('cliprdr', 4096).feed(bytes),
    buildChunks(Buffer.from('some text'))[0]!,
  ],
]

describe.each(PARSERS)('%s', (_, parse, valid) => {
  test('anything, and what is nearly right, is read or refused', () => {
    expect(read(() => parse(valid))).toBe(true)
    let refused = 0
    fc.assert(
      fc.property(anything, edits, (bytes, changes) => {
        if (!read(() => parse(bytes))) refused++
        if (!read(() => parse(edited(Buffer.from(valid), changes)))) refused++
      }),
      { numRuns: 300 },
    )
    expect(refused).toBeGreaterThan(50)
  })
})

describe('a stream', () => {
  const pdu = fc.oneof(
    anything.map((data) => buildDataIndication(1003, data)),
    anything.map((data) => buildFastPathUpdate({ code: 1, data })[0]!),
    anything,
  )
  const framed = (chunks: Uint8Array[], fastPath: boolean) => {
    const framer = new Framer({ fastPath })
    const pdus: string[] = []
    let error = ''
    try {
      for (const chunk of chunks) {
        framer.feed(chunk, (one) => {
          pdus.push(hex(one))
          return true
        })
      }
    } catch (thrown) {
      if (!(thrown instanceof MalformedError)) throw thrown
      error = thrown.message
    }
    expect(framer.pending).toBeLessThanOrEqual(TPKT_LIMIT)
    return { pdus, error }
  }

  test('is cut into the same PDUs wherever chunks end', () => {
    fc.assert(
      fc.property(
        fc.array(pdu, { maxLength: 8 }),
        fc.array(fc.nat(2000), { maxLength: 12 }),
        fc.boolean(),
        (pdus, places, fastPath) => {
          const bytes = Buffer.concat(pdus)
          expect(framed(cut(bytes, places), fastPath)).toEqual(framed([bytes], fastPath))
        },
      ),
      { numRuns: 200 },
    )
  })

  test('is refused by a header in pieces, though nothing follows it', () => {
    for (const header of [
      [0, 0],
      [0, 0x80, 3],
      [3, 0, 0, 6],
    ]) {
      const framer = new Framer({ fastPath: true })
      const feedAll = () => {
        for (const byte of header) framer.feed(Uint8Array.of(byte), () => true)
      }
      expect(feedAll).toThrow('a length of')
    }
  })

  test('is left where its taker stops', () => {
    const bytes = Buffer.concat([buildDataIndication(1003, Buffer.from('a')), Buffer.from('rest')])
    for (const at of [0, 3, 9]) {
      const framer = new Framer()
      framer.feed(bytes.subarray(0, at), () => false)
      expect(Buffer.from(framer.feed(bytes.subarray(at), () => false)).toString()).toBe('rest')
    }
  })
})

test('input is read as it was written', () => {
  const number = fc.nat(0xffff)
  const signed = fc.integer({ min: -0x8000, max: 0x7fff })
  const event: fc.Arbitrary<InputEvent> = fc.oneof(
    fc.record({
      kind: fc.constant('key' as const),
      code: fc.nat(255),
      extended: fc.constantFrom(0 as const, 1 as const, 2 as const),
      isDown: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('character' as const), code: number, isDown: fc.boolean() }),
    fc.record({
      kind: fc.constantFrom('pointer' as const, 'pointer-extended' as const),
      flags: number,
      x: number,
      y: number,
    }),
    fc.record({ kind: fc.constant('pointer-relative' as const), flags: number, x: signed, y: signed }),
    fc.record({ kind: fc.constant('locks' as const), flags: fc.nat(15) }),
  )
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 40 }), (events) => {
      expect(parseFastPathInput(buildFastPathInput(events))).toEqual(events)
    }),
  )
})

test('an update in fragments is put together again', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(UPDATE.bitmap, UPDATE.pointerLarge),
      fc.nat(3 * FAST_PATH_LIMIT),
      (code, length) => {
        const data = Buffer.alloc(length, 'update ')
        const found: Update[] = []
        const assembler = new UpdateAssembler()
        for (const pdu of buildFastPathUpdate({ code, data })) {
          expect(pdu.length).toBeLessThanOrEqual(FAST_PATH_LIMIT)
          assembler.feed(pdu, (update) => found.push({ ...update, data: Buffer.from(update.data) }))
        }
        expect(found.map((update) => [update.code, hex(update.data)])).toEqual([[code, hex(data)]])
        expect(assembler.pending).toBe(0)
      },
    ),
    { numRuns: 50 },
  )
})

test('a message in chunks is put together again, and one that lies about its length is refused', () => {
  fc.assert(
    fc.property(fc.nat(20_000), fc.integer({ min: 1, max: 5000 }), fc.integer(), (length, chunk, lie) => {
      const message = Buffer.alloc(length, 'message ')
      const chunks = buildChunks(message, chunk)
      const assembler = new ChannelAssembler('rdpdr', 20_000)
      const found = chunks.map((one) => assembler.feed(one)).filter((one) => one !== undefined)
      expect(found.map(hex)).toEqual([hex(message)])
      expect(assembler.pending).toBe(0)
      const other = new ChannelAssembler('rdpdr', 20_000)
      if (lie >>> 0 === length) return
      chunks[0]!.writeUInt32LE(lie >>> 0)
      const read = () => chunks.some((one) => other.feed(one))
      expect(read).toThrow(MalformedError)
      expect(other.pending).toBeLessThanOrEqual(20_000)
    }),
    { numRuns: 50 },
  )
})

test('a connection whose messages are changed on their way ends in order, and never answers without measure', () => {
  let ended = 0
  fc.assert(
    fc.property(
      fc.nat(30),
      fc.constantFrom('front' as const, 'back' as const),
      edits,
      (nth, end, changes) => {
        const { back, run, heard } = joinEnds()
        let count = 0
        let carried = 0
        try {
          back.start()
          run((to, bytes) => {
            carried += bytes.length
            return to === end && count++ === nth ? edited(Buffer.from(bytes), changes) : bytes
          })
        } catch (error) {
          if (!(error instanceof MalformedError) && !(error instanceof TargetError)) throw error
          ended++
        }
        expect(carried).toBeLessThan(5_000)
        expect(heard.back.length + heard.front.length).toBeLessThan(10)
      },
    ),
    { numRuns: 500 },
  )
  expect(ended).toBeGreaterThan(20)
})

const CLIPBOARD = [
  '0700000010000000 01000000 01000c00020000003e000000',
  '0200000006000000 0d0000000000',
  '0300010000000000',
  '0400000004000000 0d000000',
  '0500010004000000 61000000',
  '0800000018000000 02000000 00000000 02000000 00000000 00000000 00000100',
  '0900010004000000 02000000',
]
const DEVICES = [
  '7244414401000000 08000000 01000000 633a000000000000 00000000',
  '72445249 01000000 00000000 07000000 00000000 00000000 16011200 00000000 00000000 00000000 00000000 01000000 00000000 04000000 61000000',
  '72444349 01000000 07000000 00000000 05000000 00',
  '72445249 01000000 05000000 08000000 06000000 00000000 0d000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000',
  '7244724401000000 00000000',
]
const DYNAMIC = ['5000030000000000', '10036563686f00', '100300000000', '240304006161', '30036161', '4003']
const FILTERS: [string, (send: SendChunk) => { receive(from: Side, chunk: Uint8Array): void }, string[]][] = [
  [
    'clipboard',
    (send) =>
      new ClipboardFilter({
        rights: { up: true, down: true, files: true },
        visitor: { denied() {}, text() {}, data() {}, files() {}, transferred() {} },
        send,
      }),
    CLIPBOARD,
  ],
  [
    'devices',
    (send) =>
      new DeviceFilter({
        rights: { drives: true, printers: false, ports: false, smartCards: false },
        visitor: { denied() {}, announced() {}, opened() {}, transferred() {}, renamed() {}, deleted() {} },
        send,
      }),
    DEVICES,
  ],
  [
    'dynamic channels',
    (send) =>
      new DynamicFilter({
        isAllowed: (name) => name === 'echo',
        visitor: { denied() {}, opened() {}, data: () => true },
        send,
      }),
    DYNAMIC,
  ],
]

test.each(FILTERS)(
  'the filter of %s, whatever either side says: an answer or the one error',
  (_, create, said) => {
    const message = fc.constantFrom(...said).map((text) => Buffer.from(text.replace(/ /g, ''), 'hex'))
    const sides = fc.constantFrom('client' as const, 'target' as const)
    let passed = 0
    let refused = 0
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            sides,
            fc.oneof(
              message,
              fc.tuple(message, edits).map(([one, by]) => edited(one, by)),
            ),
          ),
          {
            maxLength: 20,
          },
        ),
        fc.integer({ min: 1, max: 40 }),
        (messages, length) => {
          let heard = 0
          let sent = 0
          const filter = create((to, chunk) => {
            sent += chunk.length
            expect(['client', 'target']).toContain(to)
            passed++
          })
          const isRead = read(() => {
            for (const [side, one] of messages) {
              for (const chunk of buildChunks(one, length)) {
                heard += chunk.length
                filter.receive(side, chunk)
              }
            }
          })
          if (!isRead) refused++
          expect(sent).toBeLessThanOrEqual(heard * 4 + 64)
        },
      ),
      { numRuns: 300 },
    )
    expect(passed).toBeGreaterThan(100)
    expect(refused).toBeGreaterThan(10)
  },
)

test('fragments of a byte each cost no more than what they bring', () => {
  const assembler = new UpdateAssembler()
  const bomb = Buffer.alloc(4 * 8000)
  for (let at = 0; at < bomb.length; at += 4) bomb.set([0x31, 1, 0, at & 0xff], at)
  const pdu = (body: Uint8Array) =>
    Buffer.concat([Uint8Array.of(0, 0x80 | ((body.length + 3) >> 8), (body.length + 3) & 0xff), body])
  assembler.feed(pdu(Uint8Array.of(0x21, 0, 0)), () => {})
  const before = process.memoryUsage()
  for (let left = 50; left > 0; left--) assembler.feed(pdu(bomb.subarray(0, 32_000)), () => {})
  const { heapUsed, external } = process.memoryUsage()
  expect(assembler.pending).toBe(400_000)
  // A view for each would be some hundred bytes.
  expect(heapUsed - before.heapUsed + external - before.external).toBeLessThan(20_000_000)
  let whole: Uint8Array | undefined
  assembler.feed(pdu(Uint8Array.of(0x11, 0, 0)), ({ data }) => {
    whole = data
  })
  expect(hex(whole!)).toBe(hex(bomb.filter((_, at) => at % 4 === 3)).repeat(50))
})

test('what is put together behind a stream of chunks is what was judged at their begin', () => {
  const any = fc.record({
    length: fc.constantFrom(0, 1, 10, 20),
    total: fc.constantFrom(20, 30),
    flags: fc.constantFrom(0, 1, 2, 3),
  })
  const good = [
    { length: 10, total: 20, flags: 1 },
    { length: 10, total: 20, flags: 2 },
  ]
  const chunks = fc
    .array(fc.oneof(fc.constant(good), fc.tuple(any)), { maxLength: 8 })
    .map((groups) => groups.flat())
  const ends = { whole: 0, refused: 0 }
  fc.assert(
    fc.property(chunks, (pieces) => {
      const receiver = new ChannelAssembler('receiver', 1 << 24)
      let judged = 0
      let received = 0
      const stream = new MessageStream({
        name: 'cliprdr',
        limit: 100,
        take: () => {},
        large: {
          judge: () => {
            judged++
            return 'pass'
          },
          pass: (chunk) => {
            let message: Uint8Array | undefined
            const isTaken = read(() => {
              message = receiver.feed(chunk)
            })
            expect(isTaken).toBe(true)
            if (message) received++
          },
        },
      })
      const isRead = read(() => {
        for (const { length, total, flags } of pieces) {
          const chunk = Buffer.alloc(8 + length, 0x61)
          chunk.writeUInt32LE(total, 0)
          chunk.writeUInt32LE(flags, 4)
          stream.receive(chunk)
        }
      })
      if (!isRead) ends.refused++
      ends.whole += received
      expect(received).toBeLessThanOrEqual(judged)
    }),
    { numRuns: 2000 },
  )
  expect(Math.min(ends.whole, ends.refused)).toBeGreaterThan(20)
})
