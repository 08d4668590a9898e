/** A newer broker replaces one that runs: its sessions run on in the old one, new ones begin in the new one. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ControlClient } from '../../src/control/client.ts'
import { type Broker, metricsOf, startBroker } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { APPROVAL, addApprovers } from './approvers.ts'
import { type Bastion, eventsIn, type SessionRow, startBastion } from './bastion.ts'
import { framesOf, sallyport, streamOf } from './recorded.ts'

/** For tests that start several brokers: on a busy machine each takes seconds. */
const SLOW = { timeout: 300_000 }
/** Answers what is typed, after more output than a recording without an index has. */
const ANSWERS = 'stty -echo; head -c 100000 /dev/urandom | base64; while read -r a; do echo "<$a>"; done'

let dataFolder: string
let backupFolder: string
let bastion: Bastion
let newer: Broker | undefined
const terminals: Terminal[] = []

beforeEach(async () => {
  dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-takeover-'))
  backupFolder = `${dataFolder}-backup`
  bastion = await startBastion({ credential: 'password', broker: { dataFolder } })
}, SLOW.timeout)
afterEach(async () => {
  for (const terminal of terminals.splice(0)) await terminal.close()
  await newer?.stop()
  newer = undefined
  await bastion.stop()
  for (const folder of [dataFolder, backupFolder]) rmSync(folder, { recursive: true, force: true })
}, SLOW.timeout)

const current = (broker: Broker) => broker.must<SessionRow[]>('GET', '/sessions?status=current&sort=begin')
const row = (broker: Broker, id: string) => broker.must<SessionRow>('GET', `/sessions/${id}`)
const controlSockets = () => readdirSync(dataFolder).filter((name) => name.startsWith('control'))

/** Opens a session that answers what is typed. */
async function openSession(): Promise<Terminal> {
  const terminal = sshTerminal(bastion.home, bastion.login(), [ANSWERS])
  terminals.push(terminal)
  await typed(terminal, 'before')
  return terminal
}

async function typed(terminal: Terminal, text: string): Promise<void> {
  terminal.send(`${text}\r`)
  await terminal.expect(`<${text}>`)
}

async function replace(flags: string[] = []): Promise<Broker> {
  const { ports } = bastion.broker
  newer = await startBroker({ dataFolder, ports, flags: ['--takeover', ...flags] })
  return newer
}

const closed = (broker: Broker, id: string) =>
  until('the end of the session', async () => {
    const found = await row(broker, id)
    return found.result === undefined || found.result === null ? undefined : found
  })

