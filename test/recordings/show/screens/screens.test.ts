/**
 * Screens of a recording that is being written: drawn in another thread, equal to a terminal that received
 * all of it.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import xterm from '@xterm/headless'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { writeVarint } from '../../../../recordings/container/format/varint.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Drawer, type Drawn } from '../../../../recordings/show/screens/drawer.ts'
import { MAX_DRAWN } from '../../../../recordings/show/screens/screen.ts'
import { makeWriter, removeRoots, SESSION } from '../../support.ts'

const drawer = new Drawer()
afterAll(async () => {
  await drawer.close()
  removeRoots()
})
afterEach(() => drawer.forget(SESSION))

const json = (value: unknown) => Buffer.from(JSON.stringify(value))
const shell = { kind: 'shell', subprotocol: 'SSH_SHELL', terminal: { type: 'xterm', columns: 40, rows: 10 } }

async function recording() {
  const { writer, path, grant } = await makeWriter()
  const drawn: Drawn = { session: SESSION, path, key: grant.key, isGraphic: false }
  return {
    writer,
    write: (text: string | Uint8Array, channel = 1) => writer.write(FRAME.output, channel, Buffer.from(text)),
    now: async () => {
      await writer.flush()
      return await drawer.state(drawn, writer.accepted)
    },
    drawn,
  }
}

/** Returns a drawing as an auditor's terminal shows it. */
async function shown(drawing: string | Uint8Array, columns = 40, rows = 10): Promise<string[]> {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 0, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(drawing, resolve))
  return linesOf(terminal)
}

/** Returns its rows, and its cursor. */
function linesOf({ rows, buffer: { active } }: InstanceType<typeof xterm.Terminal>): string[] {
  const lines = Array.from({ length: rows }, (_, row) =>
    active.getLine(active.baseY + row)!.translateToString(true),
  )
  return [...lines, `${active.cursorX},${active.cursorY}`]
}

