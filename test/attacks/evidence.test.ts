/**
 * Attack case 51: changes to a recording on disk by a thief of the disk, and by an administrator of the
 * bastion who has its signing key. Both verifiers name the fault, and the other recordings stay valid.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseHeader, signerMetadata } from '../../recordings/container/format/header.ts'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import type { PlacedRecord } from '../../recordings/container/format/parser.ts'
import { RECORD } from '../../recordings/container/format/record.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { openFoundation } from '../../src/broker/foundation.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { sallyport } from '../e2e/recorded.ts'
import { ssh } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { rebuild, recordsOf } from '../recordings/samples.ts'
import { makeSigner, type Signer, signerOf } from '../recordings/support.ts'

const VERIFIER = join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs')
const LONG = { timeout: 300_000 }
/** Noise in two pieces with a pause: several groups, each with its checkpoint. */
const COMMAND = 'head -c 600000 /dev/urandom; sleep 1; head -c 600000 /dev/urandom'

/** The recording of the middle session of three, and the attacker's means. */
interface Found {
  bytes: Buffer
  records: PlacedRecord[]
  groups: PlacedRecord[]
  metadata: Record<string, string | number>
  /** Another session's recording. */
  other: Buffer
  /** The bastion's own key. */
  own: Signer
}

const part = (bytes: Buffer, { offset, end }: PlacedRecord) => bytes.subarray(offset, end)
const without = (bytes: Buffer, { offset, end }: PlacedRecord) =>
  Buffer.concat([bytes.subarray(0, offset), bytes.subarray(end)])

/** Each returns the changed file, or undefined to remove its folder. */
const DAMAGES: [string, string, (found: Found) => Buffer | Promise<Buffer> | undefined][] = [
  [
    'a bit is flipped',
    'damaged_record',
    ({ bytes, groups }) => {
      const changed = Buffer.from(bytes)
      changed[groups[1]!.offset + 100]! ^= 4
      return changed
    },
  ],
  ['it is cut in the middle of a record', 'cut_tail', ({ bytes }) => bytes.subarray(0, bytes.length - 20)],
  [
    'it is cut at the end of a record',
    'not_closed',
    ({ bytes, records }) => bytes.subarray(0, records.at(-1)!.offset),
  ],
  [
    'something is written behind its end',
    'trailing_data',
    ({ bytes }) => Buffer.concat([bytes, Buffer.alloc(9)]),
  ],
  ['a piece is taken out', 'missing_records', ({ bytes, groups }) => without(bytes, groups[1]!)],
  [
    'two pieces are swapped',
    'misplaced_record',
    ({ bytes, groups: [first, second] }) =>
      Buffer.concat([
        bytes.subarray(0, first!.offset),
        part(bytes, second!),
        bytes.subarray(first!.end, second!.offset),
        part(bytes, first!),
        bytes.subarray(second!.end),
      ]),
  ],
  [
    'it is written anew, without a key',
    'bad_signature',
    ({ metadata, records }) => rebuild({ ...metadata, user: 'somebody else' }, records),
  ],
  [
    'it is written anew and signed by a key of their own',
    'unknown_signer',
    ({ metadata, records }) => {
      const stranger = makeSigner()
      return rebuild(
        { ...metadata, ...signerMetadata(stranger.raw), user: 'somebody else' },
        records,
        stranger,
      )
    },
  ],
  [
    'it is written anew and signed with the bastion’s own key',
    'replaced_file',
    ({ metadata, records, own }) => rebuild({ ...metadata, user: 'somebody else' }, records, own),
  ],
  ['another session’s lies in its place', 'wrong_session', ({ other }) => other],
  ['it is deleted', 'missing_session', () => undefined],
]

describeWithPeers('a recording in the middle of others', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let session: string
  let directory: string
  let found: Found
  let key: string
  let audit: string

  beforeAll(async () => {
    bastion = await startBastion()
    const { broker, home } = bastion
    for (let count = 0; count < 3; count++)
      expect((await ssh(home, bastion.login(), [COMMAND])).bytes).toHaveLength(1_200_000)
    const sessions = await bastion.closedSessions(3)
    const root = join(broker.dataFolder, 'recordings')
    const [first, middle] = await Promise.all(sessions.map(({ id }) => findRecording(root, id)))
    session = middle!.session
    directory = middle!.directory
    const bytes = readFileSync(join(directory, FILE_NAME))
    const records = recordsOf(bytes)
    const { store, recordingService } = await openFoundation(loadConfig(broker.configFile))
    const own = signerOf(recordingService.keys.signing)
    await store.close()
    found = {
      bytes,
      records,
      groups: records.filter(({ type }) => type === RECORD.group),
      metadata: parseHeader(bytes.subarray(0, records[0]!.offset)).metadata,
      other: readFileSync(join(first!.directory, FILE_NAME)),
      own,
    }
    expect(found.groups.length).toBeGreaterThan(3)
    key = (await sallyport(broker, ['audit', 'key'])).stdout.split(' ')[0]!
    audit = join(home.folder, 'audit.jsonl')
    writeFileSync(audit, (await sallyport(broker, ['audit', 'export'])).stdout)
  }, 300_000)
  afterAll(() => bastion?.stop())

  /** Returns the faults that a verifier has found, `SESSION code`, from its lines of JSON. */
  const faults = (stdout: string): string[] =>
    stdout
      .trim()
      .split('\n')
      .flatMap((line) => {
        const { fault } = JSON.parse(line) as { fault?: { code: string } }
        return fault ? [`${line.includes(session) ? session : line} ${fault.code}`] : []
      })

  async function verified(): Promise<{ own: string[]; outside: string[] }> {
    const { broker } = bastion
    const own = await sallyport(broker, ['recordings', 'verify', '--json'])
    const args = ['--json', '--key', key, '--audit', audit, join(broker.dataFolder, 'recordings')]
    const outside = await run(process.execPath, [VERIFIER, ...args])
    const found = { own: faults(own.stdout), outside: faults(outside.stdout) }
    expect([own.code, outside.code]).toEqual(
      [found.own, found.outside].map(({ length }) => (length > 0 ? 1 : 0)),
    )
    return found
  }

  test('is in order until somebody touches it', LONG, async () => {
    expect(await verified()).toEqual({ own: [], outside: [] })
  })

  test.each(DAMAGES)('%s: %s', LONG, async (_, code, damage) => {
    const file = join(directory, FILE_NAME)
    const bytes = await damage(found)
    if (bytes) writeFileSync(file, bytes)
    else renameSync(directory, `${bastion.home.folder}/away`)
    try {
      const fault = `${session} ${code}`
      expect(await verified()).toEqual({ own: [fault], outside: [fault] })
    } finally {
      if (bytes) writeFileSync(file, found.bytes)
      else renameSync(`${bastion.home.folder}/away`, directory)
    }
  })
})
