/**
 * The search finds the actions in sessions of real clients, to the second, but no input without echo;
 * deletion empties it.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Broker, startBroker } from '../peers/broker.ts'
import { sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import { filesWith, sallyport } from './recorded.ts'

interface Found {
  time: number
  channel: number | null
  field: string
  excerpt: string
}

const query = (q: string) => new URLSearchParams({ q }).toString()
const search = (broker: Broker, q: string) => broker.must<SessionRow[]>('GET', `/sessions?${query(q)}`)
const matches = (broker: Broker, id: string, q: string) =>
  broker.must<Found[]>('GET', `/sessions/${id}/matches?${query(q)}`)
const foundSoon = (broker: Broker, q: string) =>
  until(q, async () => {
    const found = await search(broker, q)
    return found.length > 0 ? found : undefined
  })
const inIndex = (broker: Broker, text: string) =>
  readdirSync(broker.dataFolder)
    .filter((name) => name.startsWith('search.db'))
    .filter((name) => readFileSync(join(broker.dataFolder, name)).includes(text))

describeWithPeers('searching sessions of', ['sshd', 'ssh', 'sftp'], () => {
  let bastion: Bastion
  beforeAll(async () => {
    bastion = await startBastion()
  })
  afterAll(() => bastion.stop())

  test('a terminal: commands while it runs, output afterwards, and no password', async () => {
    const { broker, home } = bastion
    const secret = `canary${randomBytes(9).toString('hex')}`
    const terminal = sshTerminal(home, bastion.login(), [], {})
    await terminal.expect('$ ')
    terminal.send('echo marker"-"of-output; read -s -p "secret: " x; printf %s $x | wc -c\r')
    await terminal.expect(/marker-of-output[\s\S]*secret: $/)
    terminal.send(`${secret}\r`)
    await terminal.expect(`${secret.length}\r\n`)
    const [running] = await foundSoon(broker, 'command~"read -s" && result=""')
    expect(await matches(broker, running!.id, 'command~read')).toMatchObject([
      { field: 'command', channel: null },
    ])
    terminal.send('exit\r')
    await terminal.exit()
    const session = await until('the output of this session', async () =>
      (await search(broker, 'output~24 && output~marker')).find(({ id }) => id === running!.id),
    )
    const lines = await matches(broker, session!.id, 'output~"marker of output"')
    const line = lines.find(({ excerpt }) => excerpt === 'marker-of-output')
    expect(line).toMatchObject({ field: 'output', channel: expect.any(Number) })
    expect(line!.time).toBeGreaterThan(0)
    expect(line!.time).toBeLessThan(60)

    expect(await search(broker, `output~${secret} || command~${secret} || file~${secret}`)).toEqual([])
    expect(filesWith(broker.dataFolder, [secret])).toEqual([])
    expect(broker.log()).not.toContain(secret)

    const shown = await sallyport(broker, ['recordings', 'search', 'marker of out*', '--output'])
    expect(shown.code).toBe(0)
    expect(shown.stdout).toMatch(new RegExp(`^${session!.id} +\\d+\\.\\d{3} .*output: .*marker-of-output`))
    const json = await sallyport(broker, ['recordings', 'search', 'marker', '--json'])
    expect(
      json.stdout
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text)),
    ).toContainEqual(
      expect.objectContaining({
        session: session!.id,
        user: 'ops1',
        field: 'output',
        channel: expect.any(Number),
      }),
    )
    expect((await sallyport(broker, ['recordings', 'search', 'nothing-of-this'])).code).toBe(1)
    expect((await sallyport(broker, ['recordings', 'search', '--', '-'])).code).toBe(2)
  })

  test('files: what was copied, and what else was done with them', async () => {
    const { broker, home } = bastion
    writeFileSync(join(home.folder, 'ledger.txt'), 'content')
    const done = await sftp(home, bastion.login(), [
      `put ${join(home.folder, 'ledger.txt')} ledger.txt`,
      'rename ledger.txt ledger-of-may.txt',
    ])
    expect(done.code, done.stderr).toBe(0)
    const [session] = await foundSoon(broker, 'file~"rename" && file~"ledger of may"')
    // One line comes from the recording, the other from the audit log, in any order.
    const shown = await until('both', async () => {
      const found = await matches(broker, session!.id, 'file~ledger')
      return found.length >= 2 ? found.map(({ excerpt }) => excerpt.replace(/\/\S*\//g, '')) : undefined
    })
    expect(shown).toEqual(expect.arrayContaining(['ledger.txt', 'rename ledger.txt ledger-of-may.txt']))
  })

  test('a recording that is deleted is found no more, and its text is nowhere in the index', async () => {
    const { broker, home } = bastion
    const word = `word${randomBytes(6).toString('hex')}`
    await ssh(home, bastion.login(), ['echo', word])
    const [session] = await foundSoon(broker, `output~${word} && command~echo`)
    expect(inIndex(broker, word)).not.toEqual([])
    await broker.must('DELETE', `/sessions/${session!.id}/recording?reason=asked+for`)
    await until('the index to forget', async () =>
      (await search(broker, `output~${word} || command~${word}`)).length === 0 ? true : undefined,
    )
    expect(inIndex(broker, word)).toEqual([])
  })

  test('what a crash has left out is found after the next start', async () => {
    const { broker, home } = bastion
    const { length } = await bastion.closedSessions()
    await ssh(home, bastion.login(), ['echo', 'before-the-crash'])
    await bastion.closedSessions(length + 1)
    await broker.kill()
    const { dataFolder, ports } = broker
    for (const name of readdirSync(dataFolder)) {
      if (name.startsWith('search.db')) rmSync(join(dataFolder, name))
    }
    bastion.broker = await startBroker({ dataFolder, ports })
    expect(await foundSoon(bastion.broker, 'output~"before the crash"')).toHaveLength(1)
    expect(await foundSoon(bastion.broker, 'command~"before the crash"')).toHaveLength(1)
  })
})

describeWithPeers('recordings that only auditors open', ['sshd', 'ssh', 'age'], () => {
  let bastion: Bastion
  let identity: string
  beforeAll(async () => {
    const made = await run('age-keygen', [])
    const recipient = /public key: (age1\S+)/.exec(`${made.stdout}${made.stderr}`)?.[1]
    bastion = await startBastion({
      broker: { config: { recordings: { recipients: [recipient], broker_key: false } } },
    })
    identity = join(bastion.home.folder, 'identity.txt')
    writeFileSync(identity, made.stdout, { mode: 0o600 })
  })
  afterAll(() => bastion.stop())

  test('the broker exports and searches none of it, the auditor’s key opens it', async () => {
    const { broker, home } = bastion
    await ssh(home, bastion.login(), ['echo', 'for-auditors', '$((40+2))'])
    const [session] = await bastion.closedSessions(1)
    const { id } = session!
    for (const form of ['cast', 'txt', 'json']) {
      const answer = await broker.api<{ error: string }>('GET', `/sessions/${id}/recording.${form}`)
      expect([answer.status, answer.body.error]).toEqual([409, 'sealed_to_auditors'])
    }
    const container = await broker.api('GET', `/sessions/${id}/recording`)
    expect(container.status).toBe(200)
    expect((await broker.api('GET', `/sessions?${query('output~auditors')}`)).status).toBe(409)
    expect(await foundSoon(broker, 'command~"for auditors"')).toMatchObject([{ id }])
    expect(inIndex(broker, 'for-auditors 42')).toEqual([])

    for (const action of ['play', 'export']) {
      const refused = await sallyport(broker, ['recordings', action, id])
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--identity')])
      const opened = await sallyport(broker, ['recordings', action, id, '--identity', identity])
      expect(opened.stdout, opened.stderr).toContain('for-auditors 42')
    }
    const verified = await sallyport(broker, ['recordings', 'verify', id])
    expect(verified.stdout).toContain('ok, sealed')
    const wrong = await sallyport(broker, ['recordings', 'play', id, '--identity', broker.configFile])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('AGE-SECRET-KEY')])
    expect((await sallyport(broker, ['recordings', 'search', 'x', '--output'])).stderr).toContain(
      'only auditors',
    )
    const checked = await sallyport(broker, ['check'])
    expect(checked.stdout).toMatch(/recordings +only 1 recipient/)
  })
})
