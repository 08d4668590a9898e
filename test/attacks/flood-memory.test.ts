/**
 * Attack case 43 over SSH: targets that flood, and terminals that are none, against every reader behind them:
 * a client of a strict session, a watcher, and an export of the recording.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Bastion, type SessionRow, startBastion } from '../e2e/bastion.ts'
import { ADMIN_PASSWORD } from '../peers/broker.ts'
import { watchLive } from '../peers/live.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { signInAs, weighed } from './requests.ts'
import { PEERS, residentOf } from './setting.ts'

const MIB = 1024
/**
 * The most that one of them may add to the broker's memory, in KiB; its threads begin with some 60 MiB each.
 */
const ALLOWED = 256 * MIB
/** The heaps of the threads that export (256 MiB) and index (512 MiB), and their buffers. */
const ALLOWED_EXPORT = 896 * MIB
/** Longer than filling that would take if nothing bounded it. */
const FLOOD_MS = 5_000
const LONG = { timeout: 300_000 }

describeWithPeers('a target that floods', PEERS, () => {
  let bastion: Bastion
  let cookie: string
  beforeAll(async () => {
    bastion = await startBastion({ authorization: { recording_mode: 'strict' } })
    cookie = await signInAs(bastion.broker, 'admin', ADMIN_PASSWORD)
    // Floods without a terminal are recorded, too.
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', { recording_quota: 8 * 2 ** 30 })
    // A session of the same kind has warmed up the broker.
    const bytes = 64 * 2 ** 20
    expect((await ssh(bastion.home, bastion.login(), [`head -c ${bytes} /dev/zero`])).bytes.length).toBe(
      bytes,
    )
  }, 300_000)
  afterAll(() => bastion?.stop())

  const current = (): Promise<SessionRow[]> =>
    bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
  // A killed client's session ends a moment later, and only then is its memory free.
  beforeEach(() => until('no session', async () => (await current()).length === 0))

  const running = (): Promise<SessionRow> =>
    until('a running session', async () => {
      const [row] = await current()
      return row
    })
  const received = async ({ id }: SessionRow): Promise<number> =>
    (await bastion.broker.must<SessionRow>('GET', `/sessions/${id}`)).bytes_out

  /** Returns the broker's largest memory during `work`, minus its memory before. */
  async function growth(work: () => Promise<unknown>): Promise<number> {
    const before = residentOf(bastion)
    let most = before
    const timer = setInterval(() => {
      most = Math.max(most, residentOf(bastion))
    }, 50)
    await work().finally(() => clearInterval(timer))
    return most - before
  }

  test('at a strict session whose client has stopped reading', LONG, async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), ['yes 0123456789'])
    await terminal.expect('0123456789')
    const session = await running()
    terminal.signal(19)
    expect(await growth(() => sleep(FLOOD_MS))).toBeLessThan(ALLOWED)
    const held = await received(session)
    await sleep(500)
    // The flood has stopped, so speed is not the limit.
    expect(await received(session)).toBe(held)
    expect((await ssh(bastion.home, bastion.login(), ['echo alive'])).stdout).toBe('alive\n')
    terminal.signal(9)
    await terminal.exit()
  })

  test('at watchers who have stopped reading', LONG, async () => {
    const terminal = sshTerminal(bastion.home, bastion.login(), [
      'sleep 2; timeout 6 yes 0123456789; echo do\\ne',
    ])
    const session = await running()
    const watchers = await Promise.all(
      Array.from({ length: 4 }, () => watchLive(bastion.broker, session.id, { headers: { cookie } })),
    )
    for (const { socket } of watchers) socket.pause()
    expect(await growth(() => terminal.expect('done', 60_000))).toBeLessThan(ALLOWED)
    await terminal.exit()
    for (const { socket } of watchers) socket.terminate()
  })

  test('terminals of 65,535 columns and rows are drawn, watched and exported', LONG, async () => {
    const size = { columns: 65_535, lines: 65_535 }
    const command =
      'printf "\\033[65535;65535Hcorner\\033[2J\\033[65535L\\033[65535@\\033[65535b"; echo do\\ne; read x'
    const terminal = sshTerminal(bastion.home, bastion.login(), [command], size)
    const session = await running()
    const drawn = await growth(async () => {
      const watcher = await watchLive(bastion.broker, session.id, { headers: { cookie } })
      await terminal.expect('done')
      await until('the keyframe', () => watcher.messages.find(({ type }) => type === 'keyframe'))
      terminal.send('\r')
      await terminal.exit()
      await watcher.closed
    })
    expect(drawn).toBeLessThan(ALLOWED)
    const exported = await growth(async () => {
      for (const form of ['txt', 'html', 'png', 'webm']) {
        const path = `/api/sessions/${session.id}/recording.${form}`
        expect((await weighed(bastion.broker, path, { cookie })).status, form).toBe(200)
      }
    })
    expect(exported).toBeLessThan(ALLOWED_EXPORT)
  })

  test('at whoever exports what it has sent', LONG, async () => {
    const most = 48 * 2 ** 20
    // Zeros: a few KiB on disk become the whole again when they are read.
    const before = (await bastion.closedSessions()).length
    const flooded = await ssh(bastion.home, bastion.login(), [`head -c ${most} /dev/zero | tr '\\0' x`])
    expect(flooded.bytes.length).toBe(most)
    const session = (await bastion.closedSessions(before + 1)).at(-1)!
    for (const form of ['txt', 'cast']) {
      const path = `/api/sessions/${session.id}/recording.${form}`
      let answer = { status: 0, size: 0 }
      const grown = await growth(async () => {
        answer = await weighed(bastion.broker, path, { cookie })
      })
      // A thread whose heap exceeds its limit (256 MiB) ends, and the export with it.
      expect(answer.status, form).toBe(200)
      expect(answer.size, form).toBeGreaterThan(most)
      expect(grown, form).toBeLessThan(ALLOWED_EXPORT)
    }
  })
})
