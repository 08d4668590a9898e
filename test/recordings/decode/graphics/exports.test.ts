import { Buffer } from 'node:buffer'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { playRecording } from '../../../../recordings/commands.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { encodeDesktopSize, encodeKey, encodePointer } from '../../../../recordings/decode/graphics/events.ts'
import { type ExportChoice, GraphicSession } from '../../../../recordings/show/export/choices.ts'
import { openExport } from '../../../../recordings/show/export/formats.ts'
import { desktopFilm } from '../../../../recordings/show/export/video/desktop.ts'
import { Replay } from '../../../../recordings/show/replay/replay.ts'
import { run } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { readPpm } from '../../../peers/screen.ts'
import { rectangle, update } from '../../../proxies/vnc/codec/streams.ts'
import type { Recorded } from '../../replay-support.ts'
import { removeRoots, SESSION } from '../../support.ts'
import * as rdp from './rdp/updates.ts'
import { filled, recordDesktop } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-desktop-'))
afterAll(() => {
  removeRoots()
  rmSync(folder, { recursive: true })
})

const SIZE = { width: 64, height: 40 }
const ALL = { x: 0, y: 0, ...SIZE }
const LARGE = { x: 0, y: 0, width: 101, height: 60 }
const RED = 0xff0000
const GREEN = 0x00ff00
/** Two pixels, one over the other, that point at the upper one. */
const CURSOR = rectangle(
  { x: 0, y: 0, width: 1, height: 2 },
  ENCODING.CURSOR_WITH_ALPHA,
  Buffer.of(0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 255, 255),
)

/** The same picture in each protocol. */
const SAID = {
  vnc: {
    filled,
    cursor: update(CURSOR),
    size: update(rectangle(LARGE, ENCODING.DESKTOP_SIZE)),
    nonsense: update(rectangle({ ...ALL, x: 60 }, ENCODING.RAW)),
  },
  rdp: {
    filled: rdp.filled,
    cursor: rdp.message(
      9,
      rdp.pointer({
        width: 1,
        height: 2,
        colours: Buffer.from('ff0000 00 ff0000 00'.replaceAll(' ', ''), 'hex'),
      }),
    ),
    size: Buffer.alloc(0),
    nonsense: rdp.encodeUpdateHead(1, 2 ** 30),
  },
}