describe('the screens of a session', () => {
  test('are those of a terminal that saw everything, wherever somebody begins to watch', async () => {
    const { writer, write, now } = await recording()
    writer.write(FRAME.channelOpen, 1, json(shell))
    const pieces = [
      'top of the page\r\n',
      ...Array.from({ length: 30 }, (_, index) => `line ${index} \x1b[3${index % 8}mcolour\x1b[m\r\n`),
      '\x1b[?1049h\x1b[2J\x1b[5;10Hfull screen',
      '\x1b[1;1H\xe2\x82',
      '\x1b[7mreverse\x1b[m',
      '\x1b[?1049l back',
    ]
    const whole = new xterm.Terminal({ cols: 40, rows: 10, scrollback: 0, allowProposedApi: true })
    for (const piece of pieces) {
      write(piece)
      await new Promise<void>((resolve) => whole.write(Buffer.from(piece), resolve))
      const [state] = await now()
      expect(await shown(state!.screen!.drawing)).toEqual(linesOf(whole))
    }
    await writer.close({ result: 'success' })
  })

  test('follow resizes, and forget channels that are closed', async () => {
    const { writer, write, now } = await recording()
    writer.write(FRAME.channelOpen, 1, json(shell))
    writer.write(
      FRAME.channelOpen,
      2,
      json({ kind: 'exec', subprotocol: 'SSH_REMOTE_COMMAND', command: 'ls' }),
    )
    writer.write(FRAME.channelOpen, 3, json(shell))
    write('in the third', 3)
    const size = new Uint8Array(8)
    const length = writeVarint(size, writeVarint(size, 0, 100), 30)
    writer.write(FRAME.resize, 1, size.subarray(0, length))
    write('wide '.repeat(18))
    const states = await now()
    expect(states.map(({ channel }) => channel)).toEqual([1, 2, 3])
    expect(states[0]!.screen).toMatchObject({ columns: 100, rows: 30 })
    expect((await shown(states[0]!.screen!.drawing, 100, 30))[0]).toBe('wide '.repeat(18))
    expect(JSON.parse(Buffer.from(states[1]!.open).toString())).toMatchObject({ command: 'ls' })
    expect(states[1]!.screen).toBeUndefined()
    expect((await shown(states[2]!.screen!.drawing))[0]).toBe('in the third')
    writer.write(FRAME.channelClose, 1, new Uint8Array(0))
    expect((await now()).map(({ channel }) => channel)).toEqual([2, 3])
    await writer.close({ result: 'success' })
  })

  test('of a flood show its end', async () => {
    const { writer, write, now } = await recording()
    writer.write(FRAME.channelOpen, 1, json(shell))
    for (let written = 0; written < 2 * MAX_DRAWN; written += 30_000) {
      write(randomBytes(15_000).toString('hex'))
    }
    write('\x1bc\x1b[2J\x1b[Hthe end')
    const [state] = await now()
    expect((await shown(state!.screen!.drawing))[0]).toBe('the end')
    await writer.close({ result: 'success' })
  })

  test('go on where the output so far ends, within a sequence or a character', async () => {
    const { writer, write, now } = await recording()
    writer.write(FRAME.channelOpen, 1, json(shell))
    for (const [before, after, line] of [
      ['\x1b[2;5r\x1b[5;1Hone\r\n\x1b[3', '1mtwo', '     two'],
      ['\x1b[H\x1b]0;a title', ' of some length\x07three', 'three'],
      ['\x1b[H\xe2\x82', '\xac four', '€ four'],
    ] as const) {
      const [first, second] = [Buffer.from(before, 'latin1'), Buffer.from(after, 'latin1')]
      write(first)
      const [state] = await now()
      const screen = await shown(Buffer.concat([state!.screen!.drawing, second]))
      expect(screen).toContain(line.trimStart())
      expect(screen.join()).not.toContain('1mtwo')
      write(second)
    }
    const [state] = await now()
    // A line feed at the region's end scrolls only the region, also for a later viewer.
    const lines = await shown(Buffer.concat([state!.screen!.drawing, Buffer.from('\x1b[5;1H\r\n')]))
    expect(lines.slice(0, 5)).toEqual(['€ four', '', 'one', 'two', ''])
    await writer.close({ result: 'success' })
  })

  test.each([
    ['a\x1b[1000000000b', 'repeats a character'],
    ['\x1b[2147483647S', 'scrolls'],
    ['\x1b[2147483647L', 'inserts lines'],
  ])('are drawn of a target that %j: %s', async (hostile) => {
    const { writer, write, now } = await recording()
    writer.write(FRAME.channelOpen, 1, json(shell))
    write(`${hostile}\x1b[2J\x1b[Hstill here`)
    const [state] = await now()
    expect((await shown(state!.screen!.drawing))[0]).toBe('still here')
    await writer.close({ result: 'success' })
  })

  test('are those of the last size, however often it has changed', async () => {
    const { writer, write, now } = await recording()
    writer.write(FRAME.channelOpen, 1, json(shell))
    for (let at = 0; at < 5000; at++) {
      const size = new Uint8Array(8)
      const length = writeVarint(size, writeVarint(size, 0, 20 + (at % 60)), 10)
      writer.write(FRAME.resize, 1, size.subarray(0, length))
      write('.')
    }
    write('\x1b[2J\x1b[Hhere')
    const [state] = await now()
    expect(state!.screen).toMatchObject({ columns: 20 + (4999 % 60), rows: 10 })
    expect((await shown(state!.screen!.drawing))[0]).toBe('here')
    await writer.close({ result: 'success' })
  })

  test('cannot be drawn of a file that is not there: the reason comes back, and others go on', async () => {
    const { writer, now, drawn } = await recording()
    await expect(drawer.state({ ...drawn, session: 'other', path: `${drawn.path}.gone` }, 1)).rejects.toThrow(
      'ENOENT',
    )
    writer.write(FRAME.channelOpen, 1, json(shell))
    await writer.flush()
    await expect(drawer.state({ ...drawn, session: 'another', key: randomBytes(32) }, 1)).rejects.toThrow(
      'does not open',
    )
    expect(await now()).toHaveLength(1)
    await writer.close({ result: 'success' })
  })
})
