/** Attack case 46: a recording's content does not affect the terminal of its viewer. tmux is the terminal. */
import { Buffer } from 'node:buffer'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { FRAME, type Frame } from '../../../../recordings/container/frames.ts'
import { play } from '../../../../recordings/show/play.ts'
import { run } from '../../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../../peers/program.ts'
import { makeRoot, removeRoots } from '../../support.ts'

afterAll(removeRoots)

/**
 * Queries that a terminal answers as if its user had typed, a title, the clipboard, mouse and paste modes.
 */
const HOSTILE = [
  '\x1b[c\x1b[>c\x1b[6n\x1b[5n\x1b[21t\x1b[?2004$p\x1bP+q544e\x1b\\\x1bP$qm\x1b\\\x1b]10;?\x07',
  '\x1b]2;title-of-the-attacker\x07\x1b]52;c;Y2xpcGJvYXJk\x07\x1b[?1000h\x1b[?2004h',
  '\x1b[32mharmless text\x1b[m\r\n',
].join('')

async function* recording(): AsyncGenerator<Frame> {
  const terminal = { type: 'xterm', columns: 80, rows: 24 }
  const open = Buffer.from(JSON.stringify({ kind: 'shell', subprotocol: 'SSH_SHELL', terminal }))
  yield { type: FRAME.channelOpen, channel: 0, time: 0, payload: open }
  yield { type: FRAME.output, channel: 0, time: 0, payload: Buffer.from(HOSTILE) }
}

/**
 * Prints the text in a fresh terminal, whose input then goes to `cat -v`. Returns the screen, and the input.
 */
async function shownInTerminal(text: string): Promise<{ screen: string; title: string; mouse: string }> {
  const folder = makeRoot()
  const tmux = (...args: string[]) =>
    run(findProgram('tmux'), ['-S', join(folder, 'socket'), '-f', '/dev/null', ...args])
  writeFileSync(join(folder, 'text'), text)
  await tmux(
    'new-session',
    '-d',
    '-x',
    '80',
    '-y',
    '24',
    `stty -echo; cat ${join(folder, 'text')}; echo shown; exec cat -v`,
  )
  try {
    let screen = ''
    for (let tries = 0; tries < 100 && !screen.includes('shown'); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      screen = (await tmux('capture-pane', '-p')).stdout
    }
    // The answers are in the terminal's line buffer: an end of line sends them to cat.
    await tmux('send-keys', 'Enter')
    await new Promise((resolve) => setTimeout(resolve, 300))
    screen = (await tmux('capture-pane', '-p')).stdout
    const said = await tmux('display-message', '-p', '#{pane_title} #{mouse_standard_flag}')
    const [title = '', mouse = ''] = said.stdout.trim().split(' ')
    return { screen, title, mouse }
  } finally {
    await tmux('kill-server')
  }
}

describeWithPeers('the terminal of whoever replays a recording', ['tmux'], () => {
  test('is fooled by the raw bytes: the attack is one', async () => {
    const { screen, title, mouse } = await shownInTerminal(HOSTILE)
    expect(screen).toContain('^[[?1;2')
    expect(title).toBe('title-of-the-attacker')
    expect(mouse).toBe('1')
  })

  test('shows the text of a replay and nothing more', async () => {
    let replayed = ''
    const write = async (text: string) => {
      replayed += text
    }
    await play(recording(), { channel: 0, speed: 1, write, sleep: async () => undefined })
    const { screen, title, mouse } = await shownInTerminal(replayed)
    expect(
      screen
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ).toEqual(['harmless text', 'shown'])
    expect(title).not.toBe('title-of-the-attacker')
    expect(mouse).toBe('0')
  })
})
