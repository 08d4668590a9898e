/** The player, on a terminal in memory: the screen after each key. */
import { Buffer } from 'node:buffer'
import { PassThrough, Writable } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Emulator } from '../../../../recordings/decode/terminal/emulator.ts'
import { readTime, showTime } from '../../../../recordings/show/player/clock.ts'
import { Display, drawScreen } from '../../../../recordings/show/player/draw.ts'
import { keysOf } from '../../../../recordings/show/player/keys.ts'
import { Player } from '../../../../recordings/show/player/player.ts'
import { playOn, type Terminal } from '../../../../recordings/show/player/terminal.ts'
import { Replay } from '../../../../recordings/show/replay/replay.ts'
import { open, type Recorded, record, SECOND } from '../../replay-support.ts'
import { removeRoots, until } from '../../support.ts'

afterAll(removeRoots)

const HOSTILE =
  '\x1b]0;title\x07\x1b[c\x1b[6n\x1bP+q544e\x1b\\\x1b]52;c;YQ==\x07\x1b[?1000h\x1b[?2004h\x9b31m\u202eevil'

let made: Recorded
beforeAll(async () => {
  made = await record(({ writer, clock, ...rest }) => {
    const session = { writer, clock, ...rest }
    const say = (channel: number, text: string) => writer.write(FRAME.output, channel, Buffer.from(text))
    open(session, 1, { columns: 100, rows: 30 })
    say(1, `first screen\r\n${HOSTILE}\r\n`)
    for (let minute = 1; minute <= 5; minute++) {
      clock.time += 60 * SECOND
      writer.write(FRAME.command, 1, Buffer.from(JSON.stringify({ line: `command ${minute}` })))
      say(
        1,
        `\x1b[2J\x1b[Hminute ${minute}\r\n\x1b[31mneedle ${minute % 2 ? 'odd' : 'even'}\x1b[m\x1b[30;90Hcorner`,
      )
    }
    writer.write(FRAME.channelClose, 1, Buffer.alloc(0))
    open(session, 2, { columns: 80, rows: 24 })
    clock.time += SECOND
    say(2, 'second channel')
  })
})

interface Watching {
  player: Player
  screen: Emulator
  /** Returns all text written to the terminal. */
  raw: () => string
  /** Returns the rows; the last is the status. */
  rows: () => string[]
  done: Promise<void>
  press(keys: string, shows: RegExp): Promise<void>
}

const watched: Watching[] = []
afterEach(async () => {
  for (const { player, done } of watched.splice(0)) {
    player.stop()
    await done
  }
})

async function watch(
  options: { speed?: number; idleLimit?: number; columns?: number } = {},
): Promise<Watching> {
  const replay = await Replay.open(made.entry, made.grant.key)
  const size = { columns: options.columns ?? 120, rows: 32 }
  const screen = new Emulator(size)
  let raw = ''
  const player = new Player({
    replay,
    channel: replay.mainChannel!,
    speed: options.speed ?? 1,
    follows: true,
    ...(options.idleLimit !== undefined && { idleLimit: options.idleLimit }),
    viewer: {
      size: () => size,
      now: () => performance.now(),
      async write(text) {
        raw += text
        await screen.push(text)
        await screen.settle()
      },
    },
  })
  const done = player.run().finally(() => replay.close())
  const rows = () => screen.text()
  const shows = (pattern: RegExp) =>
    until(() => pattern.test(rows().join('\n'))).catch(() => {
      throw new Error(`expected ${pattern} on the screen:\n${rows().join('\n')}`)
    })
  const watching: Watching = {
    player,
    screen,
    raw: () => raw,
    rows,
    done,
    async press(keys, pattern) {
      player.input(keys)
      await shows(pattern)
    },
  }
  watched.push(watching)
  await shows(/first screen/)
  return watching
}

