/** Snapshots of the emulator: output after a restored snapshot looks the same as without it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Emulator } from '../../../../recordings/decode/terminal/emulator.ts'
import { processorTime } from '../../../processor-time.ts'

const SIZE = { columns: 20, rows: 6 }

async function after(text: string, size = SIZE): Promise<Emulator> {
  const emulator = new Emulator(size)
  await emulator.push(text)
  await emulator.settle()
  return emulator
}

/** Restores a snapshot of the emulator in a new one: two states with equal snapshots behave alike. */
async function resumed(emulator: Emulator): Promise<Emulator> {
  const again = new Emulator(emulator.size)
  await again.restore(emulator.snapshot())
  return again
}

const number = fc.integer({ min: 0, max: 25 })
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 30 }) },
  fc.constantFrom('\r\n', '\n', '\r', '\t', '\b', '界面', 'e\u0301', '👍', 'qqq', '\x0e', '\x0f'),
  fc.constantFrom('\x1b7', '\x1b8', '\x1bD', '\x1bE', '\x1bM', '\x1bc', '\x1bH', '\x1b#8', '\x1b[!p'),
  fc.constantFrom('\x1b(0', '\x1b(B', '\x1b(A', '\x1b)0', '\x1b)B'),
  fc
    .tuple(fc.constantFrom('?1049', '?47', '?1047', '?7', '?25', '4', '?6'), fc.constantFrom('h', 'l'))
    .map(([mode, set]) => `\x1b[${mode}${set}`),
  fc
    .tuple(fc.constantFrom(...'ABCDEFGJKLMPSTXZ@abdeg'), number)
    .map(([final, value]) => `\x1b[${value}${final}`),
  fc.tuple(number, number).map(([y, x]) => `\x1b[${y};${x}H`),
  fc.tuple(number, number).map(([top, bottom]) => `\x1b[${top};${bottom}r`),
  fc
    .constantFrom('1', '2', '3', '4', '7', '9', '31', '42', '97', '104', '38;5;200', '48;2;1;2;3', '0', '')
    .map((codes) => `\x1b[${codes}m`),
)
const script = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''))

describe('a snapshot', () => {
  test('goes on like the terminal that it was taken of', async () => {
    await fc.assert(
      fc.asyncProperty(script, script, async (before, rest) => {
        const straight = await after(before)
        fc.pre(straight.isBetweenSequences && straight.canSnapshot)
        const jumped = await resumed(straight)
        expect(jumped.text()).toEqual(straight.text())
        expect(jumped.cursor).toEqual(straight.cursor)
        expect(jumped.snapshot()).toBe(straight.snapshot())
        for (const emulator of [straight, jumped]) {
          await emulator.push(rest)
          await emulator.settle()
        }
        expect(jumped.text()).toEqual(straight.text())
        expect(jumped.snapshot()).toBe(straight.snapshot())
      }),
      { numRuns: 300 },
    )
  })

  // Each was found by the property above, some of them once in 20,000 runs.
  test.each([
    ['a cursor saved past the last column', '\x1b[1;20Hx\x1b7\x1b[H', '\x1b8y'],
    ['what a wide character that wraps leaves of its line', '\x1b[31;4m\x1b[1;20H界', ''],
    ['tab stops of the screen behind', '\x1b[3g\x1b[1;5H\x1bH\x1b[?1049h\x1b[3;4H\x1bH', '\x1b[?1049l\r\tx'],
    ['a scrolling region of the screen behind', '\x1b[2;3r\x1b[?1049h', '\x1b[?1049l\x1b[3;1Hx\ny'],
    [
      'a cursor saved on an alternate screen that was left',
      '\x1b[?47h\x1b[4;5H\x1b7\x1b[?47l',
      '\x1b[?47h\x1b8x',
    ],
    ['a background that was there when the screen was changed', '\x1b[104m\x1b[?1049h\x1b[T', ''],
    ['what inserts itself again', '\x1b[4habcd\rx', '\x1b[3b'],
    ['what is not repeated past the last column', '\x1b[1;20Hx\x1b[m', '\x1b[3by'],
    ['an accent that a character set passes over', '\x1b[1;20He\u0301\x1b(0', 'q'],
    ['a right half that something without room has erased', '\x1b[42m\x1b[?7l\x1b[1;19H界面\x1b[A', 'x'],
    ['a right half that was printed over', '\x1b[42m\x1b[?7l\x1b[1;19H界x\x1b[A', 'y'],
    ['an accent without a letter', '\x1b[1;5H\u0301a', 'b'],
  ])('keeps %s', async (_, before, rest) => {
    const straight = await after(before)
    expect(straight.canSnapshot).toBe(true)
    const jumped = await resumed(straight)
    for (const emulator of [straight, jumped]) {
      await emulator.push(rest)
      await emulator.settle()
    }
    expect(jumped.text()).toEqual(straight.text())
    expect(jumped.cursor).toEqual(straight.cursor)
    expect(jumped.snapshot()).toBe(straight.snapshot())
  })

  test.each([
    ['half a wide character past the last column', '\x1b[?7l\x1b[1;19H界x'],
    ['a wide character that had no room', '\x1b[?7l\x1b[1;19H界面'],
  ])('is not taken of %s', async (_, before) => {
    expect((await after(before)).canSnapshot).toBe(false)
    expect((await after(`${before}\r`)).canSnapshot, 'and is of what comes next').toBe(true)
  })

  test('keeps what stands behind an alternate screen, and where its cursor was', async () => {
    const emulator = await after('main\r\n$ \x1b[31m\x1b[?1049h\x1b[Heditor')
    const again = await resumed(emulator)
    await again.push('\x1b[?1049lx')
    await again.settle()
    expect(again.text().slice(0, 2)).toEqual(['main', '$ x'])
    expect(again.snapshot()).toContain('\x1b[0;31mx')
  })
})

test('a recording can make no terminal that costs more than its limits', async () => {
  const emulator = await after('\x1b]0;title\x07\x1b[99999bx\x1b[9999;9999Hy', { columns: 100_000, rows: 0 })
  expect(emulator.size).toEqual({ columns: 500, rows: 1 })
  expect(emulator.text()[0]?.trimStart()).toMatch(/^x? *y$/)
})

test('a sequence costs at most a screen of lines', async () => {
  const emulator = new Emulator({ columns: 500, rows: 200 })
  await emulator.push('x\x1b[9999S\x1b[9999L\x1b[9999M\x1b[9999T'.repeat(20))
  const begin = processorTime()
  await emulator.settle()
  // Run line by line, they would take half a minute.
  expect(processorTime() - begin).toBeLessThan(10_000)
})
