/**
 * A thief changes the disk between a hard stop of the broker and its next start: the recordings of running
 * sessions are not closed, so no sealed record has their length. One broker is killed with a session for each
 * attack.
 */
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { RECORD } from '../../recordings/container/format/record.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { type Bastion, eventsIn, type SessionRow, startBastion } from '../e2e/bastion.ts'
import { sallyport } from '../e2e/recorded.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { loopOf, PRINT_CLOCK } from '../peers/ticker.ts'
import { recordsOf } from '../recordings/samples.ts'
import { until } from '../until.ts'

const VERIFIER = join(import.meta.dirname, '..', '..', 'bin', 'verify.mjs')
const LONG = { timeout: 300_000 }
const TICKER = loopOf(PRINT_CLOCK, 0.05)

interface Victim {
  id: string
  /** The recording's folder. */
  directory: string
  /** A copy of its file at the age of one second. */
  early: string
}

interface Thief {
  home: string
  database: string
  /** The recording of a session that is left unchanged. */
  other: string
}

const file = ({ directory }: Victim) => join(directory, FILE_NAME)
/** Cuts at the end of a checkpoint, about `seconds` before the end. */
function cutAtCheckpoint(victim: Victim): void {
  const bytes = readFileSync(file(victim))
  const checkpoints = recordsOf(bytes).filter(({ type }) => type === RECORD.checkpoint)
  writeFileSync(file(victim), bytes.subarray(0, checkpoints[1]!.end))
}
const takeAway = ({ id, directory }: Victim, { home }: Thief) =>
  renameSync(directory, join(home, `away-${id}`))

/**
 * The change to a recording, the fault that verifiers find then, and whether the start can know of the
 * session.
 */
const ATTACKS: [string, string, (victim: Victim, thief: Thief) => void, boolean][] = [
  ['its last seconds are cut off at a checkpoint', 'lost_tail', cutAtCheckpoint, true],
  [
    'it is cut to its header and first checkpoint',
    'lost_tail',
    (victim) => {
      const bytes = readFileSync(file(victim))
      writeFileSync(file(victim), bytes.subarray(0, recordsOf(bytes)[0]!.end))
    },
    true,
  ],
  [
    'an earlier copy of it is put back',
    'lost_tail',
    (victim) => copyFileSync(victim.early, file(victim)),
    true,
  ],
  ['its folder is removed', 'missing_session', takeAway, true],
  ['its file is removed', 'missing_session', (victim) => rmSync(file(victim)), true],
  [
    "another session's lies in its place",
    'wrong_session',
    (victim, { other }) => copyFileSync(other, file(victim)),
    true,
  ],
  [
    'its folder is removed, and its row among the sessions',
    'missing_session',
    (victim, thief) => {
      takeAway(victim, thief)
      const database = new DatabaseSync(thief.database)
      database.prepare('delete from sessions where id = ?').run(victim.id)
      database.close()
    },
    false,
  ],
]

