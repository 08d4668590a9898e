/** The exports for other programs, shown by those programs. */
import { Buffer } from 'node:buffer'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FRAME } from '../../../../recordings/container/frames.ts'
import {
  type ExportChoice,
  FfmpegMissing,
  NothingToShow,
} from '../../../../recordings/show/export/choices.ts'
import { openExport } from '../../../../recordings/show/export/formats.ts'
import { findFfmpeg } from '../../../../recordings/show/export/video/ffmpeg.ts'
import { run } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { busy, open, type Recorded, record, SECOND } from '../../replay-support.ts'
import { removeRoots } from '../../support.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-exports-'))
afterAll(() => {
  removeRoots()
  rmSync(folder, { recursive: true })
})

const HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>\x1b]0;t\x07\x9d'
let made: Recorded
beforeAll(async () => {
  made = await record(async (session) => {
    const { writer, clock } = session
    open(session, 3, { columns: 40, rows: 10 })
    writer.write(FRAME.command, 3, Buffer.from(JSON.stringify({ line: HOSTILE })))
    writer.write(FRAME.output, 3, Buffer.from(`begin\r\n${HOSTILE}\r\n`))
    clock.time += 3 * SECOND
    writer.write(FRAME.output, 3, Buffer.from('\x1b[2J\x1b[H\x1b[41mred\x1b[m minute-two \xe7\x95', 'latin1'))
    writer.write(FRAME.output, 3, Buffer.from('\x8c\r\n', 'latin1'))
    writer.write(FRAME.exit, 3, Buffer.from('{"status":3}'))
    writer.write(FRAME.channelClose, 3, Buffer.alloc(0))
    await busy(session, 120, 4)
  })
})

async function exported(choice: ExportChoice): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const piece of await openExport(made.entry, made.grant.key, choice))
    parts.push(Buffer.from(piece))
  return Buffer.concat(parts)
}

async function file(choice: ExportChoice): Promise<string> {
  const path = join(folder, `session.${choice.format}`)
  writeFileSync(path, await exported(choice))
  return path
}

/** Reads size and pixels of a PNG with a palette, independently of the encoder. */
function pixelsOf(png: Buffer): { width: number; height: number; at(x: number, y: number): number } {
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    chunks.set(png.toString('latin1', at + 4, at + 8), png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  const header = chunks.get('IHDR')!
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const palette = chunks.get('PLTE')!
  const rows = inflateSync(chunks.get('IDAT')!)
  return { width, height, at: (x, y) => palette.readUIntBE(3 * rows[y * (width + 1) + 1 + x]!, 3) }
}

/** How many times this process has the recording open; a descriptor that was closed meanwhile leads nowhere. */
function timesOpen(): number {
  const names = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return undefined
    }
  })
  return names.filter((name) => name?.startsWith(made.path)).length
}

test.each(['cast', 'ttyrec', 'txt', 'json', 'html', 'png'] as const)(
  '%s opens its recording once',
  async (format) => {
    const choice = { format, ...(format !== 'json' && format !== 'html' && { channel: 3 }) }
    const whole = await exported(choice)
    expect(timesOpen()).toBe(0)
    const stream = await openExport(made.entry, made.grant.key, choice)
    expect(timesOpen()).toBe(1)
    const away = `${made.path}.away`
    renameSync(made.path, away)
    try {
      const parts: Buffer[] = []
      for await (const piece of stream) parts.push(Buffer.from(piece))
      expect(Buffer.concat(parts).equals(whole)).toBe(true)
    } finally {
      renameSync(away, made.path)
    }
    expect(timesOpen()).toBe(0)
  },
)

test('a form that cannot be had leaves no recording open', async () => {
  for (const format of ['cast', 'html'] as const) {
    await expect(openExport(made.entry, made.grant.key, { format, channel: 9 })).rejects.toThrow(
      NothingToShow,
    )
  }
  expect(timesOpen()).toBe(0)
})

describe('asciicast v3', () => {
  test('has the time since the event before, and the exit status', async () => {
    const lines = (await exported({ format: 'cast3', channel: 3 })).toString().trimEnd().split('\n')
    const [header, ...events] = lines.map((line) => JSON.parse(line))
    expect(header).toMatchObject({ version: 3, term: { cols: 40, rows: 10, type: 'xterm' } })
    expect(events.map(([time, code]) => [time, code])).toEqual([
      [0, 'm'],
      [0, 'o'],
      [3, 'o'],
      [0, 'o'],
      [0, 'x'],
    ])
    expect(events.at(-1)).toEqual([0, 'x', '3'])
  })
})

