/** The bastion's own screens in real RDP clients, and text typed there on keyboards of several countries. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  type FormOutcome,
  type FormScreen,
  signInForm,
  signInOf,
} from '../../../../proxies/desktop/screens/form.ts'
import type { Screen as OwnScreen, Size } from '../../../../proxies/desktop/screens/screen.ts'
import type { ClientCore } from '../../../../proxies/rdp/codec/client-data.ts'
import { FrontConnection } from '../../../../proxies/rdp/connection/front-connection.ts'
import { LocalDisplay } from '../../../../proxies/rdp/local/display.ts'
import { type Daemon, run, startDaemon } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { type Picture, SCREEN_PEERS, type Screen, shows, startScreen } from '../../../peers/screen.ts'
import { until } from '../../../until.ts'
import { readText } from '../../desktop/screens/reading.ts'
import { openDoor } from '../connection/listener.ts'
import { pictureOfScreen } from './picture.ts'

const PASSWORD = 'Front-Pass1'
const LOGIN = 'alice:root@srv1'
const DISPLAY: Size = { width: 800, height: 600 }
const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

interface Visit {
  core: ClientCore
  display: LocalDisplay
}

/** Serves a single screen to every client. */
async function serve(show: (display: LocalDisplay) => void) {
  const visits: Visit[] = []
  const door = await openDoor({
    serve: (tls, requestedProtocols) => {
      let core: ClientCore | undefined
      let display: LocalDisplay | undefined
      const front = new FrontConnection({
        requestedProtocols,
        write: (bytes) => tls.write(bytes),
        visitor: {
          settings: (data) => {
            core = data.core
          },
          logon: () => {
            display = new LocalDisplay({
              client: {
                stream: { congested: false },
                settings: { core: core! },
                user: front.user,
                isLicensed: false,
                license: () => front.licensed(),
                sendIo: (data) => front.sendIo(data),
                sendFastPath: (pdu) => front.sendFastPath(pdu),
              },
            })
            visits.push({ core: core!, display })
            show(display)
          },
          license: () => {},
          io: (data) => display?.io(data),
          fastPath: (pdu) => display?.fastPath(pdu),
          channel: () => {},
          disconnect: () => tls.end(),
        },
      })
      tls.on('data', (chunk: Buffer) => front.receive(chunk))
      tls.on('close', () => display?.close())
    },
  })
  closing.push(() => door.close())
  return { port: door.port, visits }
}

let screen: Screen

const xdotool = async (...words: string[]) => {
  const done = await run(findProgram('xdotool'), words, { env: { ...process.env, DISPLAY: screen.display } })
  if (done.code !== 0) throw new Error(`xdotool ${words.join(' ')}: ${done.stderr}`)
}

interface Client {
  port: number
  size?: Size
  args?: readonly string[]
}

function begin(
  program: 'xfreerdp' | 'rdesktop',
  args: readonly string[],
  isThere: () => boolean,
): Promise<Daemon> {
  const home = mkdtempSync(join(tmpdir(), 'sallyport-rdp-'))
  closing.push(() => rmSync(home, { recursive: true, force: true }))
  const env = { PATH: process.env.PATH, HOME: home, DISPLAY: screen.display, LANG: 'C.UTF-8' }
  const command = [findProgram(program), ...args].map((word) => `'${word}'`).join(' ')
  return startDaemon('/bin/sh', ['-c', `echo yes | exec ${command}`], isThere, { env })
}

const CLIENTS = {
  xfreerdp: ({ port, size = DISPLAY, args = [] }: Client, isThere: () => boolean) =>
    begin(
      'xfreerdp',
      [
        ...[`/v:127.0.0.1:${port}`, `/u:${LOGIN}`, `/p:${PASSWORD}`, `/w:${size.width}`, `/h:${size.height}`],
        ...['/cert:ignore', '/sec:tls', '-wallpaper', '-grab-keyboard', ...args],
      ],
      isThere,
    ),
  rdesktop: ({ port, size = DISPLAY, args = [] }: Client, isThere: () => boolean) =>
    begin(
      'rdesktop',
      ['-u', LOGIN, '-p', PASSWORD, '-g', `${size.width}x${size.height}`, ...args, `127.0.0.1:${port}`],
      isThere,
    ),
}

const PEERS = [...SCREEN_PEERS, 'xdotool', 'setxkbmap'] as const

/**
 * Five or six bits of each colour are left at 15 and 16 bits. FreeRDP 2 extends them to eight by `(six << 2)
 * + (six >> 3)`, up to four more than others.
 */
const toleranceOf = (depth: number) => (depth < 24 ? 7 + 4 : 0)

const shown = (own: OwnScreen, depth: number) => (picture: Picture) => {
  const { rgb } = pictureOfScreen(own)
  const tolerance = toleranceOf(depth)
  return (
    rgb.length === picture.rgb.length &&
    rgb.every((part, at) => Math.abs(part - picture.rgb[at]!) <= tolerance)
  )
}

/** A client that shows the sign-in form. */
async function atForm(client: keyof typeof CLIENTS, args: readonly string[], depth = 16) {
  let answered: FormOutcome | undefined
  let form: FormScreen | undefined
  const { port, visits } = await serve((display) => {
    form = signInForm({ bastion: 'Sallyport', login: LOGIN }, display.size)
    display.show(form, (outcome) => {
      answered = outcome
    })
  })
  const daemon = await CLIENTS[client]({ port, args }, () => visits.length > 0)
  closing.push(() => daemon.stop())
  await until('the form', () => form)
  await shows(screen.display, shown(form!, depth))
  const answers = async () => {
    const outcome = await until('the answers', () => answered)
    return outcome === 'cancelled' ? outcome : signInOf(outcome.answers)
  }
  return { visit: visits[0]!, form: form!, answers }
}