describeWithPeers('between a hard stop and the next start', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let again: Broker
  let untouched: string
  const victims: Victim[] = []
  let verified: { own: string[]; outside: string[]; audit: string[] }

  beforeAll(async () => {
    bastion = await startBastion()
    const { broker, home } = bastion
    const clients = ATTACKS.concat([ATTACKS[0]!]).map(() =>
      ssh(home, bastion.login(), [TICKER], { timeout: 80_000 }),
    )
    const rows = await until('the sessions', async () => {
      const found = await broker.must<SessionRow[]>('GET', '/sessions?status=current&limit=-1')
      return found.length === clients.length ? found : undefined
    })
    const root = join(broker.dataFolder, 'recordings')
    await sleep(1000)
    for (const { id } of rows) {
      const { directory } = (await findRecording(root, id))!
      const early = join(home.folder, `early-${id}`)
      copyFileSync(join(directory, FILE_NAME), early)
      victims.push({ id, directory, early })
    }
    // A running broker reports no fault in its own sessions.
    expect(await faults(broker)).toEqual({ own: [], outside: [], audit: [] })
    // Each of them has two progress notes, seconds apart.
    await until('notes of how far they have come', () => {
      const notes = eventsIn(broker.log()).filter(({ event }) => event === 'recording.progress')
      const often = victims.every(
        ({ id }) => notes.filter(({ object }) => String(object).includes(id)).length >= 2,
      )
      return often || undefined
    })
    await broker.kill()
    await Promise.all(clients)
    const [last] = victims.splice(-1)
    untouched = last!.id
    const thief = {
      home: home.folder,
      database: join(broker.dataFolder, 'sallyport.db'),
      other: file(last!),
    }
    for (const [i, [, , attack]] of ATTACKS.entries()) attack(victims[i]!, thief)
    again = await startBroker({ dataFolder: broker.dataFolder, ports: broker.ports })
    verified = await faults(again)
  }, 300_000)
  afterAll(async () => {
    await again?.stop()
    await bastion?.stop()
  })

  /** Returns the faults that each verifier finds, `SESSION code`. */
  async function faults(broker: Broker): Promise<typeof verified> {
    const own = await sallyport(broker, ['recordings', 'verify', '--json'])
    const { stdout: exported } = await sallyport(broker, ['audit', 'export'])
    const key = (await sallyport(broker, ['audit', 'key'])).stdout.split(' ')[0]!
    const audit = join(bastion.home.folder, 'audit.jsonl')
    writeFileSync(audit, exported)
    const args = ['--json', '--key', key, '--audit', audit, join(broker.dataFolder, 'recordings')]
    const outside = await run(process.execPath, [VERIFIER, ...args])
    const log = await sallyport(broker, ['audit', 'verify', '--json'])
    const { recordings } = JSON.parse(log.stdout) as {
      recordings: { faults: { session: string; code: string }[] }
    }
    const found = {
      own: faultsIn(own.stdout),
      outside: faultsIn(outside.stdout),
      audit: recordings.faults.map(({ session, code }) => `${session} ${code}`).sort(),
    }
    const codes = [own.code, outside.code, log.code]
    expect(codes, own.stderr + outside.stderr + log.stderr).toEqual(
      Object.values(found).map(({ length }) => (length > 0 ? 1 : 0)),
    )
    return found
  }

  const faultsIn = (stdout: string): string[] =>
    stdout
      .trim()
      .split('\n')
      .flatMap((line) => {
        const { fault } = JSON.parse(line) as { fault?: { code: string } }
        return fault ? [`${/01[0-9A-Z]{24}/.exec(line)?.[0]} ${fault.code}`] : []
      })
      .sort()

  const of = (session: string, list: string[]) => list.filter((line) => line.startsWith(session))

  test.each(ATTACKS)('%s: %s, by both verifiers, and an alert', LONG, (title, code, _, isKnown) => {
    const { id } = victims[ATTACKS.findIndex(([one]) => one === title)]!
    const fault = [`${id} ${code}`]
    expect(of(id, verified.own)).toEqual(fault)
    expect(of(id, verified.outside)).toEqual(fault)
    // The verifier of the audit log does not read the catalog's entry of a file.
    expect(of(id, verified.audit)).toEqual([expect.stringMatching(/missing_session|lost_tail/)])
    const alerts = eventsIn(again.log()).filter(
      ({ event, session, result }) => event === 'recording.failed' && session === id && result === 'lost',
    )
    expect(alerts).toHaveLength(isKnown ? 1 : 0)
    if (!isKnown) return
    expect(alerts[0]).toMatchObject({ severity: 'alert' })
    expect(Number(alerts[0]!['duration'])).toBeGreaterThan(1000)
  })

  test('a recording that nobody touched is whole, and the start says so', LONG, () => {
    for (const list of Object.values(verified)) expect(of(untouched, list)).toEqual([])
    const events = eventsIn(again.log()).filter(({ session }) => session === untouched)
    expect(events.map(({ event }) => event)).not.toContain('recording.failed')
    expect(events).toContainEqual(expect.objectContaining({ event: 'recording.recovered', duration: 0 }))
  })
})
