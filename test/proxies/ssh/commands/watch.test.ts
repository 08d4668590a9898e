/** Return: when it is held, for how long, and the events of the lines. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CommandLog } from '../../../../proxies/ssh/commands/log.ts'
import { ScriptWatch } from '../../../../proxies/ssh/commands/script.ts'
import {
  type Command,
  CommandWatch,
  HIDDEN_MS,
  HOLD_BURST_MS,
  HOLD_MS,
  type Question,
  UNECHOED_MS,
} from '../../../../proxies/ssh/commands/watch.ts'
import type { EventFields } from '../../../../src/audit/events/fields.ts'
import { CommandRules } from '../../../../src/model/command-rules.ts'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

/** A target that replies only on command. Held keys are offered again, as in the relay. */
function typing(...rules: string[]) {
  const commands: Command[] = []
  let queue = Buffer.alloc(0)
  let passed = ''
  const asked: {
    question: Question
    answer: (isAccepted: boolean, message: string) => void
    isOpen: boolean
  }[] = []
  const drain = () => {
    while (queue.length > 0) {
      const count = watch.admit(queue)
      if (count === 0) return
      passed += queue.subarray(0, count).toString()
      const part = queue.subarray(0, count)
      queue = queue.subarray(count)
      watch.fromClient(part)
    }
  }
  const watch = new CommandWatch({
    columns: 80,
    rows: 24,
    rules: new CommandRules(rules),
    now: () => Date.now(),
    onCommand: (command) => void commands.push(command),
    onAdmit: drain,
    ask: (question, answer) => {
      const one = { question, answer, isOpen: true }
      asked.push(one)
      return () => {
        one.isOpen = false
      }
    },
    onAnswered: (isAccepted) => {
      queue = queue.subarray(0, isAccepted ? 1 : 0)
      drain()
    },
  })
  return {
    commands,
    asked,
    watch,
    type: (text: string) => {
      queue = Buffer.concat([queue, Buffer.from(text)])
      drain()
    },
    print: (text: string) => watch.fromTarget(Buffer.from(text)),
    /** Returns the bytes sent to the target since the last call. */
    passed: () => {
      const text = passed
      passed = ''
      return text
    },
  }
}

