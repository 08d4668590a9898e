/**
 * Random bytes from both sides of a terminal: the reader of command lines throws nothing, delays data for a
 * bounded time, and uses bounded memory, whatever a client or a target sends.
 */
import { Buffer } from 'node:buffer'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Command, CommandWatch, HIDDEN_MS, HOLD_MS } from '../../proxies/ssh/commands/watch.ts'
import { CommandRules } from '../../src/model/command-rules.ts'
import { times } from '../times.ts'

const pieces = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom(
      '\r',
      '\n',
      '\r\n',
      '$ ',
      'user@host:~# ',
      '> ',
      'ls -la',
      '日本😀e\u0301',
      '\x1b[200~a\rb\x1b[201~',
      '\x1b[?1049h',
      '\x1b[?1049l',
      '\x1b[?2004h',
      '\x1b[?2004l',
      '\x1b[A',
      '\x1b[5A\x1b[3L',
      '\x1b[2;4r',
      '\x1b[24;1H',
      '\x1bc',
      '\x1b]0;',
      '\x1bP',
      '\x1b[999999;99999999H',
      '\x1b[4h',
      '\x1b[9999b',
      '\x7f\x7f',
      '\x03',
      '\x04',
      '\x0f',
      '\x1b[20;5R',
      'x'.repeat(3000),
    )
    .map((text) => Buffer.from(text)),
  fc.constantFrom(8_192, 20_000).map((size) => Buffer.alloc(size, '\x1b[31mcolour\r\n')),
)
/** Short enough that nothing is skipped: skipping depends on the pieces. */
const short = pieces.filter(({ length }) => length <= 100)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ from: fc.constantFrom('client', 'target'), data: pieces }) },
  { weight: 1, arbitrary: fc.record({ size: fc.tuple(fc.nat(600), fc.nat(300)) }) },
  { weight: 1, arbitrary: fc.record({ pause: fc.nat(300) }) },
)

/** A watch whose clock only advances by `time.now`. */
function watched(rules: readonly string[]) {
  const time = { now: 0 }
  const commands: Command[] = []
  const watch = new CommandWatch({
    columns: 80,
    rows: 24,
    rules: new CommandRules(rules),
    now: () => time.now,
    onCommand: (command) => void commands.push(command),
    onAdmit: () => undefined,

    ask: () => () => undefined,
    onAnswered: () => undefined,
  })
  return { time, commands, watch }
}

/** Types like the relay: data that is not admitted waits, and no later data overtakes it. */
function type({ watch, time, commands }: ReturnType<typeof watched>, data: Buffer): void {
  let held = 0
  for (let rest = data; rest.length > 0; ) {
    const count = watch.admit(rest)
    expect(count).toBeGreaterThanOrEqual(0)
    expect(count).toBeLessThanOrEqual(rest.length)
    if (count > 0) {
      watch.fromClient(rest.subarray(0, count))
      rest = rest.subarray(count)
      held = 0
    } else if (commands.some(({ kills }) => kills === 'before')) {
      // the session ended
      return
    } else {
      time.now += 10
      held += 10
      // a line without any output waits that long before the session ends
      expect(held, 'milliseconds without progress').toBeLessThanOrEqual(HIDDEN_MS + 2 * HOLD_MS)
    }
  }
}

describe('random input and output', () => {
  it.each([[[]], [['notify x', 'kill ^never this$']]])(
    'with the rules %j',
    (rules) => {
      fc.assert(
        fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
          const made = watched(rules)
          const { time, commands, watch } = made
          for (const piece of steps) {
            if ('pause' in piece) time.now += piece.pause
            else if ('size' in piece) watch.resize(...piece.size)
            else if (piece.from === 'client') type(made, piece.data)
            else watch.fromTarget(piece.data)
          }
          watch.close()
          for (const { line, confidence } of commands) {
            expect(line === '').toBe(confidence === 'unread')
            expect(line.length).toBeLessThanOrEqual(4096)
            expect(['certain', 'likely', 'uncertain', 'unread']).toContain(confidence)
          }
        }),
        { numRuns: times(30, 500) },
      )
    },
    60_000,
  )

  it('cut anywhere gives the same lines', () => {
    fc.assert(
      fc.property(fc.array(short, { maxLength: 20 }), fc.integer({ min: 1, max: 50 }), (output, size) => {
        const lines = (cut: number) => {
          const { commands, watch } = watched([])
          for (const data of output) {
            watch.fromClient(Buffer.from('ls\r'))
            for (let at = 0; at < data.length; at += cut) watch.fromTarget(data.subarray(at, at + cut))
          }
          return commands.map(({ line }) => line)
        }
        expect(lines(size)).toEqual(lines(100_000))
      }),
      { numRuns: times(40, 500) },
    )
  }, 300_000)
})

describe('memory', () => {
  setFlagsFromString('--expose-gc')
  const gc: () => void = runInNewContext('gc')
  const used = () => {
    for (let turn = 0; turn < 3; turn++) gc()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const COUNT = 100

  function each(fill: (watch: CommandWatch) => void): number {
    const before = used()
    const all = Array.from({ length: COUNT }, () => watched(['kill x{50}']).watch)
    for (const watch of all) fill(watch)
    const bytes = (used() - before) / COUNT
    for (const watch of all) watch.close()
    return bytes
  }

  it('of an idle session is far below what a session may have', () => {
    const prompt = Buffer.from('user@host:~$ ')
    const bytes = each((watch) => {
      watch.fromTarget(Buffer.from('motd line of some length\r\n'.repeat(30)))
      for (let count = 0; count < 30; count++) {
        watch.fromTarget(prompt)
        watch.fromClient(Buffer.from('ls -la\r'))
        watch.fromTarget(
          Buffer.from(`ls -la\r\n${'-rw-r--r-- 1 root root some file or other\r\n'.repeat(30)}`),
        )
      }
      watch.fromTarget(prompt)
    })
    expect(bytes).toBeLessThan(40 * 1024)
  })

  it('is bounded whatever the client claims, types and the target prints', () => {
    const bytes = each((watch) => {
      watch.resize(100_000, 100_000)
      for (let count = 0; count < 200; count++) {
        watch.fromClient(Buffer.from(`${'k'.repeat(200)}\r`))
        watch.fromTarget(Buffer.from('e\u0301'.repeat(300)))
        watch.fromTarget(Buffer.from(`\x1b]0;${'t'.repeat(500)}`))
        watch.fromTarget(Buffer.alloc(1000, '\n'))
      }
    })
    expect(bytes).toBeLessThan(1024 * 1024)
  }, 300_000)
})
