/** Cases that real programs do not produce on demand: speed, floods, and lying targets. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { processorTime } from '../../../processor-time.ts'
import { listen, told } from './support/typing.ts'

type Step = [from: '>' | '<', text: string]

/** `>` is typed, `<` is printed. */
function heard(...steps: Step[]) {
  const { lines, reader, time } = listen()
  for (const [from, text] of steps) {
    time.now += 50
    if (from === '>') reader.input(Buffer.from(text))
    else reader.output(Buffer.from(text))
  }
  return told(lines)
}

describe('a line', () => {
  test('is not read before the target takes it', () => {
    expect(heard(['<', '$ '], ['>', 'ls'], ['<', 'ls'], ['>', '\r'])).toEqual([])
    expect(heard(['<', '$ '], ['>', 'ls'], ['<', 'ls'], ['>', '\r'], ['<', '\r\n'])).toEqual([
      ['ls', 'certain'],
    ])
  })

  test('is found when its echo comes after Return', () => {
    expect(heard(['<', '$ '], ['>', 'ls -l\r'], ['<', 'ls '], ['<', '-l\r\n'])).toEqual([
      ['ls -l', 'certain'],
    ])
  })

  test('typed before the prompt is there is found where the shell shows it', () => {
    expect(heard(['>', 'ls\r'], ['<', 'Welcome\r\nto srv1\r\n\r\n$ '], ['<', 'ls\r\nfile\r\n$ '])).toEqual([
      ['ls', 'likely'],
    ])
  })

  test('begins anew at a prompt, after keys for another program', () => {
    const more: Step[] = [
      ['<', 'a\r\n--More--'],
      ['>', ' '],
      ['<', '\rb         \r\n--More--'],
      ['>', 'q'],
      ['<', '\r        \r$ '],
    ]
    expect(
      heard(...more, ['>', 'l'], ['<', 'l'], ['>', 's'], ['<', 's'], ['>', '\r'], ['<', '\r\n']),
    ).toEqual([['ls', 'certain']])
  })

  test('given up, or ended by ^D, is none', () => {
    expect(
      heard(['<', '$ '], ['>', 'rm x\x03'], ['<', 'rm x^C\r\n$ '], ['>', '\x04'], ['<', '\r\nlogout\r\n']),
    ).toEqual([])
  })

  test("is not begun by the terminal's own answers", () => {
    expect(
      heard(
        ['<', '\x1b[c\x1b]11;?\x07'],
        ['>', '\x1b[?62;1c\x1b]11;rgb:00/00/00\x1b\\\x1b[I'],
        ['<', '$ '],
        ['>', 'ls\r'],
        ['<', 'ls\r\n'],
      ),
    ).toEqual([['ls', 'certain']])
  })

  test('shown as stars is none, and a star that was typed is one', () => {
    expect(
      heard(['<', 'Password: '], ['>', 'abc\r'], ['<', '***\r\n$ '], ['>', '*\r'], ['<', '*\r\n']),
    ).toEqual([['*', 'certain']])
  })

  test('that is a password is none, though a later line ends in the same word', () => {
    expect(heard(['<', 'Password: '], ['>', 'admin\r'], ['<', '\r\nLast login by admin\r\n'])).toEqual([])
    expect(
      heard(
        ['<', 'Password: '],
        ['>', 'admin\r'],
        ['<', '\r\nuser: admin\r\n$ '],
        ['>', 'ls\r'],
        ['<', 'ls\r\n'],
      ),
    ).toEqual([['ls', 'certain']])
  })

  test('on a screen with rows by number is uncertain at a prompt, and else none', () => {
    const steps = (prompt: string): Step[] => [
      ['<', `\x1b[24;1H${prompt}`],
      ['>', 'show'],
      ['<', '\x1b[10;1H\x1b[24;1Hxx'],
      ['<', `\x1b[24;1H${prompt}show`],
      ['>', '\r'],
      ['<', '\r\n'],
    ]
    expect(heard(...steps('switch# '))).toEqual([['show', 'uncertain']])
    expect(heard(...steps(''))).toEqual([])
  })

  test('is judged with what stands before the cursor: a suggestion behind it is none of it', () => {
    const { reader } = listen()
    reader.output(Buffer.from('$ '))
    reader.input(Buffer.from('r'))
    reader.output(Buffer.from('r\x1b[90mm -rf /\x1b[0m\x1b[7D'))
    reader.watched = true
    expect(reader.current()?.text).toBe('r')
  })
})

describe('a flood', () => {
  const flood = (lines: number) => 'all work and no play makes jack a dull boy\r\n'.repeat(lines)

  test('after Return is skipped, and the next line is found', () => {
    expect(
      heard(
        ['<', '$ '],
        ['>', 'cat\r'],
        ['<', 'cat\r\n'],
        ['<', flood(5000)],
        ['<', '$ '],
        ['>', 'ls\r'],
        ['<', 'ls\r\n$ '],
        ['>', 'id\r'],
        ['<', 'id\r\n'],
      ),
    ).toEqual([
      ['cat', 'certain'],
      ['ls', 'likely'],
      ['id', 'certain'],
    ])
  })

  test('in the alternate screen ends with it', () => {
    const steps: Step[] = [
      ['<', '$ \x1b[?1049h'],
      ['<', flood(5000)],
    ]
    expect(heard(...steps, ['>', ':w\r'], ['<', '$ :w\r\n'])).toEqual([])
    expect(
      heard(
        ...steps,
        ['<', '\x1b[?1049l'],
        ['<', flood(5000)],
        ['<', '\r\n$ '],
        ['>', 'ls\r'],
        ['<', 'ls\r\n'],
      ),
    ).toEqual([['ls', 'likely']])
  })

  test('while a line waits is given up after a while: it costs bounded time', () => {
    const { reader, time } = listen()
    reader.output(Buffer.from('$ '))
    const piece = Buffer.alloc(32_768, 'x')
    reader.input(Buffer.from('ls\r'))
    const begin = processorTime()
    for (let count = 0; count < 8192; count++) {
      time.now += 0.1
      reader.output(piece)
      if (count % 100 === 0) reader.input(Buffer.from('ls\r'))
    }
    // Sends 256 MiB, of which little more than 1 MiB is parsed.
    expect(processorTime() - begin).toBeLessThan(2000)
  })
})

describe('a target that lies', () => {
  test('is read by its screen, whatever the keys were; a line that it does not draw is none', () => {
    expect(heard(['<', '$ '], ['>', 'ls'], ['<', 'rm -rf /'], ['>', '\r'], ['<', '\r\n'])).toEqual([
      ['rm -rf /', 'likely'],
    ])
    expect(heard(['<', '$ '], ['>', 'ls\r'], ['<', '\x1b[2K\r\r\n'])).toEqual([])
    expect(heard(['<', '$ \x1b[?47h'], ['>', 'ls\r'], ['<', 'ls\r\n'])).toEqual([])
    expect(heard(['<', '$ '], ['>', 'ls'], ['<', '\x1bcls'], ['>', '\r'], ['<', '\r\n'])).toEqual([])
  })
})
