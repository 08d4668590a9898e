/** An index in a temporary folder, and its content. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ContentEvent, RecordedLines } from '../../src/contents/contents.ts'
import { type ContentField, type ContentTest, phrasesOf } from '../../src/search/words.ts'

export const BEGIN = Date.UTC(2031, 5, 1)
export const HOUR = 3_600_000

const folders: string[] = []

export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-contents-'))
  folders.push(folder)
  return folder
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

/** Returns the test for `field~value`. */
export function asked(field: ContentField, value: string): ContentTest {
  const phrases = phrasesOf(value.split('*'))
  if (typeof phrases === 'string') throw new Error(phrases)
  return { field, phrases }
}

/** Returns a session that began `number` hours after BEGIN, and a line of it a second later. */
export function lineOf(number: number, field: 'command' | 'file', text: string, second = 1): ContentEvent[] {
  const begin = BEGIN + number * HOUR
  const session = idOf(number)
  return [
    { kind: 'begin', session, begin },
    { kind: 'line', session, field, time: begin + second * 1000, text },
  ]
}

export function recorded(number: number, change: Partial<RecordedLines> = {}): RecordedLines {
  const begin = BEGIN + number * HOUR
  const known = { session: idOf(number), begin, digest: 'ab'.repeat(32), isPartial: false }
  return { ...known, output: [], files: [], commands: [], ...change }
}

export const output = (...texts: string[]) => texts.map((text, i) => ({ at: i * 1000, channel: 1, text }))

export const idOf = (number: number) => `01JD${String(number).padStart(22, '0')}`
