/** The indexing thread, on recordings as written by a broker. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { INDEX_FILE_NAME } from '../../recordings/container/format/index.ts'
import { makeIdentity, unwrapKey } from '../../recordings/container/keys.ts'
import { isIndexed, RecordingIndex } from '../../recordings/show/index/reader.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { Secret } from '../../src/model/secret.ts'
import { type IndexerOptions, RecordingIndexer } from '../../src/recording-service/indexing/indexer.ts'
import { QuietTimes } from '../../src/recording-service/indexing/quiet.ts'
import { IndexThread } from '../../src/recording-service/indexing/thread.ts'
import { busy } from '../recordings/replay-support.ts'
import { identity, makeRoot, makeWriter, removeRoots } from '../recordings/support.ts'

const programs = mkdtempSync(join(tmpdir(), 'sallyport-indexing-'))
afterAll(() => {
  removeRoots()
  rmSync(programs, { recursive: true })
})

let root = ''
let failures: [string, string][] = []
beforeEach(() => {
  root = makeRoot()
  failures = []
})

function indexer(options: Partial<IndexerOptions> = {}): RecordingIndexer {
  return new RecordingIndexer({
    root,
    unwrap: (wrapped) => unwrapKey(wrapped, identity),
    onFailure: (session, reason) => failures.push([session, reason]),
    keyframesFrom: 0,
    ...options,
  })
}

async function recorded(session: string): Promise<{ path: string; key: Uint8Array; file: string }> {
  const made = await makeWriter({ root, session })
  await busy(made, 20)
  await made.writer.close({ result: 'success' })
  return { path: join(made.directory, INDEX_FILE_NAME), key: made.grant.key, file: made.path }
}

function program(text: string): URL {
  const file = join(programs, `${readdirSync(programs).length}.mjs`)
  writeFileSync(file, text)
  return pathToFileURL(file)
}

test('a session that is over gets its index', async () => {
  const { path, key } = await recorded('s1')
  const subject = indexer()
  subject.add('s1')
  await subject.idle()
  const entry = await findRecording(root, 's1')
  const index = await RecordingIndex.open(path, key, { size: entry!.size, digest: entry!.digest! })
  expect(index?.directory.channels).toMatchObject([{ channel: 1, kind: 'shell', outputs: 80 }])
  await index?.close()
  expect(failures).toEqual([])
  await subject.close()
})

test('a recording that has just ended is not looked for, and neither is its key', async () => {
  const { path, key } = await recorded('s1')
  const { directory, size, digest } = (await findRecording(root, 's1'))!
  const unwrapped: Uint8Array[] = []
  const subject = indexer({
    unwrap: async (wrapped) => {
      unwrapped.push(wrapped)
      return await unwrapKey(wrapped, identity)
    },
  })
  const ended = { directory, begin: 0, size, digest: digest!, key: Secret.of(key) }
  subject.add('s1', ended)
  // Its owner wipes it.
  ended.key.wipe()
  await subject.idle()
  expect(await isIndexed(path, { size, digest: digest! })).toBe(true)
  expect(unwrapped).toEqual([])

  // It was moved meanwhile.
  rmSync(path)
  subject.add('s1', { ...ended, directory: join(directory, 'gone'), key: Secret.of(key) })
  await subject.idle()
  expect(await isIndexed(path, { size, digest: digest! })).toBe(true)
  expect(unwrapped).toHaveLength(1)
  expect(failures).toEqual([])
  await subject.close()
})

test('what a crash has left out is found at the start, what runs is left alone', async () => {
  const sessions = [await recorded('s1'), await recorded('s2'), await recorded('s3')]
  writeFileSync(sessions[1]!.path, 'half an index')
  const left = `${sessions[2]!.path}.4711.tmp`
  writeFileSync(left, 'half an index')
  const running = await makeWriter({ root, session: 's4' })
  const subject = indexer()
  subject.catchUp()
  await subject.idle()
  for (const [index, { path }] of sessions.entries()) {
    const { size, digest } = (await findRecording(root, `s${index + 1}`))!
    expect(await isIndexed(path, { size, digest: digest! })).toBe(true)
  }
  expect(existsSync(join(running.directory, INDEX_FILE_NAME))).toBe(false)
  expect(existsSync(left)).toBe(false)
  await running.writer.close({ result: 'success' })
  await subject.close()
})

test('a small one gets no keyframes before somebody opens it', async () => {
  const { path, file } = await recorded('s1')
  const subject = indexer({ keyframesFrom: statSync(file).size + 1 })
  subject.add('s1')
  await subject.idle()
  expect(existsSync(path)).toBe(false)
  expect(failures).toEqual([])
  await subject.close()
})

test('nothing is indexed while the broker is busy, and closing waits for no quiet time', async () => {
  const { path } = await recorded('s1')
  await recorded('s2')
  let looks = 0
  const asked: boolean[] = []
  const quiet = new QuietTimes({
    lookMs: 1,
    isBusy: () => {
      asked.push(existsSync(path))
      return ++looks < 5
    },
  })
  const subject = indexer({ quiet })
  subject.add('s1')
  await subject.idle()
  expect(asked).toEqual([false, false, false, false, false])
  expect(existsSync(path)).toBe(true)
  await subject.close()

  const never = indexer({ quiet: new QuietTimes({ isBusy: () => true }) })
  never.add('s2')
  await new Promise((resolve) => setTimeout(resolve, 20))
  await never.close()
  expect(existsSync(path.replace('s1', 's2'))).toBe(false)
})

test('one bad recording does not keep the others waiting, and is told once', async () => {
  const bad = await recorded('s1')
  const good = await recorded('s2')
  const bytes = readFileSync(bad.file)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(bad.file, bytes)
  const subject = indexer()
  subject.add('s1')
  subject.add('s2')
  subject.catchUp()
  await subject.idle()
  expect(failures).toEqual([['s1', expect.stringContaining('was changed')]])
  expect(existsSync(good.path)).toBe(true)
  expect(readdirSync(join(bad.path, '..')).filter((name) => name.includes('idx'))).toEqual([])
  await subject.close()
})

test('what is sealed to auditors is no failure', async () => {
  const { path } = await recorded('s1')
  const foreign = await makeIdentity()
  const subject = indexer({ unwrap: (wrapped) => unwrapKey(wrapped, foreign) })
  subject.add('s1')
  await subject.idle()
  expect(failures).toEqual([])
  expect(existsSync(path)).toBe(false)
  await subject.close()
})

test('a thread that dies or says nothing fails its job only', async () => {
  await recorded('s1')
  await recorded('s2')
  const dying = indexer({ thread: new IndexThread({ program: program('process.exit(3)') }) })
  dying.add('s1')
  await dying.idle()
  const silent = indexer({
    thread: new IndexThread({
      program: program(
        "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => undefined)",
      ),
      silenceMs: 50,
    }),
  })
  silent.add('s2')
  await silent.idle()
  expect(failures).toEqual([
    ['s1', 'the indexing thread has ended'],
    ['s2', 'the indexing thread said nothing for 0.05 s'],
  ])
  await Promise.all([dying.close(), silent.close()])
})

test('closing drops what is under way', async () => {
  const { path } = await recorded('s1')

  const subject = indexer({
    thread: new IndexThread({
      program: program(
        "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => undefined)",
      ),
    }),
  })
  subject.add('s1')
  await new Promise((resolve) => setTimeout(resolve, 20))
  await subject.close()
  expect(existsSync(path)).toBe(false)
  expect(failures).toEqual([])
})