/** Returns the text typed into a form, ended by Enter, with one client and keyboard layout. */
async function typedAt(
  client: keyof typeof CLIENTS,
  { layout, args, depth }: { layout: string; args: readonly string[]; depth: number },
  typing: readonly (readonly string[])[],
) {
  const set = await run(findProgram('setxkbmap'), ['-display', screen.display, layout])
  if (set.code !== 0) throw new Error(`setxkbmap ${layout}: ${set.stderr}`)
  const { visit, answers } = await atForm(client, args, depth)
  await xdotool('mousemove', '400', '20', 'click', '1')
  for (const words of typing) await xdotool(...words)
  await xdotool('key', 'Return')
  return { answers: await answers(), layout: visit.core.keyboardLayout, depth: visit.core.colourDepth }
}

const withScreen = () => {
  beforeAll(async () => {
    screen = await startScreen(DISPLAY.width, DISPLAY.height)
  })
  afterAll(() => screen.stop())
}

const type = (text: string) => ['type', '--delay', '4', text]
const press = (...keys: string[]) => ['key', '--delay', '4', ...keys]
/** Clients that ask for 8 bits get 16. */
const given = (wished: number) => Math.max(15, wished === 8 ? 16 : wished)

describeWithPeers("FreeRDP's client", [...PEERS, 'xfreerdp'], () => {
  withScreen()

  // xdotool presses AltGr keys that X11's layouts have and Windows' lack; those keys are pressed by position.
  test.each([
    ['us', 0x409, 15, '+fast-path', `aZ09~!@#$%^&*()_+{}|:"<>?\`-=[]\\;',./`, ['34'], '['],
    [
      'gb',
      0x809,
      24,
      '+fast-path',
      `aZ09!"£$%^&*()_+:?\`-=#;',./`,
      ['34', '35', '94', 'shift+94', 'shift+48'],
      '[]\\|@',
    ],
    [
      'fr',
      0x40c,
      32,
      '+fast-path',
      `aqzwAQZWmM&é"'(-è_çà)=123456789ù*,;:!?./§#{[|\\@]}€`,
      ['35', '94', 'shift+20', '34', '26', 'shift+34', 'shift+31', '34', '65', '34', '56'],
      '$<°êÏ^^b',
    ],
    [
      'de',
      0x407,
      32,
      '-fast-path',
      `zyZYäöüÄÖÜß!"§$%&/()=?{[]}\\@€~|µ+*#',.-;:_<>²³`,
      ['49', '26', '21', 'shift+38'],
      'êÁ',
    ],
    [
      'es',
      0x40a,
      8,
      '-fast-path',
      `qñÑçÇº!"·$%&/()=?'|@#€+*,.-;:_`,
      ['34', '38', '48', '31', 'ISO_Level3_Shift+34'],
      'àí[',
    ],
  ])(
    'a keyboard of %s (%d), a desktop of %d bits, %s',
    async (layout, number, depth, path, text, keys, more) => {
      const args = [`/kbd:0x${number.toString(16)}`, `/bpp:${depth}`, path]
      const typing = [type(text), press(...keys)]
      const typed = await typedAt('xfreerdp', { layout, args, depth: given(depth) }, typing)
      expect(typed).toEqual({ answers: { login: LOGIN, password: text + more }, layout: number, depth })
    },
  )
})

describeWithPeers('rdesktop', [...PEERS, 'rdesktop'], () => {
  withScreen()

  test.each([
    ['de', 0x407, 15, `zyZYäöüÄÖÜß!"§$%&/()=?{[]}\\@€~|+*#',.-;:_<>`],
    ['fr', 0x40c, 32, `aqzwAQZWmM&é"'(-è_çà)=1234567890ù*,;:!?./§#{[|\\@]}`],
    ['us', 0x409, 8, `aZ09~!@#$%^&*()_+{}|:"<>?\`-=[]\\;',./`],
  ])('a keyboard of %s (%d), a desktop of %d bits', async (layout, number, depth, text) => {
    const args = ['-k', layout === 'us' ? 'en-us' : layout, '-a', `${depth}`]
    const typed = await typedAt('rdesktop', { layout, args, depth: given(depth) }, [type(text)])
    expect(typed).toEqual({ answers: { login: LOGIN, password: text }, layout: number, depth })
  })

  test('the mouse alone chooses what is typed into, and the button', async () => {
    const { form, answers } = await atForm('rdesktop', ['-k', 'en-us', '-a', '24'], 24)
    const found = readText(form.paint({ left: 0, top: 0, ...DISPLAY }), 1)
    const click = (text: string, below: number) => {
      const { left, top } = found.filter((one) => one.text === text).at(-1)!
      return xdotool('mousemove', `${left + 4}`, `${top + below}`, 'click', '1')
    }
    await click('User', 22)
    await xdotool(...press('BackSpace', 'BackSpace', 'BackSpace', 'BackSpace'))
    await click('Password', 22)
    await xdotool(...type('Pw'))
    await click('Sign in', 4)
    expect(await answers()).toEqual({ login: LOGIN.slice(0, -4), password: 'Pw' })
  })
})
