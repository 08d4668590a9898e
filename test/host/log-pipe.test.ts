import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** pino sleeps that long when a pipe is full. */
const SLEEP_MS = 100

/** Runs log-burst.ts; returns what it logged, and the milliseconds of its slowest line. */
async function burst(): Promise<{ text: string; slowest: number }> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'log-burst.ts')],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let text = ''
  let said = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  child.stderr.on('data', (data) => {
    said += data
  })
  await once(child, 'close')
  return { text, slowest: Number(said) }
}

test('a burst of lines into a pipe is whole, and waits only for its reader', async () => {
  const slowest: number[] = []
  // A busy machine may delay the reader, but hardly each time.
  for (let attempt = 0; attempt < 3; attempt++) {
    const one = await burst()
    expect(one.text.split('\n').filter((line) => line.includes('burst'))).toHaveLength(1_000)
    slowest.push(one.slowest)
  }
  expect(Math.min(...slowest)).toBeLessThan(SLEEP_MS)
})
