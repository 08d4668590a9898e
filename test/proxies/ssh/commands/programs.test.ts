/** The command lines read from real shells and programs on a real terminal. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { describeWithPeers } from '../../../peers/program.ts'
import { Desk, read, type TypingOptions, type TypingStep, told } from './support/typing.ts'

vi.setConfig({ testTimeout: 60_000 })
const desk = new Desk()
afterAll(() => desk.clean())

const BASH = ['bash', '--norc', '--noprofile', '-i'] as const
const READY = 'ready$ '
const NEXT = '\r\n\x1b[?2004hready$ '

/** Reads the session whole, and again cut into single bytes: the results must be equal. */
function heard(steps: readonly TypingStep[], program: readonly string[], options: TypingOptions = {}) {
  const passed = desk.type(steps, program, options)
  const lines = told(read(passed, options))
  expect(told(read(passed, options, 1))).toEqual(lines)
  return lines
}

describe('bash', () => {
  it('typed, corrected, moved in, completed, recalled and searched', () => {
    const lines = heard(
      [
        [READY, 'echo one\r'],
        [READY, 'ecx\x7fho twx\x7fo é\r'],
        [READY, 'cho three\x01e\x05!\r'],
        [READY, 'gone word\x17\x17echo four\r'],
        [READY, 'touch unique-fi'],
        ['unique-fi', 'le; ls unique\x15touch unique-file\r'],
        [READY, 'ls uniq\t'],
        ['unique-file', '\r'],
        [READY, '\x1b[A\x1b[A\x1b[A\r'],
        [READY, '\x12one'],
        ['one', '\r'],
        [READY, '\x12twzz\x07echo five\r'],
        [READY, '\r'],
        [READY, 'given up\x03'],
        [READY, 'exit\r'],
      ],
      BASH,
      { env: { PATH: '/usr/bin:/bin' } },
    )
    expect(lines).toEqual([
      ['echo one', 'certain'],
      ['echo two é', 'certain'],
      ['echo three!', 'certain'],
      ['echo four', 'certain'],
      ['touch unique-file', 'certain'],
      ['ls unique-file', 'certain'],
      ['echo four', 'certain'],
      ['echo one', expect.stringMatching(/certain|likely/)],
      ['echo five', 'certain'],
      ['exit', 'certain'],
    ])
  })

  it('nothing of what is read without echo, and what was echoed around it', () => {
    const lines = heard(
      [
        [READY, 'read -s x; echo got\r'],
        ['2004l', 'Sup3r'],
        ['', 'Secret\r'],
        [`got${NEXT}`, 'read -s -p "Password: " x\r'],
        ['Password: ', 'hunter2\r'],
        [READY, 'read x\r'],
        ['2004l', 'visible\r'],
        [READY, 'exit\r'],
      ],
      BASH,
    )
    expect(lines).toEqual([
      ['read -s x; echo got', 'certain'],
      ['read -s -p "Password: " x', 'certain'],
      ['read x', 'certain'],
      ['visible', 'uncertain'],
      ['exit', 'certain'],
    ])
  })

  it('lines that go on, pastes of several lines, and a paste without marks', () => {
    const lines = heard(
      [
        [READY, 'for i in 1 2\r'],
        ['> ', 'do echo n$i\r'],
        ['> ', 'done\r'],
        [`n2${NEXT}`, '\x1b[200~echo p1\necho p2\x1b[201~'],
        ['p2', '\r'],
        [`p2${NEXT}`, 'echo q1\recho q2\recho q3\r'],
        [`q3${NEXT}`, 'exit\r'],
      ],
      BASH,
    )
    expect(lines.slice(0, 4)).toEqual([
      ['for i in 1 2', 'certain'],
      ['do echo n$i', 'likely'],
      ['done', 'likely'],
      ['echo p1\necho p2', 'likely'],
    ])
    expect(lines.slice(4).map(([text]) => text)).toEqual(['echo q1', 'echo q2', 'echo q3', 'exit'])
  })

  it('a line that is wider than the terminal, edited in its middle', () => {
    const lines = heard(
      [
        [READY, 'echo 0123456789abcdefghijklmnopqrstuvwxyz'],
        ['xyz', '\x01\x1b[C\x1b[C\x1b[C\x1b[CX\r'],
        [NEXT, `echo ${'y'.repeat(8)}\r`],
        [NEXT, '\x1b[A\x1b[A\r'],
        [NEXT, 'exit\r'],
      ],
      BASH,
      { columns: 20, rows: 6 },
    )
    expect(lines.map(([text]) => text)).toEqual([
      'echoX 0123456789abcdefghijklmnopqrstuvwxyz',
      'echo yyyyyyyy',
      'echoX 0123456789abcdefghijklmnopqrstuvwxyz',
      'exit',
    ])
    expect(new Set(lines.map(([, confidence]) => confidence))).toEqual(new Set(['certain']))
  })

  it('wide and combining characters, at the margin too', () => {
    const text = `echo 日本語${'漢'.repeat(12)} e\u0301 😀`
    const lines = heard(
      [
        [READY, `${text}\r`],
        [READY, 'exit\r'],
      ],
      BASH,
      { columns: 21 },
    )
    expect(lines).toEqual([
      [text, 'certain'],
      ['exit', 'certain'],
    ])
  })

  it('a new size in the middle of a line', () => {
    const lines = heard(
      [
        [READY, 'echo a long line that takes two rows'],
        ['rows', [60, 24]],
        ['rows', ' and more\r'],
        [NEXT, 'exit\r'],
      ],
      BASH,
      { columns: 30 },
    )
    expect(lines).toEqual([
      ['echo a long line that takes two rows and more', 'likely'],
      ['exit', 'certain'],
    ])
  })

  it('a list of completions, and a cleared screen in the middle of a line', () => {
    for (const name of ['alpha1', 'alpha2']) writeFileSync(join(desk.folder, name), '')
    const lines = heard(
      [
        [READY, 'cd\r'],
        [READY, 'ls alp\t'],
        ['ha', '\t\t'],
        ['alpha2', '1\r'],
        [NEXT, 'echo cl\x0ceared\r'],
        [NEXT, 'exit\r'],
      ],
      BASH,
    )
    expect(lines).toEqual([
      ['cd', 'certain'],
      ['ls alpha1', 'certain'],
      ['echo cleared', 'certain'],
      ['exit', 'certain'],
    ])
  })

  it('a prompt of two lines, one with colours, and one that does not look like one', () => {
    const lines = heard(
      [
        [READY, "PS1='\\u at \\h\\n\\[\\e[32m\\]go:\\[\\e[0m\\] '\r"],
        ['go:', 'echo one\r'],
        ['one\r\n', 'echo two\r'],
        ['two\r\n', 'exit\r'],
      ],
      BASH,
    )
    expect(lines.slice(1)).toEqual([
      ['echo one', 'certain'],
      ['echo two', 'certain'],
      ['exit', 'certain'],
    ])
  })
})