describeWithPeers('a broker that replaces another', ['sshd', 'ssh'], () => {
  test('serves new sessions, while one of the old broker runs on to its end', SLOW, async () => {
    const old = bastion.broker
    const terminal = await openSession()
    const [first] = await current(old)
    let isTyping = true
    let lines = 0
    const typing = (async () => {
      while (isTyping) await typed(terminal, `during ${lines++}`)
    })()
    const broker = await replace()
    isTyping = false
    await typing
    await typed(terminal, 'after')

    expect(readFileSync(join(dataFolder, 'sallyport.pid'), 'utf8')).toBe(`${broker.pid}\n`)
    expect(existsSync(`/proc/${old.pid}`)).toBe(true)
    expect((await current(broker)).map(({ id }) => id)).toEqual([first!.id])
    const nodes = (await metricsOf(broker)).match(/^sallyport_(broker|worker_(up|sessions)).*/gm)
    expect(nodes).toEqual([
      'sallyport_broker_sessions{broker="1"} 0',
      'sallyport_broker_sessions{broker="2"} 1',
      'sallyport_broker_state{broker="1",state="serving"} 1',
      'sallyport_broker_state{broker="2",state="replaced"} 1',
      'sallyport_worker_up{worker="1"} 1',
      'sallyport_worker_sessions{worker="1"} 0',
    ])
    expect(await ssh(bastion.home, bastion.login(), ['echo second'])).toMatchObject({ stdout: 'second\n' })
    expect(eventsIn(broker.log())).toContainEqual(
      expect.objectContaining({
        event: 'service.start',
        reason: `it replaced process ${old.pid}; sessions that run on elsewhere: 1`,
      }),
    )

    terminal.send('\x04')
    expect(await terminal.exit()).toBe(0)
    expect(await old.ended).toBe(0)
    expect(controlSockets()).toEqual(['control.sock'])
    await until('the end of its figures', async () => !(await metricsOf(broker)).includes('broker="2"'))
    expect(await closed(broker, first!.id)).toMatchObject({
      result: 'success',
      recording: { state: 'sealed' },
    })
    const output = streamOf(await framesOf(broker, first!.id), 'output').toString()
    for (const text of ['<before>', `<during ${lines - 1}>`, '<after>']) expect(output).toContain(text)
    const verified = await sallyport(broker, ['recordings', 'verify'])
    expect(verified.stdout).toMatch(/^(\S+ {2}ok, sealed.*\n){2}$/)
    expect((await sallyport(broker, ['audit', 'verify'])).stdout).toMatch(/^ok: \d+ rows/)
    // The receivers of the newer broker have the events of the old one.
    expect(eventsIn(broker.log())).toContainEqual(
      expect.objectContaining({ event: 'session.close', session: first!.id, result: 'success' }),
    )
    // Its index is made by the newer one.
    await until('the index', () => (existsSync(indexOf(first!.id)) ? true : undefined))
  })

  test('accounts at once for the sessions of an old one that is killed', SLOW, async () => {
    const old = bastion.broker
    await openSession()
    const [first] = await current(old)
    const broker = await replace()
    expect(await current(broker)).toHaveLength(1)
    await old.kill()
    const lost = await closed(broker, first!.id)
    expect(lost).toMatchObject({ result: 'lost', recording: { state: 'recovered' } })
    expect(lost.reason).toMatch(
      /^the replaced broker, where it ran, ended without closing it; its recording is sealed/,
    )
    const verified = await sallyport(broker, ['recordings', 'verify', first!.id])
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('ok, recovered') })
    expect(controlSockets()).toEqual(['control.sock'])
  })

  test('ends a session of the old one on request, but neither shows nor shares it', SLOW, async () => {
    const terminal = await openSession()
    const [first] = await current(bastion.broker)
    const broker = await replace()
    expect(await broker.api('GET', `/sessions/${first!.id}/live`)).toMatchObject({
      status: 409,
      body: { error: 'runs_elsewhere' },
    })
    await broker.must('POST', `/sessions/${first!.id}/kill`, { reason: 'enough' })
    await terminal.expect('ended by admin: enough')
    expect(await closed(broker, first!.id)).toMatchObject({
      result: 'killed',
      reason: 'ended by admin: enough',
    })
    expect(await bastion.broker.ended).toBe(0)
  })

  test('shows what is suspended in the old one, and resumes it', SLOW, async () => {
    const terminal = await openSession()
    const [first] = await current(bastion.broker)
    await bastion.broker.must('POST', `/sessions/${first!.id}/suspend`, { reason: 'look at it' })
    const broker = await replace()
    const held = async () => (await row(broker, first!.id)).suspended
    expect(await held()).toMatchObject({ reason: 'look at it (admin)', by: 'admin' })
    await broker.must('POST', `/sessions/${first!.id}/resume`)
    await until('the resumption', async () => ((await held()) === null ? true : undefined))
    await typed(terminal, 'again')
    await broker.must('POST', `/sessions/${first!.id}/suspend`, { reason: 'once more' })
    await until('the order', async () => ((await held())?.reason === 'once more (admin)' ? true : undefined))
    await broker.must('POST', `/sessions/${first!.id}/kill`, { reason: 'enough' })
  })

  test(
    'a client that waits for an approval reads that its request stays, and has it there',
    SLOW,
    async () => {
      const approvers = await addApprovers(bastion.broker)
      const [authorization] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
      await bastion.broker.must('PUT', `/authorizations/${authorization!.id}`, APPROVAL)
      const waiting = () => {
        const terminal = sshTerminal(bastion.home, bastion.login(), [ANSWERS])
        terminals.push(terminal)
        return terminal
      }
      const first = waiting()
      const { id } = await approvers.next()
      await replace()
      await first.expect(`connect again, the request ${id} stays`)
      const again = waiting()
      await again.expect(id)
      await approvers.answer(id, 'accept')
      // Keys before the session's output go nowhere.
      await again.expect(/[\w+/]{76}\r\n/)
      await typed(again, 'here')
      expect((await approvers.all()).map((one) => [one.id, one.status])).toEqual([[id, 'accepted']])
    },
  )

  test('withdraws a right, and the session in the old one ends', SLOW, async () => {
    const terminal = await openSession()
    const broker = await replace()
    await broker.must('PUT', '/users/ops1', { is_disabled: true })
    await terminal.expect('sallyport: ', 10_000)
    expect(await bastion.broker.ended).toBe(0)
  })

  test('leaves the sessions of the old one alone when it crashes and starts again', SLOW, async () => {
    const terminal = await openSession()
    const [first] = await current(bastion.broker)
    const broker = await replace()
    await broker.kill()
    newer = await startBroker({ dataFolder, ports: broker.ports })
    expect((await current(newer)).map(({ id }) => id)).toEqual([first!.id])
    await typed(terminal, 'still')
    // Two brokers may have been replaced at a time.
    const newest = await replace()
    await typed(terminal, 'and still')
    terminal.send('\x04')
    expect(await terminal.exit()).toBe(0)
    expect(await closed(newest, first!.id)).toMatchObject({
      result: 'success',
      recording: { state: 'sealed' },
    })
  })

  test('with a grace: users of the old one are told, and their sessions end after it', SLOW, async () => {
    const terminal = await openSession()
    const [first] = await current(bastion.broker)
    const broker = await replace(['--grace', '2s'])
    await terminal.expect('the bastion is being replaced: this session ends in 2 s at the latest')
    expect(await closed(broker, first!.id)).toMatchObject({
      result: 'killed',
      reason: 'the bastion is being replaced',
    })
    expect(await bastion.broker.ended).toBe(0)
  })

  test('a newer one that dies while it takes over leaves the listeners to the old one', SLOW, async () => {
    const terminal = await openSession()
    const dying = await ControlClient.connect(join(dataFolder, 'control.sock'))
    dying!.ask({ type: 'takeOver', pid: 1 }).catch(() => undefined)
    await dying!.status()
    dying!.destroy()
    await until('the report', () =>
      bastion.broker.log().includes('the broker that was to replace this one has ended') ? true : undefined,
    )
    expect(await ssh(bastion.home, bastion.login(), ['echo served'])).toMatchObject({ stdout: 'served\n' })
    const broker = await replace()
    await typed(terminal, 'after')
    expect(await current(broker)).toHaveLength(1)
    terminal.send('\x04')
    expect(await terminal.exit()).toBe(0)
    expect(await bastion.broker.ended).toBe(0)
  })

  test(
    'answers on its control socket from the takeover on, and is drained when it has started',
    SLOW,
    async () => {
      const states: string[] = []
      const replaced = replace().catch(() => undefined)
      const path = join(dataFolder, 'control.sock')
      const drained = await until(
        'a broker that starts',
        async () => {
          const client = await ControlClient.connect(path)
          if (!client) return undefined
          const status = await client.status().catch(() => undefined)
          if (status) states.push(status.state)
          if (status?.state === 'starting') {
            await client.ask({ type: 'drain', graceMs: 0 })
            return client
          }
          client.destroy()
          return status && status.pid !== bastion.broker.pid ? null : undefined
        },
        SLOW.timeout,
      )
      expect(drained, states.join()).not.toBeNull()
      await drained!.onClosed
      await replaced
      expect(controlSockets()).toEqual([])
      newer = undefined
    },
  )

  test('a backup is whole while both run, and the keys stay as they are', SLOW, async () => {
    const terminal = await openSession()
    const broker = await replace()
    const saved = await sallyport(broker, ['backup', backupFolder])
    expect(saved).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('is whole: 1 sessions (1 running)'),
    })
    await broker.stop()
    const rotated = await sallyport(bastion.broker, ['master-key', 'rotate', '--data-key'])
    expect(rotated).toMatchObject({ code: 1, stderr: expect.stringContaining('stop the broker first') })
    await typed(terminal, 'still')
    const drained = await sallyport(bastion.broker, ['drain', '--grace', '0'])
    expect(drained).toMatchObject({ code: 0, stdout: expect.stringMatching(/the broker has ended\n$/) })
    expect(await bastion.broker.ended).toBe(0)
  })
})

/** Returns the path of a session's index. */
function indexOf(session: string): string {
  const below = readdirSync(join(dataFolder, 'recordings'), { recursive: true, encoding: 'utf8' })
  const found = below.find((path) => path.includes(session) && path.endsWith('session.idx'))
  return found === undefined ? join(dataFolder, 'none') : join(dataFolder, 'recordings', found)
}