describe('Return', () => {
  test('is not held where no rule kills', () => {
    const { type, passed } = typing('notify x')
    type('ls\rpwd\r')
    expect(passed()).toBe('ls\rpwd\r')
  })

  test('goes on at once when the echo is there', () => {
    const { type, print, passed } = typing('kill rm')
    print('$ ')
    type('l')
    print('l')
    type('s')
    print('s')
    type('\r')
    expect(passed()).toBe('ls\r')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('waits for the echo, and no longer', () => {
    const { type, print, passed } = typing('kill rm')
    print('$ ')
    type('ls\r')
    expect(passed()).toBe('ls')
    print('l')
    expect(passed()).toBe('')
    print('s')
    expect(passed()).toBe('\r')
  })

  test('waits a bounded time where nothing is echoed', () => {
    const { type, print, passed } = typing('kill rm')
    print('Password: ')
    type('secret\r')
    expect(passed()).toBe('secret')
    vi.advanceTimersByTime(HOLD_MS - 20)
    expect(passed()).toBe('')
    vi.advanceTimersByTime(40)
    expect(passed()).toBe('\r')
    // The timer for the event, in case no output ever comes.
    expect(vi.getTimerCount()).toBe(1)
  })

  test('is not held for ever by input without echo: then it is judged later', () => {
    const { type, print, passed } = typing('kill rm')
    print('Password: ')
    const lines = 200
    type('secret\r'.repeat(lines))
    vi.advanceTimersByTime(2 * HOLD_BURST_MS + 1000)
    expect(passed()).toBe('secret\r'.repeat(lines))
  })

  test('of each line of a paste waits for its own echo', () => {
    const { type, print, passed, commands } = typing('kill rm')
    print('$ ')
    type('ls\rrm x\rid\r')
    print('ls')
    expect(passed()).toBe('ls\r')
    print('\r\nfile\r\n$ ')
    expect(passed()).toBe('rm x')
    print('rm x')
    expect(passed()).toBe('')
    expect(commands).toEqual([
      { line: 'ls', confidence: 'certain' },
      { line: 'rm x', confidence: 'likely', rule: 'kill rm', kills: 'before' },
    ])
  })

  test('of an edited line waits until the screen is quiet', () => {
    const { type, print, passed, commands } = typing('kill rm')
    print('$ ')
    type('\x1b[A\r')
    print('rm')
    expect(passed()).toBe('\x1b[A')
    print(' -rf x')
    vi.advanceTimersByTime(100)
    expect(passed()).toBe('')
    expect(commands).toEqual([{ line: 'rm -rf x', confidence: 'likely', rule: 'kill rm', kills: 'before' }])
  })

  test('in a search of the history is judged by what was found', () => {
    const { type, print, commands } = typing('kill ^rm')
    print('$ ')
    type('\x12rm')
    print("\r(reverse-i-search)`': \b\b\br': rm x\x1b[4D\x1b[2K\r(reverse-i-search)`rm': rm x\x1b[4D")
    vi.advanceTimersByTime(HOLD_MS)
    type('\r')
    expect(commands).toMatchObject([{ line: 'rm x', kills: 'before' }])
  })
})

describe('a line', () => {
  test('that was not shown in time is judged by its keys, and not told', () => {
    const { type, passed, print, commands } = typing('kill rm')
    print('$ ')
    type('rX\x7fm x\r')
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe('rX\x7fm x')
    expect(commands).toEqual([
      {
        line: '',
        confidence: 'unread',
        reason: 'it was judged by its keys',
        rule: 'kill rm',
        kills: 'before',
      },
    ])
  })

  test('out of the history that was not shown in time is judged when the target takes it', () => {
    const { type, print, commands } = typing('kill rm')
    print('$ ')
    type('\x1b[A')
    print('\x07')
    type('\x1b[A\r')
    vi.advanceTimersByTime(HOLD_MS + 20)
    print('rm x\r\n')
    expect(commands).toEqual([{ line: 'rm x', confidence: 'certain', rule: 'kill rm', kills: 'after' }])
  })

  test('is judged together with those that it goes on with', () => {
    const { type, print, commands } = typing('notify rm -rf /')
    for (const [prompt, line] of [
      ['$ ', 'rm \\'],
      ['> ', '-rf \\'],
      ['> ', '/'],
      ['$ ', '-rf /'],
    ]) {
      print(prompt!)
      type(`${line}\r`)
      print(`${line}\r\n`)
    }
    expect(commands.map(({ rule }) => rule)).toEqual([undefined, undefined, 'notify rm -rf /', undefined])
  })

  test('in the alternate screen is neither held nor judged', () => {
    const { type, print, passed, commands } = typing('kill rm')
    print('\x1b[?1049h$ ')
    type('rm x\r')
    print('rm x\r\n')
    expect(passed()).toBe('rm x\r')
    expect(commands).toEqual([])
  })

  test('that is very long is cut after it was judged', () => {
    const { type, print, commands, watch } = typing('notify end$')
    watch.resize(500, 100)
    print('$ ')
    const line = `${'x'.repeat(6000)}end`
    type(`${line}\r`)
    print(`${line}\r\n`)
    expect(commands[0]?.line).toBe(`${'x'.repeat(4095)}…`)
    expect(commands[0]?.rule).toBe('notify end$')
  })
})

describe('a line that is not shown', () => {
  const unread = { line: '', confidence: 'unread' }

  test('and whose Return is not either is told without its text', () => {
    const { type, print, commands } = typing()
    print('$ ')
    type('\x13id\r')
    vi.advanceTimersByTime(UNECHOED_MS - 1)
    expect(commands).toEqual([])
    vi.advanceTimersByTime(1)
    expect(commands).toEqual([{ ...unread, reason: 'it was typed without echo' }])
  })

  test('is told also when another one waits already', () => {
    const { type, print, commands } = typing()
    print('$ ')
    type('id\r')
    vi.advanceTimersByTime(UNECHOED_MS - 1000)
    type('ls\r\r')
    vi.advanceTimersByTime(2 * UNECHOED_MS)
    expect(commands).toHaveLength(2)
    vi.advanceTimersByTime(2 * UNECHOED_MS)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is told at the end at the latest, and once', () => {
    const { type, print, commands, watch } = typing()
    print('$ ')
    type('id\r')
    watch.close()
    vi.advanceTimersByTime(UNECHOED_MS)
    expect(commands).toHaveLength(1)
  })

  test('is not what the command says instead', () => {
    const { type, print, commands } = typing()
    print('$ ')
    type('id\r')
    print('uid=0(root)\r\n$ ')
    type('x')
    expect(commands).toEqual([{ ...unread, reason: 'it was typed without echo' }])
  })

  test('but goes to the next row, is a password, unless it meets a rule', () => {
    const { type, print, commands } = typing('notify rm')
    for (const secret of ['hunter2', 'rm']) {
      print('$ su\r\nPassword: ')
      type(`${secret}\r`)
      print('\r\nroot# ')
      type('ls')
      print('ls')
      type('\r')
      print('\r\n')
    }
    expect(commands.filter(({ line }) => line !== 'ls')).toEqual([
      { ...unread, reason: 'it was typed without echo', rule: 'notify rm' },
    ])
    expect(JSON.stringify(commands)).not.toContain('hunter2')
  })

  test.each([
    ['as it is typed', 'rm x'],
    ['with keys taken back', 'rXX\x7f\x7fm x'],
    ['with keys taken back that have more than one byte', 'rmä\x7f x'],
    ['put together by moving about', 'm x\x01r\x05'],
    ['by arrows', 'mxy\x1b[D\x1b[D\x1b[Dr\x1b[C \x1b[C\x1b[3~\x02\x1b[F'],
    ['after a line was taken away', 'harmless\x15rm x'],
    ['after a word was taken away', 'rm ls\x17x'],
    ['after a walk through the history and back', 'rm x\x1b[A\x1b[B'],
    ['after one that was dropped', '\x1b[A\x15rm x'],
    ['behind the keys that stop a terminal', '\x13rm x'],
    ['with a rest that is taken away', 'rm xyz\x1b[D\x1b[D\x0b'],
  ])('is judged by its keys: %s', (_, keys) => {
    const { type, print, passed, commands } = typing('kill ^rm x?')
    print('$ ')
    type(`${keys}\r`)
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe(keys)
    expect(commands).toMatchObject([{ ...unread, rule: 'kill ^rm x?', kills: 'before' }])
  })

  test('is judged together with the one that it goes on with', () => {
    const { type, print, commands } = typing('kill rm -rf /')
    print('$ ')
    type('rm \\\r')
    vi.advanceTimersByTime(HOLD_MS + UNECHOED_MS)
    type('-rf /\r')
    vi.advanceTimersByTime(HOLD_MS + UNECHOED_MS)
    expect(commands.at(-1)).toMatchObject({ ...unread, kills: 'before' })
  })

  test.each([
    ['the history', '\x1b[A'],
    ['a search', '\x12rm'],
    ['a completion', 'r\t'],
  ])('and comes out of %s ends the session, when nothing is shown for long', (_, keys) => {
    const { type, print, passed, commands, watch } = typing('kill rm')
    print('$ ')
    type(`${keys}\r`)
    vi.advanceTimersByTime(HIDDEN_MS - 100)
    expect(watch.isHolding).toBe(true)
    expect(commands).toEqual([])
    vi.advanceTimersByTime(200)
    expect(passed()).toBe(keys)
    expect(commands).toEqual([{ ...unread, reason: expect.any(String), kills: 'before' }])
  })

  test('for a while goes on when it is shown', () => {
    const { type, print, passed } = typing('kill rm')
    print('$ ')
    type('\x1b[A\r')
    vi.advanceTimersByTime(HIDDEN_MS / 2)
    print('ls')
    vi.advanceTimersByTime(100)
    expect(passed()).toBe('\x1b[A\r')
  })

  test('because its key did nothing is an empty one', () => {
    const { type, print, passed } = typing('kill rm')
    print('$ ')
    type('\x1b[B\x0c\r')
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe('\x1b[B\x0c\r')
  })
})

describe('a line that its keys do not determine', () => {
  test.each([
    ['is kept by an editor over ^Z', 'rm x', '\x1a'],
    ['is kept by an editor over ^\\', 'rm x', '\x1c'],
    ['is typed behind ESC ^', '', '\x1b^rm x'],
    ['is typed behind ESC X', '', '\x1bXrm x'],
    ['is typed in an answer that does not end', '', '\x1b]rm x'],
    ['is typed in an answer', '', '\x1b]rm x\x1b\\'],
    ['is put there by what looks like a report', '', '\x1b[24 c'],
  ])('%s', (_, first, then) => {
    const { type, print, passed, commands } = typing('kill rm')
    print('$ ')
    type(first)
    print(first)
    type(then)
    if (first === '') print('rm x')
    vi.advanceTimersByTime(100)
    passed()
    type('\r')
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe('')
    expect(commands).toMatchObject([{ line: 'rm x', kills: 'before' }])
  })

  test('is an event where no rule kills, though no key of it was seen', () => {
    const { type, print, commands } = typing()
    print('$ ')
    type('\x1b]id\x1b\\')
    print('id')
    type('\r')
    print('\r\n')
    expect(commands).toEqual([{ line: 'id', confidence: 'likely' }])
  })

  test('is none where a terminal has answered, and nothing stands behind the prompt', () => {
    const { type, print, passed, commands } = typing('kill rm')
    print('$ ')
    const answers = '\x1b]11;rgb:00/00/00\x1b\\\x1b[?1;2c\x1b[?2026;2$y\x1b[I\r'
    type(answers)
    print('\r\n$ ')
    expect(passed()).toBe(answers)
    vi.advanceTimersByTime(UNECHOED_MS)
    expect(commands).toEqual([])
  })

  test('at a password prompt goes on, and is an event without a text', () => {
    const { type, print, passed, commands } = typing('kill rm')
    print('$ su\r\nPassword: ')
    type('hun\x1b[D\tter2\r')
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe('hun\x1b[D\tter2\r')
    print('\r\n# ')
    type('ls')
    expect(commands).toEqual([{ line: '', confidence: 'unread', reason: expect.any(String) }])
  })
})

describe('a line for a program without a line editor', () => {
  test.each([
    ['behind a comment that an editor would take away', 'rm x #\x01\x0b', '\r'],
    ['with the end of its input instead of Return', 'rm x', '\x04\x04'],
    ['handed on with ^D, and not taken back', 'rm\x04\x15 x', '\r'],
    ['with the end of its input in what looks like a paste', '\x1b[200~rm x', '\x04\x04'],
    ['of a paste that nobody asked for in earnest', '\x1b[200~\rrm x', '\r'],
  ])('is judged: %s', (_, keys, end) => {
    const { type, print, passed, commands } = typing('kill rm x?')
    print(keys.includes('200~') ? '\x1b[?2004h$ ' : '$ ')
    type(keys + end)
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).not.toContain('rm x\r')
    expect(passed()).not.toContain(end)
    expect(commands).toMatchObject([{ line: '', confidence: 'unread', rule: 'kill rm x?', kills: 'before' }])
  })

  test('that is run by the end of its input is an event', () => {
    const { type, print, commands } = typing()
    print('$ ')
    type('id')
    print('id')
    type('\x04\x04')
    print('\r\n')
    expect(commands).toMatchObject([{ line: 'id' }])
  })

  test('that an editor would have emptied is an event where nothing is shown', () => {
    const { type, commands, watch } = typing()
    type('id #\x01\x0b\r')
    watch.close()
    expect(commands).toEqual([{ line: '', confidence: 'unread', reason: 'it was typed without echo' }])
  })

  test('is not judged so where an editor shows what it did', () => {
    const { type, print, passed, commands } = typing('kill rm')
    print('\x1b[?2004h$ ')
    type('rm x')
    print('rm x')
    type('\x01\x0b')
    print('\r$ \x1b[K')
    vi.advanceTimersByTime(100)
    type('\r')
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe('rm x\x01\x0b\r')
    expect(commands).toEqual([])
  })
})

describe('a terminal in which no line can be read', () => {
  test.each([
    [1, 4],
    [19, 24],
    [80, 1],
    [513, 24],
  ])('of %d × %d ends the session over a line that its keys do not tell', (columns, rows) => {
    const { type, print, commands, watch } = typing('kill rm')
    watch.resize(columns, rows)
    print('$ ')
    type('ls')
    print('ls')
    type('\r')
    print('\r\n$ ')
    type('\x1b[A')
    print('ls')
    watch.resize(80, 24)
    type('\r')
    vi.advanceTimersByTime(HOLD_MS)
    expect(commands.at(-1)).toMatchObject({ line: '', confidence: 'unread', kills: 'before' })
    expect(commands.at(-1)).not.toHaveProperty('rule')
  })

  test.each([
    [0, 0],
    [20, 2],
    [512, 65_535],
  ])('is not one of %d × %d', (columns, rows) => {
    const { type, print, commands, watch } = typing('kill forbidden')
    watch.resize(columns, rows)
    print('$ ')
    type('\x1b[A')
    print('ls -la')
    vi.advanceTimersByTime(HOLD_MS)
    type('\r')
    print('\r\n')
    expect(commands).toMatchObject([{ line: 'ls -la' }])
  })
})

describe('a key that is Return too', () => {
  test.each([
    ['^O, which gets the next line of the history', '\x0f'],
    ['ESC CR, of an editor like vi', '\x1b\r'],
    ['^J', '\n'],
    ['Enter of a keypad', '\x1bOM'],
    ['Return as kitty tells it', '\x1b[13u'],
    ['Return with Control as kitty tells it', '\x1b[13;5u'],
    ['Return as xterm tells it', '\x1b[27;5;13~'],
    ['ESC a, with which zsh takes a line and keeps it', '\x1ba'],
  ])('%s', (_, key) => {
    const { type, print, passed, commands } = typing('kill rm')
    print('$ ')
    type('rm x')
    print('rm x')
    type(key)
    vi.advanceTimersByTime(HOLD_MS + 20)
    expect(passed()).toBe(`rm x${key.slice(0, -1)}`)
    expect(commands).toMatchObject([{ line: 'rm x', kills: 'before' }])
  })
})

test('the rule that kills over lines put together goes before one that notifies of the last alone', () => {
  const { type, print, commands } = typing('notify /', 'kill rm -rf /')
  print('$ ')
  type('rm \\')
  print('rm \\')
  type('\r')
  print('\r\n> ')
  type('-rf /')
  print('-rf /')
  type('\r')
  expect(commands.at(-1)).toMatchObject({ line: '-rf /', rule: 'kill rm -rf /', kills: 'before' })
})

describe('the input of a shell without a terminal', () => {
  const judged = (rules: string[], ...pieces: string[]) => {
    const hits: [string, boolean][] = []
    const script = new ScriptWatch(new CommandRules(rules), (rule, kills) => hits.push([rule, kills]))
    for (const piece of pieces) script.fromClient(Buffer.from(piece))
    return hits
  }

  test('is judged line by line, also before the last line has its end', () => {
    expect(judged(['notify a'], 'xa\nb\n', 'a', 'a\n')).toEqual([
      ['notify a', false],
      ['notify a', false],
    ])
    expect(judged(['kill forbidden'], 'echo for', 'bidden')).toEqual([['kill forbidden', true]])
    expect(judged(['kill ^a$'], 'b\na\nb\na\n')).toEqual([['kill ^a$', true]])
    expect(judged([], 'a\n')).toEqual([])
  })
})

describe('the events of a session', () => {
  function log(rules: string[] = []) {
    const told: { code: string; fields: EventFields }[] = []
    const killed: string[] = []
    const commands = new CommandLog({
      rules,
      now: () => Date.now(),
      tell: (code, fields) => void told.push({ code, fields }),
      kill: (reason) => void killed.push(reason),
    })
    return { commands, told, killed }
  }
  const line = (text: string, more: Partial<Command> = {}): Command => ({
    line: text,
    confidence: 'certain',
    ...more,
  })

  test('are bounded, and what is left out is counted', () => {
    const { commands, told } = log()
    for (let n = 0; n < 1000; n++) commands.heard('SSH_SHELL', line(`l${n}`))
    expect(told).toHaveLength(50)
    vi.advanceTimersByTime(1000)
    commands.heard('SSH_SHELL', line('later'))
    expect(told.slice(50).map(({ fields }) => fields)).toEqual([
      { reason: '950 command lines were left out: too many at a time' },
      { subprotocol: 'SSH_SHELL', object: 'later', confidence: 'certain' },
    ])
  })

  test('a line with a rule is not crowded out by others, and one left out is a warning', () => {
    const { commands, told } = log()
    for (let n = 0; n < 100; n++) commands.heard('SSH_SHELL', line('x'))
    commands.heard('SSH_SHELL', line('sudo', { rule: 'notify sudo' }))
    expect(told.at(-1)?.fields).toMatchObject({ object: 'sudo', rule: 'notify sudo' })
    for (let n = 0; n < 60; n++) commands.heard('SSH_SHELL', line('sudo', { rule: 'notify sudo' }))
    commands.flush()
    expect(told.at(-1)?.fields).toMatchObject({
      result: 'lost',
      reason: expect.stringContaining('met a rule'),
    })
  })

  test('a line that cannot be read ends the session with a reason that says so', () => {
    const { commands, told, killed } = log(['kill rm'])
    commands.heard('SSH_SHELL', { line: '', confidence: 'unread', reason: 'why', kills: 'before' })
    expect(told[0]?.fields).toEqual({
      subprotocol: 'SSH_SHELL',
      confidence: 'unread',
      reason: 'why',
      result: 'denied',
    })
    expect(killed).toEqual(['a command line cannot be read, and a rule for commands has to be asked of it'])
  })

  test('a rule that kills ends the session, after the events that tell of it', () => {
    const { commands, told, killed } = log(['kill rm'])
    commands.heard('SSH_SHELL', line('rm x', { rule: 'kill rm', kills: 'before' }))
    expect(told.map(({ code, fields }) => [code, fields.result])).toEqual([
      ['command', 'denied'],
      ['session.kill', undefined],
    ])
    expect(killed).toEqual(['the command is not allowed here: rule "kill rm"'])
  })
})

describe('a rule that asks', () => {
  const typed = (...rules: string[]) => {
    const world = typing(...rules)
    world.print('Debian\r\n$ ')
    for (const key of 'rm -r x') {
      world.type(key)
      world.print(key)
    }
    world.passed()
    return world
  }

  test('holds Return until approvers have accepted, and what is typed behind it is not offered again', () => {
    const { type, print, passed, asked, commands, watch } = typed('ask ^rm ')
    type('\rid\r')
    expect(passed()).toBe('')
    expect(watch.isAsking).toBe(true)
    expect(asked[0]?.question).toEqual({ line: 'rm -r x', rule: 'ask ^rm ', screen: ['Debian', '$ rm -r x'] })
    expect(commands).toEqual([])
    asked[0]?.answer(true, 'accepted by eva')
    expect(passed()).toBe('\r')
    print('\r\n$ ')
    expect(commands).toMatchObject([{ line: 'rm -r x', rule: 'ask ^rm ', reason: 'accepted by eva' }])
    expect(commands[0]?.kills).toBeUndefined()
  })

  test('does not let the line run if they refuse, or if the user gives up; the session goes on', () => {
    for (const end of ['refused', 'given up']) {
      const { type, passed, asked, commands, watch } = typed('ask ^rm ')
      type('\r')
      if (end === 'refused') asked[0]?.answer(false, end)
      else watch.giveUp(end)
      expect(asked[0]?.isOpen).toBe(end === 'refused')
      expect(passed()).toBe('')
      expect(commands).toMatchObject([{ line: 'rm -r x', rule: 'ask ^rm ', reason: end, isRefused: true }])
      expect(commands[0]?.kills).toBeUndefined()
      expect(watch.isAsking).toBe(false)
    }
  })

  test('asks again for the next line, also for the same one', () => {
    const { type, print, asked } = typed('ask ^rm ')
    type('\r')
    asked[0]?.answer(true, 'accepted by eva')
    print('\r\n$ ')
    for (const key of 'rm -r x') {
      type(key)
      print(key)
    }
    type('\r')
    expect(asked).toHaveLength(2)
  })

  test('counts before one that notifies, and after one that kills', () => {
    const both = typed('notify rm', 'ask rm')
    both.type('\r')
    expect(both.asked).toHaveLength(1)
    const killed = typed('ask rm', 'kill rm')
    killed.type('\r')
    expect(killed.asked).toEqual([])
    expect(killed.commands).toMatchObject([{ kills: 'before' }])
  })

  test('asks without the text about a line whose keys meet it and that is not shown', () => {
    const { type, passed, asked } = typing('ask rm')
    type('rm -r x')
    passed()
    type('\r')
    vi.advanceTimersByTime(HOLD_BURST_MS)
    expect(asked).toMatchObject([{ question: { line: '', rule: 'ask rm' } }])
    expect(passed()).toBe('')
  })

  test('is given up at the end of the channel', () => {
    const { type, asked, watch } = typed('ask ^rm ')
    type('\r')
    watch.close()
    expect(asked[0]?.isOpen).toBe(false)
    asked[0]?.answer(true, 'too late')
    expect(watch.isAsking).toBe(false)
  })
})