describe.each(['vnc', 'rdp'] as const)('%s', (kind) => {
  let made: Recorded
  beforeAll(async () => {
    const graphics = (at: number, payload: Uint8Array) => ({ at, type: FRAME.graphics, payload })
    const { filled, cursor, size, nonsense } = SAID[kind]
    const steps = [
      graphics(0, filled(ALL, RED)),
      {
        at: 1,
        type: FRAME.key,
        payload: encodeKey({ participant: 0, isDown: true, keysym: 0x61, code: 30 }),
      },
      graphics(2, cursor),
      { at: 2, type: FRAME.pointer, payload: encodePointer({ participant: 0, buttons: 1, x: 5, y: 6 }) },
      {
        at: 3,
        type: FRAME.clipboard,
        payload: Buffer.from(JSON.stringify({ direction: 'up', bytes: 5, text: 'hello' })),
      },
      graphics(4, size),
      { at: 4, type: FRAME.desktopSize, payload: encodeDesktopSize(LARGE) },
      graphics(4, filled(LARGE, GREEN)),
      graphics(5, nonsense),
    ]
    made = await recordDesktop(SIZE, steps, undefined, kind)
  })

  async function exported(choice: ExportChoice): Promise<Buffer> {
    const parts: Buffer[] = []
    for await (const piece of await openExport(made.entry, made.grant.key, choice))
      parts.push(Buffer.from(piece))
    return Buffer.concat(parts)
  }

  describeWithPeers('png', ['convert'], () => {
    /** Reads pixels with ImageMagick: 0xRRGGBB, row by row. */
    async function picture(at: number) {
      const file = join(folder, 'picture.png')
      writeFileSync(file, await exported({ format: 'png', at }))
      const { stderr, bytes } = await run(findProgram('convert'), [file, '-depth', '8', 'ppm:-'])
      expect(stderr).toBe('')
      const { width, rgb } = readPpm(bytes)
      return { width, pixelAt: (x: number, y: number) => rgb.readUIntBE(3 * (y * width + x), 3) }
    }

    test('shows the desktop of a moment, with the pointer once there is one', async () => {
      const early = await picture(1)
      expect([early.width, early.pixelAt(0, 0), early.pixelAt(5, 6)]).toEqual([64, RED, RED])
      const later = await picture(2.5)
      expect([later.pixelAt(5, 6), later.pixelAt(5, 7), later.pixelAt(5, 8)]).toEqual([0xff, 0xff, RED])
      const large = await picture(4)
      expect([large.width, large.pixelAt(100, 50), large.pixelAt(5, 6)]).toEqual([101, GREEN, 0xff])
    })

    test('says at its bottom when there is nothing newer to show', async () => {
      const last = await picture(9)
      expect([last.pixelAt(0, 0), last.pixelAt(100, 50)]).toEqual([GREEN, 0xa00000])
    })
  })

  describeWithPeers('video', ['ffmpeg', 'ffprobe'], () => {
    test.each([
      ['mp4', 'h264'],
      ['webm', 'vp9'],
    ] as const)('%s has the size of the largest desktop', async (format, codec) => {
      const file = join(folder, `session.${format}`)
      writeFileSync(file, await exported({ format }))
      const asked = ['-v', 'error', '-count_frames', '-show_entries']
      const probed = await run(findProgram('ffprobe'), [
        ...[...asked, 'stream=codec_name,width,height,nb_read_frames'],
        ...['-of', 'json', file],
      ])
      expect(probed.stderr).toBe('')
      const [stream] = JSON.parse(probed.stdout).streams
      expect(stream).toMatchObject({ codec_name: codec, width: 102, height: 60, nb_read_frames: '60' })
      const first = ['-v', 'error', '-i', file, '-vframes', '1', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-']
      const { bytes } = await run(findProgram('ffmpeg'), first)
      const pixelAt = (x: number, y: number) => [...bytes.subarray(3 * (y * 102 + x), 3 * (y * 102 + x) + 3)]
      const [red, green, blue] = pixelAt(51, 30)
      expect(Math.max(Math.abs(red! - 255), green!, blue!)).toBeLessThan(24)
      expect(Math.max(...pixelAt(3, 3))).toBeLessThan(24)
    })
  })

  describe('text', () => {
    test('json has what happened, without pixels', async () => {
      const lines = (await exported({ format: 'json' })).toString().trimEnd().split('\n')
      expect(lines.map((line) => JSON.parse(line).type)).toEqual([
        'channel_open',
        'key',
        'pointer',
        'clipboard',
        'desktop_size',
        'channel_close',
        'end',
      ])
    })

    test('txt has what one reads', async () => {
      expect((await exported({ format: 'txt' })).toString()).toBe(
        [
          `[0.000 channel_open kind=${kind} subprotocol=${kind.toUpperCase()} desktop={"width":64,"height":40,"name":"desk"}]`,
          '[3.000 clipboard direction=up bytes=5 text=hello]',
          '[4.000 desktop_size width=101 height=60]',
          '[5.000 channel_close]',
          '',
        ].join('\n'),
      )
    })
  })

  test.each(['cast', 'cast3', 'ttyrec', 'html'] as const)('%s is refused', async (format) => {
    await expect(exported({ format })).rejects.toThrow(GraphicSession)
    await expect(exported({ format })).rejects.toThrow(
      'expected a form for a graphic session: png, mp4, webm, json, txt',
    )
  })

  test('a terminal that would play it is told what to do instead', async () => {
    const commands = {
      root: made.root,
      unwrap: async () => made.grant.key,
      stdout: new Writable({ write: (_piece, _encoding, done) => done() }),
      tell: () => undefined,
    }
    await expect(playRecording(commands, SESSION, { speed: 1 })).rejects.toThrow(
      `recordings export ${SESSION} --format png`,
    )
  })

  test('whatever a channel holds, there is a picture, a film without its encoder, and text', async () => {
    const types = fc.constantFrom(
      FRAME.graphics,
      FRAME.pixelFormat,
      FRAME.pointer,
      FRAME.key,
      FRAME.clipboard,
      FRAME.participant,
      FRAME.desktopSize,
      FRAME.resize,
      FRAME.output,
    )
    const frame = fc.record({ type: types, payload: fc.uint8Array({ maxLength: 40 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 30 }), async (frames) => {
        const steps = frames.map((one, at) => ({ at, ...one }))
        const any = await recordDesktop(SIZE, steps, undefined, kind)
        const replay = await Replay.open(any.entry, any.grant.key)
        const channel = replay.mainChannel!
        const head = await replay.desktopAt(channel, channel.opened)
        const { pictures, width, height } = await desktopFilm(replay, channel, head!)
        for await (const picture of pictures) expect(picture.length).toBe(width * height * 4)
        await replay.close()
        for (const format of ['png', 'json', 'txt'] as const) {
          let length = 0
          for await (const piece of await openExport(any.entry, any.grant.key, { format }))
            length += piece.length
          expect(length).toBeGreaterThan(0)
        }
      }),
      { numRuns: 15 },
    )
  })
})