describeWithPeers('other shells', ['busybox', 'zsh'], () => {
  it('dash, where the terminal itself echoes', () => {
    const lines = heard(
      [
        [READY, 'echo onx\x7fe\r'],
        [`\r\n${READY}`, 'stty -echo; cat > /dev/null\r'],
        ['\r\n', 'secret\r'],
        ['', '\x04'],
        [READY, 'stty echo\r'],
        [READY, 'exit\r'],
      ],
      ['dash', '-i'],
    )
    expect(lines).toEqual([
      ['echo one', 'certain'],
      ['stty -echo; cat > /dev/null', 'certain'],
      ['exit', 'certain'],
    ])
  })

  it('busybox ash with its own line editor', () => {
    const lines = heard(
      [
        [READY, 'echo 0123456789abcdefghij\r'],
        [READY, 'echo two\r'],
        [READY, '\x1b[A\x1b[A\x7f!'],
        ['!', '\r'],
        [READY, 'exit\r'],
      ],
      ['busybox', 'ash'],
      { columns: 20 },
    )
    expect(lines).toEqual([
      ['echo 0123456789abcdefghij', 'certain'],
      ['echo two', 'certain'],
      ['echo 0123456789abcdefghi!', 'certain'],
      ['exit', 'certain'],
    ])
  })

  it('zsh, with a prompt at the right, a wide line, and lines that go on', () => {
    const env = { PS1: 'ready%# ', RPROMPT: '<right>' }
    const lines = heard(
      [
        ['ready# ', 'echo one\r'],
        ['ready# ', 'echo 0123456789 0123456789 0123456789\r'],
        ['ready# ', 'for i in 1\r'],
        ['for> ', 'do echo n$i; done\r'],
        ['ready# ', '\x1b[A\r'],
        ['ready# ', '\x12ho on'],
        ['', '\r'],
        ['ready# ', 'ech\t\x15echo six\r'],
        ['ready# ', 'exit\r'],
      ],
      ['zsh', '-f', '-i'],
      { columns: 40, env },
    )
    expect(lines.map(([text]) => text)).toEqual([
      'echo one',
      'echo 0123456789 0123456789 0123456789',
      'for i in 1',
      'do echo n$i; done',
      'for i in 1\ndo echo n$i; done',
      'echo one',
      'echo six',
      'exit',
    ])
    expect(lines[0]).toEqual(['echo one', 'certain'])
  })
})

