/**
 * Random and mutated streams: a recorder throws nothing, reports at most one violation, always closes its
 * channel, and uses no more memory than its limits.
 */
import { Buffer } from 'node:buffer'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classifyExec } from '../../proxies/ssh/codec/classify.ts'
import { FXP } from '../../proxies/ssh/codec/sftp.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { type Recorded, recorderFor } from '../../proxies/ssh/recorder/factory.ts'
import type { ChannelRecorder } from '../../proxies/ssh/recorder/recorder.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { Notes } from '../proxies/ssh/recorder/support/notes.ts'
import { times } from '../times.ts'

const exec = (text: string): Recorded => {
  const command = Buffer.from(text)
  return { kind: 'exec', command, classified: classifyExec(command) }
}
const channels: Record<string, Recorded> = {
  sftp: { kind: 'sftp' },
  'scp up': exec('scp -r -t d'),
  'scp down': exec('scp -r -f d'),
  rsync: exec('rsync --server -e.LsfxCIvu . p'),
  git: exec("git-upload-pack '/p'"),
  command: exec('cat'),
  shell: { kind: 'shell' },
}

function packet(type: number, body: (writer: Writer) => Writer): Buffer {
  return new Writer().string(body(new Writer().byte(type)).finish()).finish()
}

/** Pieces of valid streams, so that mutations get past the first byte. */
const id = fc.nat(3)
const handle = fc.constantFrom('h', 'i')
const path = fc.constantFrom('/a', '/b', '')
const requests: fc.Arbitrary<Buffer> = fc.oneof(
  fc.constant(packet(FXP.init, (w) => w.uint32(3))),
  fc
    .tuple(id, path)
    .map(([id, path]) => packet(FXP.open, (w) => w.uint32(id).string(path).uint32(0x1b).uint32(0))),
  fc
    .tuple(id, handle, fc.nat(9))
    .map(([id, h, at]) => packet(FXP.write, (w) => w.uint32(id).string(h).uint64(BigInt(at)).string('abc'))),
  fc
    .tuple(id, handle, fc.nat(9))
    .map(([id, h, at]) => packet(FXP.read, (w) => w.uint32(id).string(h).uint64(BigInt(at)).uint32(3))),
  fc
    .tuple(fc.constantFrom(FXP.close, FXP.fstat), id, handle)
    .map(([type, id, h]) => packet(type, (w) => w.uint32(id).string(h))),
  fc
    .tuple(fc.constantFrom(FXP.stat, FXP.remove, FXP.opendir), id, path)
    .map(([type, id, p]) => packet(type, (w) => w.uint32(id).string(p))),
)
const replies: fc.Arbitrary<Buffer> = fc.oneof(
  fc.constant(packet(FXP.version, (w) => w.uint32(3))),
  fc.tuple(id, fc.nat(5)).map(([id, code]) => packet(FXP.status, (w) => w.uint32(id).uint32(code))),
  fc.tuple(id, handle).map(([id, h]) => packet(FXP.handle, (w) => w.uint32(id).string(h))),
  fc.tuple(id, fc.nat(3)).map(([id, n]) => packet(FXP.data, (w) => w.uint32(id).string('abc'.slice(n)))),
  id.map((id) => packet(FXP.attrs, (w) => w.uint32(id).uint32(1).uint64(3n))),
)
const texts = fc
  .constantFrom(
    '\0',
    '\x01no\n',
    'C0644 3 f\n',
    'D0755 0 d\n',
    'E\n',
    'T1 0 1 0\n',
    'abc',
    '\x1f\0\0\0',
    '0000',
    '0032want ',
    'ls\r',
    'ls\r\n',
    '\b',
  )
  .map((text) => Buffer.from(text, 'latin1'))
const garbage = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes))
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constant('client'), requests) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('target'), replies) },
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom('client', 'target'), texts) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('client', 'target', 'stderr'), garbage) },
)
const streams = fc.tuple(
  fc.array(piece, { maxLength: 40 }),
  fc.array(fc.tuple(fc.nat(200), fc.nat(7)), { maxLength: 2 }),
)

function feed(recorder: ChannelRecorder, from: string, data: Uint8Array): void {
  if (from === 'client') recorder.fromClient(data)
  else recorder.fromTarget(data, from === 'stderr')
}