describe('png', () => {
  test('shows the screen of a moment', async () => {
    const late = pixelsOf(await exported({ format: 'png', channel: 3, at: 3 }))
    expect([late.width, late.height]).toEqual([320, 130])
    expect(late.at(0, 0)).toBe(0xcd0000)
    expect(late.at(30, 0)).toBe(0)
    const early = pixelsOf(await exported({ format: 'png', channel: 3, at: 1 }))
    expect(early.at(0, 0)).toBe(0)
    const lit = Array.from({ length: 320 * 13 }, (_, index) => early.at(index % 320, Math.floor(index / 320)))
    expect(lit.filter((colour) => colour === 0xe5e5e5).length).toBeGreaterThan(40)
  })

  test('has a channel, or says so', async () => {
    await expect(exported({ format: 'png', channel: 77 })).rejects.toThrow(NothingToShow)
  })
})

describeWithPeers('ttyrec', ['ttyplay'], () => {
  test('ttyplay gives the bytes back', async () => {
    const path = await file({ format: 'ttyrec', channel: 3 })
    const played = await run('script', [
      '-qec',
      `${findProgram('ttyplay')} -n ${path} > ${path}.out`,
      '/dev/null',
    ])
    expect(played.code).toBe(0)
    const shown = readFileSync(`${path}.out`)
    expect(shown.includes(Buffer.from('red\x1b[m minute-two 界\r\n'))).toBe(true)
  })
})

describeWithPeers('video', ['ffmpeg', 'ffprobe'], () => {
  test.each([
    ['mp4', 'h264'],
    ['webm', 'vp9'],
  ] as const)('%s is what ffprobe says it is', async (format, codec) => {
    const path = await file({ format, channel: 3 })
    const words = [
      '-v',
      'error',
      '-count_frames',
      '-show_entries',
      'stream=codec_name,width,height,nb_read_frames',
    ]
    const probed = await run(findProgram('ffprobe'), [...words, '-of', 'json', path])
    expect(probed.stderr).toBe('')
    const [stream] = JSON.parse(probed.stdout).streams
    // Three seconds of silence become two, and the last picture stays for one.
    expect(stream).toMatchObject({ codec_name: codec, width: 320, height: 130, nb_read_frames: '30' })
    const picture = join(folder, `${format}.png`)
    await run(findProgram('ffmpeg'), [
      '-v',
      'error',
      '-y',
      '-ss',
      '2.5',
      '-i',
      path,
      '-vframes',
      '1',
      picture,
    ])
    expect(readFileSync(picture).length).toBeGreaterThan(500)
  })

  test('is not made of nothing, and not without ffmpeg', async () => {
    await expect(exported({ format: 'mp4', channel: 77 })).rejects.toThrow(NothingToShow)
    expect(findFfmpeg('/nonexistent::/')).toBeUndefined()
    const path = process.env['PATH']
    process.env['PATH'] = '/nonexistent'
    try {
      await expect(exported({ format: 'mp4' })).rejects.toThrow(FfmpegMissing)
    } finally {
      process.env['PATH'] = path
    }
  })

  test('ends ffmpeg when nobody wants more', async () => {
    const stream = await openExport(made.entry, made.grant.key, { format: 'mp4', channel: 4 })
    for await (const piece of stream) {
      expect(piece.length).toBeGreaterThan(0)
      break
    }
    expect(stream.destroyed).toBe(true)
  })
})

describe('html', () => {
  test('holds nothing of the session but as base64, and its policy allows its own scripts only', async () => {
    const page = (await exported({ format: 'html' })).toString()
    // Not matchers: a failure would print the page.
    expect(page.includes('owned')).toBe(false)
    expect(
      page.includes(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src`),
    ).toBe(true)
    expect(page.split('<script>')).toHaveLength(3)
    expect(page.split("'sha256-")).toHaveLength(3)
    const markup = page.replace(/<(script|style)[\s\S]*?<\/\1>/g, '')
    expect(markup.match(/ (src|href)=/g)).toBeNull()
  })
})

describeWithPeers('a browser', ['chromium'], () => {
  async function shown(hash: string, path: string): Promise<string> {
    const profile = mkdtempSync(join(folder, 'profile-'))
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=60000', '--dump-dom']
    const page = await run(findProgram('chromium'), [
      ...flags,
      `--user-data-dir=${profile}`,
      '--host-resolver-rules=MAP * ~NOTFOUND',
      `file://${path}${hash}`,
    ])
    return page.stdout
  }

  test('shows the page offline, at the second that the address names', { timeout: 300_000 }, async () => {
    const path = await file({ format: 'html', channel: 4 })
    const dom = await shown('#t=63', path)
    expect(dom).toContain('<title>Session 01JD0000000000000000000001</title>')
    const screen = /<div class="xterm-rows"[\s\S]*?<\/section>/.exec(dom)?.[0].replace(/<[^>]*>/g, '') ?? ''
    // Four screens a second from the third second on: after 63 s it is the 240th.
    expect(screen).toContain('turn 239')
    expect(dom).toContain('01:03 / 02:03')
    expect(dom).toMatch(/<button>00:00 {2}command {2}&lt;\/script&gt;/)
    expect(dom).not.toContain('<img')
    const other = await shown('#t=1', await file({ format: 'html', channel: 3 }))
    expect(other).toContain('begin')
    expect(other).not.toContain('<img')
  })
})
