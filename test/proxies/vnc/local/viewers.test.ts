/** The same screens, in real viewers. */
import { createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { PALETTE } from '../../../../proxies/desktop/screens/palette.ts'
import type { Size } from '../../../../proxies/desktop/screens/screen.ts'
import { TargetList } from '../../../../proxies/desktop/screens/targets.ts'
import { ClientMessageReader } from '../../../../proxies/vnc/codec/client-messages.ts'
import { RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'
import { encodeServerInit } from '../../../../proxies/vnc/codec/server-init.ts'
import { LocalDisplay } from '../../../../proxies/vnc/local/display.ts'
import { run } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { type Picture, SCREEN_PEERS, type Screen, shows, startScreen } from '../../../peers/screen.ts'
import { GVNC_PEERS, gvncCapture, TIGER_VIEWER_PEERS, tigerViewer } from '../../../peers/vnc/viewers.ts'
import { readText, shownText } from '../../desktop/screens/reading.ts'

const SIZE = { width: 640, height: 480 }
const DISPLAY = { width: 800, height: 600 }
const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const entries = Array.from({ length: 300 }, (_, n) => ({
  target: `root@local:web-${n}:vnc`,
  description: `Desk ${n}`,
}))

/** Starts a server without security that shows the list to every viewer (RFC 6143 section 7.1 to 7.3). */
async function serve(size: Size = SIZE, mayResize = true) {
  let onChosen: (target: string) => void
  const chosen = new Promise<string>((resolve) => (onChosen = resolve))
  const server = createServer((socket: Socket) => {
    const display = new LocalDisplay({
      stream: { write: (bytes) => socket.write(bytes), congested: false },
      size,
      format: RGB888,
      mayResize,
    })
    const reader = new ClientMessageReader((message) => display.message(message))
    // Version, the security type, ClientInit: then the messages.
    const waiting = [12, 1, 1]
    const answers = [
      Buffer.of(1, 1),
      Buffer.alloc(4),
      encodeServerInit({ ...size, format: RGB888, name: 'Sallyport' }),
    ]
    let pending = Buffer.alloc(0)
    socket.write('RFB 003.008\n')
    socket.on('error', () => {})
    socket.on('close', () => display.close())
    socket.on('data', (data) => {
      pending = Buffer.concat([pending, data])
      while (waiting.length > 0 && pending.length >= waiting[0]!) {
        pending = pending.subarray(waiting.shift()!)
        socket.write(answers.shift()!)
      }
      if (waiting.length > 0) return
      reader.feed(pending)
      pending = Buffer.alloc(0)
    })
    const list = new TargetList({ bastion: 'Sallyport', user: 'alice', targets: entries, total: 300 }, size)
    display.show(list, (outcome) => onChosen(outcome === 'left' ? outcome : outcome.choice.target))
    closing.push(() => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close())
  return { port: (server.address() as { port: number }).port, chosen }
}

/** Reads the text of a picture: its pixels as indices of the palette's nearest colours. */
function textOf({ width, height, rgb }: Picture, scale = 1): string[] {
  const places = new Map<number, number>()
  const nearest = (colour: number): number => {
    const known = places.get(colour)
    if (known !== undefined) return known
    const distance = (place: number) =>
      [16, 8, 0].reduce(
        (sum, shift, part) => sum + Math.abs(((colour >> shift) & 255) - PALETTE[3 * place + part]!),
        0,
      )
    const all = Array.from({ length: PALETTE.length / 3 }, (_, place) => place)
    const place = all.reduce((best, one) => (distance(one) < distance(best) ? one : best))
    places.set(colour, place)
    return place
  }
  const pixels = Uint8Array.from({ length: width * height }, (_, at) => nearest(rgb.readUIntBE(3 * at, 3)))
  return readText({ width, height, pixels }, scale).map(({ text }) => text)
}

async function screen(): Promise<Screen> {
  const started = await startScreen(DISPLAY.width, DISPLAY.height)
  closing.push(() => started.stop())
  return started
}

const has = (text: string, scale?: number) => (picture: Picture) => textOf(picture, scale).includes(text)
const xdotool = (display: string, ...args: string[]) =>
  run(findProgram('xdotool'), args, { env: { ...process.env, DISPLAY: display } })

describeWithPeers("TigerVNC's viewer", [...SCREEN_PEERS, ...TIGER_VIEWER_PEERS, 'xdotool'], () => {
  test.each([
    ['all colours', []],
    ['eight colours', ['-LowColourLevel=0', '-FullColour=0']],
  ])('shows the list, is typed into and clicked at, with %s', async (_, args) => {
    const { display } = await screen()
    const { port, chosen } = await serve()
    const viewer = await tigerViewer({ display } as Screen, { port, types: ['None'], args })
    closing.push(() => viewer.stop())
    await shows(display, has('root@local:web-3:vnc'))
    // There is no window manager that would set the focus.
    await xdotool(
      display,
      'search',
      '--name',
      'TigerVNC',
      'windowfocus',
      'mousemove',
      '300',
      '300',
      'click',
      '1',
    )
    await xdotool(display, 'type', 'web-12')
    const found = await shows(display, has('1-11 of 11 found among 300 targets'))
    expect(textOf(found)).toEqual(expect.arrayContaining(['web-12', 'root@local:web-129:vnc', 'Desk 129']))
    await xdotool(display, 'key', 'Down', 'Return')
    await expect(chosen).resolves.toBe('root@local:web-120:vnc')
  })

  test('asks for the size of its window, and gets it', async () => {
    const { display } = await screen()
    const { port } = await serve()
    const args = ['-RemoteResize=1', '-DesktopSize', '720x560']
    const viewer = await tigerViewer({ display } as Screen, { port, types: ['None'], args })
    closing.push(() => viewer.stop())
    const lines = (texts: readonly string[]) =>
      Number(texts.map((text) => /^1-(\d+) of 300 targets$/.exec(text)?.[1]).find(Boolean) ?? 0)
    const list = new TargetList({ bastion: 'Sallyport', user: 'alice', targets: entries, total: 300 }, SIZE)
    const before = lines(shownText(list))
    expect(before).toBeGreaterThan(10)
    await shows(display, (picture) => lines(textOf(picture)) > before + 2)
  })
})

describeWithPeers('gtk-vnc', [...GVNC_PEERS], () => {
  test('shows the list', async () => {
    const { port } = await serve()
    const { picture, said } = await gvncCapture({ port })
    expect(picture, said).toBeDefined()
    expect(textOf(picture!)).toContain('root@local:web-3:vnc')
  })
})