describe('the player', () => {
  test('goes to a time, to commands, by arrows, and tells where it is', async () => {
    const { press, rows } = await watch()
    await press(' ', /paused/)
    await press('g2:30\r', /minute 2[\s\S]*02:30 \/ 05:01/)
    await press('\x1b[B', /minute 2[\s\S]*02:59[\s\S]*command 3/)
    await press('\x1b[C', /minute 3[\s\S]*03:09/)
    await press('\x1b[D\x1b[D', /minute 2[\s\S]*02:49/)
    await press('\x1b[A', /minute 1[\s\S]*01:59[\s\S]*command 2/)
    await press('gx\r', /expected a time/)
    await press('?', /space pause/)
    expect(rows().at(-1)).not.toContain('playing')
  })

  test('finds output, forwards and backwards', async () => {
    const { press } = await watch()
    await press('/NEEDLE ODD\r', /minute 1[\s\S]*NEEDLE ODD: 1 of 3/)
    await press('n', /minute 3[\s\S]*2 of 3/)
    await press('n', /minute 5[\s\S]*3 of 3/)
    await press('n', /not found from here on/)
    await press('N', /minute 3[\s\S]*2 of 3/)
    await press('/no such thing\r', /no such thing: not found/)
  })

  test('skips what is idle, goes on with the next channel, and waits at the end', async () => {
    const { press, rows } = await watch({ idleLimit: 0.01, speed: 4 })
    await press('', /second channel[\s\S]*shell 2 of 2/)
    await press('', /paused/)
    await press('\t', /shell 1 of 2/)
    expect(rows().join()).toContain('first screen')
  })

  test('without a limit waits as long as it was, at its speed', async () => {
    const { press, rows } = await watch()
    await press('++', /4x/)
    await press('---', /1\/2x/)
    await press('i', /no limit was given/)
    expect(rows().join()).toContain('first screen')
  })

  test('crops what is larger than the terminal, says so, and scrolls', async () => {
    const { press, rows } = await watch({ columns: 60 })
    await press(' g60\r', /minute 1/)
    expect(rows().at(-1)).toMatch(/part of 100x30/)
    expect(rows().join()).not.toContain('corner')
    await press('lllll', /corner/)
    await press('hhhhh', /minute 1/)
  })

  test('gives the terminal nothing but text, colours and places, and puts it back', async () => {
    const { player, raw, done, press } = await watch()
    await press('', /evil/)
    player.input('q')
    await done
    const rest = raw()
      .replace(/\x1b\[\??[\d;]*[mHGKJhl]/g, '')
      .replace(/[^\x00-\x1f\x7f-\x9f\u202e]/g, '')
    expect(rest).toBe('')
    const modes = raw().match(/\x1b\[\?[\d;]*[hl]/g)
    expect([...new Set(modes)].sort()).toEqual(
      ['\x1b[?1049h', '\x1b[?25l', '\x1b[?7l', '\x1b[?7h', '\x1b[?25h', '\x1b[?1049l'].sort(),
    )
    expect(raw()).not.toMatch(/title|YQ==|\x1b\[6n/)
    expect(raw().endsWith('\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l')).toBe(true)
  })
})

test('a wide character that is cut by the view is a space', async () => {
  const emulator = new Emulator({ columns: 10, rows: 1 })
  await emulator.push('a界b界')
  await emulator.settle()
  const drawn = async (left: number, columns: number) => {
    const other = new Emulator({ columns: 10, rows: 1 })
    await other.push(new Display().update(drawScreen(emulator, { left, columns, top: 0, rows: 1 })))
    await other.settle()
    return other.text()[0]?.trimEnd()
  }
  expect(await drawn(0, 10)).toBe('a界b界')
  expect(await drawn(0, 2)).toBe('a')
  expect(await drawn(2, 8)).toBe(' b界')
})

test('keys and times', () => {
  expect(keysOf('a\x1b[A\x1bOB\x1b[1;5C\x1b[15~\x03\x7f\r\x1b')).toEqual([
    'a',
    'up',
    'down',
    'right',
    'interrupt',
    'erase',
    'enter',
    'escape',
  ])
  expect(['90', '1:30', '1:02:03.5', '', 'x', '1:2:3:4', '-1'].map(readTime)).toEqual([
    90e6,
    90e6,
    3723.5e6,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect([0, 61e6, 3661e6].map(showTime)).toEqual(['00:00', '01:01', '1:01:01'])
})

describe('a terminal that goes away ends the replay', () => {
  const terminal = () => {
    let isGone = false
    const stdin = Object.assign(new PassThrough(), { setRawMode: () => undefined })
    const stdout = new Writable({
      write: (_chunk, _encoding, done) => done(isGone ? new Error('write EIO') : null),
    })
    const go = () => {
      isGone = true
    }
    return { stdin, stdout, go, both: { stdin, stdout } as unknown as Terminal }
  }
  test.each<[string, (one: ReturnType<typeof terminal>) => void]>([
    ['while it plays', ({ go }) => go()],
    ['with an error of its input', ({ stdin }) => void stdin.destroy(new Error('read EIO'))],
    ['with the end of its input', ({ stdin }) => void stdin.end()],
  ])('%s', async (_, leave) => {
    const replay = await Replay.open(made.entry, made.grant.key)
    const one = terminal()
    const channel = replay.mainChannel!
    const playing = playOn(one.both, { replay, channel, speed: 1, follows: true }, undefined)
    await until(() => one.stdout.writableLength === 0 && one.stdin.listenerCount('data') > 0)
    leave(one)
    await playing
    await replay.close()
  })
})