describe.each(Object.entries(channels))('a stream of nonsense on %s', (_, recorded) => {
  it('throws nothing, is cut at most once, and closes', () => {
    fc.assert(
      fc.property(streams, fc.boolean(), ([pieces, flips], begun) => {
        const notes = new Notes()
        const options = notes.options()
        const terminal = { type: 'xterm', columns: 80, rows: 24 }
        const recorder = recorderFor(recorded, recorded.kind === 'shell' ? { ...options, terminal } : options)
        if (begun && recorded.kind === 'sftp') {
          recorder.fromClient(packet(FXP.init, (w) => w.uint32(3)))
          recorder.fromTarget(
            packet(FXP.version, (w) => w.uint32(3)),
            false,
          )
        }
        let at = 0
        for (const [from, data] of pieces) {
          const mutated = Buffer.from(data)
          for (const [where, bit] of flips) {
            if (at <= where && where < at + data.length) mutated[where - at]! ^= 1 << bit
          }
          at += data.length
          feed(recorder, from, mutated)
        }
        recorder.exit({ status: 0 })
        recorder.close()
        expect(notes.violations.length).toBeLessThanOrEqual(1)
        expect(notes.frames.at(-1)?.type).toBe(FRAME.channelClose)
        expect(Math.max(...notes.frames.map((frame) => frame.payload.length))).toBeLessThanOrEqual(65_536)
      }),
      { numRuns: times(400, 1500) },
    )
  }, 300_000)
})

setFlagsFromString('--expose-gc')
const gc: () => void = runInNewContext('gc')

/** Array buffers are freed by the collection after the one that finds them. */
function collect(): void {
  for (let turn = 0; turn < 3; turn++) gc()
}

/** Returns the bytes that `fill` leaves in a recorder that writes nowhere. */
function held(recorded: Recorded, fill: (recorder: ChannelRecorder) => void): number {
  const options = new Notes().options()
  collect()
  const before = process.memoryUsage()
  const recorder = recorderFor(recorded, {
    ...options,
    sink: { write: () => undefined },
  })
  fill(recorder)
  collect()
  const after = process.memoryUsage()
  recorder.exit({ status: 0 })
  recorder.close()
  return after.heapUsed - before.heapUsed + (after.arrayBuffers - before.arrayBuffers)
}

const MIB = 1024 * 1024

describe('memory', () => {
  const begin = (recorder: ChannelRecorder) => {
    recorder.fromClient(packet(FXP.init, (w) => w.uint32(3)))
    recorder.fromTarget(
      packet(FXP.version, (w) => w.uint32(3)),
      false,
    )
    recorder.fromClient(packet(FXP.open, (w) => w.uint32(0).string('/f').uint32(0x1b).uint32(0)))
    recorder.fromTarget(
      packet(FXP.handle, (w) => w.uint32(0).string('h')),
      false,
    )
  }

  it('of SFTP is bounded when a client asks and asks', () => {
    const bytes = held({ kind: 'sftp' }, (recorder) => {
      begin(recorder)
      for (let id = 1; id < 140_000; id++) {
        recorder.fromClient(packet(FXP.read, (w) => w.uint32(id).string('h').uint64(BigInt(id)).uint32(9)))
      }
    })
    expect(bytes).toBeLessThan(40 * MIB)
  }, 300_000)

  it('of SFTP is bounded when pieces come out of order', () => {
    const one = held({ kind: 'sftp' }, (recorder) => {
      begin(recorder)
      for (let id = 1; id < 60_000; id++) {
        recorder.fromClient(
          packet(FXP.write, (w) =>
            w
              .uint32(id)
              .string('h')
              .uint64(BigInt(id * 2))
              .string('x'),
          ),
        )
        recorder.fromTarget(
          packet(FXP.status, (w) => w.uint32(id).uint32(0)),
          false,
        )
      }
    })
    expect(one).toBeLessThan(8 * MIB)
  }, 300_000)

  it('of every other channel is bounded when one side floods', () => {
    for (const [name, recorded] of Object.entries(channels)) {
      for (const from of ['client', 'target', 'stderr']) {
        const bytes = held(recorded, (recorder) => {
          for (let turn = 0; turn < 1000; turn++) feed(recorder, from, Buffer.alloc(32_768, 0x43))
        })
        expect(bytes, `${name} ${from}`).toBeLessThan(2 * MIB)
      }
    }
  }, 300_000)
})
