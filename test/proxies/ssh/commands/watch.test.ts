/** When Return is held back, for how long, and what becomes of the lines. */
import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CommandLog } from '../../../../proxies/ssh/commands/log.ts'
import { ScriptWatch } from '../../../../proxies/ssh/commands/script.ts'
import { type Command, CommandWatch, HOLD_BURST_MS, HOLD_MS } from '../../../../proxies/ssh/commands/watch.ts'
import type { EventFields } from '../../../../src/audit/fields.ts'
import { CommandRules } from '../../../../src/model/command-rules.ts'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

/** A target that answers only when the test says so; what is held is shown again as the relay does. */
function typing(...rules: string[]) {
  const commands: Command[] = []
  let queue = Buffer.alloc(0)
  let passed = ''
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
  })
  return {
    commands,
    watch,
    type: (text: string) => {
      queue = Buffer.concat([queue, Buffer.from(text)])
      drain()
    },
    print: (text: string) => watch.fromTarget(Buffer.from(text)),
    /** What went to the target since the last call. */
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
    // For the event, should nothing ever come.
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