describeWithPeers('programs', ['less', 'python3', 'tmux', 'vim'], () => {
  it("python's prompt, its lines that go on, and what it asks for", () => {
    const lines = heard(
      [
        ['>>> ', 'x = 1\r'],
        ['>>> ', 'for i in range(1):\r'],
        ['... ', '  print("in", i)\r'],
        ['... ', '\r'],
        ['>>> ', 'import getpass; p = getpass.getpass()\r'],
        ['Password: ', 'hunter2\r'],
        ['>>> ', 'n = input("name: ")\r'],
        ['name: ', 'root\r'],
        ['>>> ', 'exit()\r'],
      ],
      ['/usr/bin/python3', '-q'],
    )
    expect(lines).toEqual([
      ['x = 1', 'certain'],
      ['for i in range(1):', 'certain'],
      ['  print("in", i)', 'likely'],
      ['import getpass; p = getpass.getpass()', 'certain'],
      ['n = input("name: ")', 'certain'],
      ['root', 'uncertain'],
      ['exit()', 'certain'],
    ])
  })

  it('vim, less, tmux: nothing of what is typed in them', () => {
    writeFileSync(join(desk.folder, 'text'), 'line\n'.repeat(200))
    const lines = heard(
      [
        [READY, 'vim -u NONE -N text\r'],
        ['line', 'ihello world\r\x1b:q!\r'],
        [READY, 'less text\r'],
        ['line', ' /line\r\r q'],
        [READY, 'tmux -L sallyport-test -f /dev/null new bash --norc\r'],
        ['[0] 0:', 'echo within\r'],
        ['within', 'exit\r'],
        [READY, 'exit\r'],
      ],
      BASH,
      { env: { HISTFILE: '/dev/null' } },
    )
    expect(lines.map(([text]) => text)).toEqual([
      'vim -u NONE -N text',
      'less text',
      'tmux -L sallyport-test -f /dev/null new bash --norc',
      'exit',
    ])
  })

  it('a pager and an editor without the alternate screen: nothing is made up', () => {
    writeFileSync(join(desk.folder, 'text'), 'line\n'.repeat(200))
    const lines = heard(
      [
        [READY, 'cd; more text\r'],
        ['More', ' '],
        ['More', '\r'],
        ['More', 'q'],
        [READY, 'TERM=vt100 vim -u NONE -N text\r'],
        ['line', 'ihello world\r\x1b:q!\r'],
        [READY, 'exit\r'],
      ],
      BASH,
    )
    expect(lines.map(([text]) => text)).toEqual(['cd; more text', 'TERM=vt100 vim -u NONE -N text', 'exit'])
  })
})
