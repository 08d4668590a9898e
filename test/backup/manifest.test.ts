/** Validity of a manifest and of a list, from any source. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { BackupError } from '../../src/backup/files.ts'
import { type ListedRecording, readList } from '../../src/backup/list.ts'
import { dataPlace, encodeManifest, newManifest, parseManifest } from '../../src/backup/manifest.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-manifest-'))
afterAll(() => rmSync(folder, { recursive: true }))

const sha256 = 'ab'.repeat(32)
const MANIFEST = newManifest({
  program: '1.0.0',
  schema: 9,
  created: '2026-11-20T12:00:00.000Z',
  hostname: 'bastion',
  audit: { row: 5, hash: sha256 },
  sessions: { all: 1, running: 0 },
  recordings: { all: 1, containers: true, bytes: 10 },
  master_key: { fingerprint: '0123456789abcdef', included: false },
  files: ['sallyport.db', 'recordings.jsonl', 'data/tls/key.pem.age'].map((path) => ({
    path,
    size: 1,
    sha256,
  })),
})

/** Parts of names, some of which lead elsewhere. */
const segment = fc.oneof(
  fc.constantFrom('..', '.', '', '/', '\\', 'data', 'ssh', '.age', '\0', '%2e%2e'),
  fc.string({ unit: 'binary', maxLength: 10 }),
)

test('what is written is read', () => {
  expect(parseManifest(encodeManifest(MANIFEST), 'm')).toEqual(MANIFEST)
})

test('a place in the data folder is below it, whatever the name', () => {
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 6 }), (parts) => {
      const place = dataPlace(`data/${parts.join('/')}.age`)
      if (place === undefined) return
      expect(resolve('/root', place).startsWith(`/root${sep}`)).toBe(true)
      expect(place).not.toMatch(/\p{Cc}/u)
    }),
    { numRuns: 2000 },
  )
  expect(dataPlace('data/tls/key.pem.age')).toBe('tls/key.pem')
})

test('a manifest that was changed anywhere is read or refused in words, and takes no place outside', () => {
  const bytes = encodeManifest(MANIFEST)
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ change
      expectReadOrRefused(changed)
    }),
    { numRuns: 2000 },
  )
  fc.assert(fc.property(fc.json(), (text) => expectReadOrRefused(Buffer.from(text))))
})

function expectReadOrRefused(bytes: Buffer): void {
  try {
    for (const { path } of parseManifest(bytes, 'm').files) expect(path.split('/')).not.toContain('..')
  } catch (error) {
    expect(error).toBeInstanceOf(BackupError)
  }
}

test('a list that was changed anywhere is read or refused in words', async () => {
  const line: ListedRecording = {
    folder: '2026/11/20/01JD0000000000000000000001',
    state: 'sealed',
    size: 10,
    digest: sha256,
    files: [{ name: 'key.age', size: 1, sha256 }],
  }
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
  const path = join(folder, 'list')
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ change
      writeFileSync(path, changed)
      try {
        for await (const one of readList(path)) {
          expect(one.folder).toMatch(/^\d{4}\/\d{2}\/\d{2}\/[A-Za-z0-9_-]{1,64}$/)
        }
      } catch (error) {
        expect(error).toBeInstanceOf(BackupError)
      }
    }),
    { numRuns: 500 },
  )
})
