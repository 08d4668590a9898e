/**
 * No action is unseen: viewers that do not read the picture of their own actions, at a real Xvnc. A viewer
 * presses Return in a terminal, and its screen turns red: either that did not happen, or the recording shows
 * it.
 */
import { Buffer } from 'node:buffer'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { ByteStream } from '../../proxies/net/byte-stream.ts'
import { openVncTarget } from '../../proxies/vnc/back.ts'
import {
  encodeContinuousUpdates,
  encodeKey,
  encodeSetDesktopSize,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../../proxies/vnc/codec/client-encoder.ts'
import { ENCODING } from '../../proxies/vnc/codec/encodings.ts'
import { RGB888 } from '../../proxies/vnc/codec/pixel-format.ts'
import { type Desktop, startDesktop } from '../e2e/desktops.ts'
import { sallyport } from '../e2e/recorded.ts'
import { readPng } from '../peers/live-desktop.ts'
import { type Daemon, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type Picture, pictureOf, SCREEN_PEERS, shows } from '../peers/screen.ts'
import { XVNC_PEERS } from '../peers/vnc/servers.ts'
import { trustingGate, vncSession } from '../proxies/vnc/sessions.ts'
import { until } from '../until.ts'

const WIDTH = 800
const HEIGHT = 600
const ALL = { x: 0, y: 0, width: WIDTH, height: HEIGHT }
const ONE = { x: 0, y: 0, width: 1, height: 1 }
const RETURN = Buffer.concat([encodeKey(true, 0xff0d), encodeKey(false, 0xff0d)])
/** Longer than any picture may be missing. */
const WHILE_MS = 2_500

/** Returns the part of the picture that has that colour. */
function part(picture: Picture, is: (red: number, green: number, blue: number) => boolean): number {
  let count = 0
  for (let at = 0; at < picture.rgb.length; at += 3)
    if (is(picture.rgb[at]!, picture.rgb[at + 1]!, picture.rgb[at + 2]!)) count++
  return (3 * count) / picture.rgb.length
}

const isRed = (picture: Picture) => part(picture, (red, green, blue) => red > 150 && green + blue < 60) > 0.5
const isWhite = (picture: Picture) => part(picture, (...colours) => colours.every((one) => one > 200)) > 0.5

describeWithPeers('what is done on a desktop is recorded', [...XVNC_PEERS, ...SCREEN_PEERS, 'xterm'], () => {
  let desktop: Desktop
  let folder: string
  let count = 0
  const streams: ByteStream[] = []
  const programs: Daemon[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-unseen-'))
    desktop = await startDesktop({ target: { width: WIDTH, height: HEIGHT } })
  })
  afterAll(async () => {
    await desktop.stop()
    rmSync(folder, { recursive: true })
  })
  afterEach(async () => {
    for (const stream of streams.splice(0)) stream.destroy()
    for (const program of programs.splice(0)) await program.stop()
    await until('no session', async () => {
      const rows = await desktop.broker.must<unknown[]>('GET', '/sessions?status=current')
      return rows.length === 0 || undefined
    })
  })

  /**
   * Opens a terminal over the whole desktop, which turns red at the first Return. Returns the file that
   * proves it.
   */
  async function terminal(): Promise<string> {
    const { display } = desktop.xvnc!
    const done = join(folder, `done-${count++}`)
    const script = `read line; printf '\\033[41m\\033[2J'; touch ${done}; exec sleep 1000`
    const args = ['-bg', 'white', '-geometry', '200x60+0+0', '-e', 'sh', '-c', script]
    const env = { ...process.env, DISPLAY: display }
    programs.push(await startDaemon(findProgram('xterm'), args, () => true, { env }))
    await shows(display, isWhite)
    return done
  }

  /** Connects a viewer that sends as directed, and reads all data. */
  async function view(): Promise<ByteStream> {
    const { port, login, password } = desktop
    const viewer = vncSession({ port, login, password, types: ['tlsplain'] })
    const signal = new AbortController().signal
    const { stream } = await openVncTarget(viewer, { gate: trustingGate(), signal, isShared: true })
    streams.push(stream)
    stream.onData = () => undefined
    stream.paused = false
    // The viewer's earlier input goes to the bastion's own screens.
    await sleep(500)
    return stream
  }

  /** Returns the last picture of the session that ended last. */
  async function recorded(sessions: number): Promise<Picture> {
    const { id } = (await desktop.closedSessions(sessions)).at(-1)!
    const done = await sallyport(desktop.broker, ['recordings', 'export', id, '--format', 'png'])
    return readPng(done.bytes)
  }

  const heard = async (stream: ByteStream, what: string, byte: number) => {
    let isHeard = false
    stream.onData = (bytes) => {
      isHeard ||= bytes.includes(byte)
    }
    await until(what, () => isHeard || undefined)
  }

  const attacks: [string, { runs: boolean; typed(stream: ByteStream): Promise<void> | void }][] = [
    [
      'looks at it',
      {
        runs: true,
        typed: async (stream) => {
          stream.onData = () => void stream.write(encodeUpdateRequest(true, ALL))
          stream.write(encodeUpdateRequest(false, ALL))
          await sleep(500)
          stream.write(RETURN)
        },
      },
    ],
    ['asks for no picture', { runs: true, typed: (stream) => stream.write(RETURN) }],
    [
      'asks for one picture, and for no more',
      {
        runs: true,
        typed: async (stream) => {
          stream.write(encodeUpdateRequest(false, ALL))
          await sleep(500)
          stream.write(RETURN)
        },
      },
    ],
    [
      'asks for a single pixel',
      {
        runs: true,
        typed: async (stream) => {
          stream.onData = () => void stream.write(encodeUpdateRequest(false, ONE))
          stream.write(encodeUpdateRequest(false, ONE))
          await sleep(500)
          stream.write(RETURN)
        },
      },
    ],
    [
      'has a single pixel sent continuously',
      {
        runs: true,
        typed: async (stream) => {
          stream.write(encodeSetEncodings([ENCODING.CONTINUOUS_UPDATES, ENCODING.FENCE]))
          await heard(stream, 'the end of continuous updates', 150)
          stream.write(Buffer.concat([encodeUpdateRequest(false, ALL), encodeContinuousUpdates(true, ONE)]))
          await sleep(500)
          stream.write(RETURN)
        },
      },
    ],
    [
      'keeps the fences of the target',
      {
        runs: true,
        typed: async (stream) => {
          stream.write(encodeSetEncodings([ENCODING.FENCE]))
          const asked = Buffer.concat([encodeUpdateRequest(false, ALL), encodeUpdateRequest(true, ALL)])
          stream.onData = () => void stream.write(encodeUpdateRequest(true, ALL))
          stream.write(asked)
          await sleep(500)
          stream.write(RETURN)
        },
      },
    ],
    [
      'reads nothing any more',
      {
        runs: false,
        typed: async (stream) => {
          stream.paused = true
          for (let asked = 0; asked < 30; asked++) {
            stream.write(encodeUpdateRequest(false, ALL))
            await sleep(100)
          }
          stream.write(RETURN)
        },
      },
    ],
    [
      'makes the desktop as small as it goes',
      {
        runs: true,
        typed: async (stream) => {
          stream.write(encodeSetEncodings([ENCODING.EXTENDED_DESKTOP_SIZE]))
          stream.write(encodeUpdateRequest(false, ALL))
          await sleep(500)
          const screen = { id: 0, x: 0, y: 0, width: 1, height: 1, flags: 0 }
          stream.write(encodeSetDesktopSize(1, 1, [screen]))
          await sleep(500)
          stream.write(RETURN)
        },
      },
    ],
    [
      'has all colours but two left out',
      {
        runs: false,
        typed: (stream) => {
          stream.write(encodeSetPixelFormat({ ...RGB888, redMax: 1, greenMax: 1, blueMax: 1 }))
          stream.write(Buffer.concat([encodeUpdateRequest(false, ALL), RETURN]))
        },
      },
    ],
  ]

  test.each(attacks)('of a viewer that %s', async (_what, { runs, typed }) => {
    const before = (await desktop.closedSessions()).length
    const done = await terminal()
    const stream = await view()
    await typed(stream)
    await sleep(WHILE_MS)
    expect(existsSync(done)).toBe(runs)
    expect(isRed(await pictureOf(desktop.xvnc!.display))).toBe(runs)
    stream.destroy()
    const last = await recorded(before + 1)
    expect(isRed(last)).toBe(runs)
    // The end of the session changes nothing.
    expect(existsSync(done)).toBe(runs)
  })

  test('of a viewer that leaves as soon as it has typed', async () => {
    const before = (await desktop.closedSessions()).length
    const done = await terminal()
    const stream = await view()
    stream.write(RETURN)
    await until('it is sent', () => stream.queued === 0 || undefined)
    stream.close()
    const last = await recorded(before + 1)
    await until('it is done', () => existsSync(done) || undefined)
    expect(isRed(last)).toBe(true)
  })
})
