/** Watching a running session through a real sshd, a real ssh, and a WebSocket client. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_PASSWORD, callApi } from '../peers/broker.ts'
import { type LiveWatcher, watchLive } from '../peers/live.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import type { Terminal } from '../peers/terminal.ts'
import { until } from '../until.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'

describeWithPeers('live', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  let cookie: string
  const watchers: LiveWatcher[] = []
  const terminals: Terminal[] = []

  beforeAll(async () => {
    bastion = await startBastion({ credential: 'password' })
    cookie = await signIn('admin', ADMIN_PASSWORD)
  })
  afterAll(async () => {
    for (const { socket } of watchers) socket.terminate()
    for (const terminal of terminals) await terminal.close()
    await bastion.stop()
  })

  const request = <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    callApi<T>(
      bastion.broker.ports.https,
      readFileSync(join(bastion.broker.dataFolder, 'tls', 'cert.pem')),
      method,
      path,
      body,
      headers,
    )
  async function signIn(user: string, password: string): Promise<string> {
    const answer = await request('POST', '/session', { user, password })
    const [set] = [answer.headers['set-cookie'] ?? []].flat()
    if (set === undefined) throw new Error(`${user} cannot sign in: ${answer.status}`)
    return set.split(';')[0]!
  }
  const watch = async (session: string, headers: Record<string, string> = { cookie }) => {
    const watcher = await watchLive(bastion.broker, session, { headers })
    watchers.push(watcher)
    return watcher
  }
  async function shell(command: string[] = []): Promise<{ terminal: Terminal; session: SessionRow }> {
    const before = new Set((await current()).map(({ id }) => id))
    const terminal = sshTerminal(bastion.home, bastion.login(), command)
    terminals.push(terminal)
    const session = await until('a session', async () => (await current()).find(({ id }) => !before.has(id)))
    return { terminal, session }
  }
  const current = () => bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
  const seen = (watcher: LiveWatcher, text: string) =>
    until(`${text} on a watcher's screen`, async () => (await watcher.screen()).includes(text) || undefined)

  test('shows the screen as it is, then what happens, with the same bytes as the recording', async () => {
    const { terminal, session } = await shell(['sh'])
    terminal.send("PS1='$ '; clear; echo be\\fore\r")
    await terminal.expect('before')
    const first = await watch(session.id)
    await seen(first, 'before')
    expect(first.messages[0]).toMatchObject({ type: 'header', session: session.id, user: 'ops1' })
    expect(first.messages[1]).toMatchObject({ type: 'keyframe', gap: false })
    expect(first.messages[1]!.channels).toHaveLength(1)
    expect(first.messages[1]!.channels![0]).toMatchObject({ columns: 80, rows: 24, data: { kind: 'exec' } })
    await terminal.expect('admin watches this session')

    terminal.send('echo af\\ter\r')
    await terminal.expect('after')
    await seen(first, 'after')
    const second = await watch(session.id)
    await seen(second, 'after')
    expect(await second.screen()).toBe(await first.screen())
    terminal.resize(100, 30)
    terminal.send('echo bo\\th\r')
    await seen(first, 'both')
    await seen(second, 'both')
    const resize = await until('the new size', () => first.messages.find(({ type }) => type === 'resize'))
    expect(resize.data).toEqual({ columns: 100, rows: 30 })
    await second.close()
    await terminal.expect('admin no longer watches this session')

    terminal.send('exit\r')
    expect(await first.closed).toEqual({ code: 1000, reason: 'the session has ended' })
    expect(first.messages.at(-1)).toEqual({ type: 'end', result: 'success' })
    const begun = await bastion.events('watch.begin', 2)
    expect(begun[0]).toMatchObject({
      session: session.id,
      user: 'admin',
      profile: 'product_administrator',
      object: 'ops1',
      object_type: 'user',
    })
    const ended = await bastion.events('watch.end', 2)
    expect(ended.map(({ reason }) => reason)).toEqual([undefined, 'the session has ended'])
    expect(ended[0]!['duration']).toBeGreaterThan(0)
  })

  test('shows a command without a terminal, and what it says, soon after it says so', async () => {
    const { session } = await shell([])
    const other = ssh(bastion.home, bastion.login(), [
      'sleep 2; for n in 1 2 3 4 5 6 7 8; do date +%s%3N; sleep 0.2; done',
    ])
    const row = await until('the command', async () => (await current()).find(({ id }) => id !== session.id))
    const watcher = await watch(row.id)
    expect((await other).code).toBe(0)
    await watcher.closed
    const outputs = watcher.messages.flatMap((message, index) =>
      message.type === 'output' ? [{ message, at: performance.timeOrigin + watcher.times[index]! }] : [],
    )
    const delays = outputs.map(
      ({ message, at }) => at - Number(Buffer.from(message.base64!, 'base64').toString()),
    )
    expect(delays.length).toBeGreaterThanOrEqual(8)
    expect(delays.sort((a, b) => a - b)[Math.floor(delays.length / 2)]).toBeLessThan(200)
    expect(watcher.messages.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['exit', 'channel_close', 'end']),
    )
  })

  test('ends a session from there, for who may; others read that they may not', async () => {
    const { terminal, session } = await shell(['sh'])
    terminal.send('echo rea\\dy\r')
    await terminal.expect('ready')
    await bastion.broker.must('POST', '/users', {
      user_name: 'aud1',
      display_name: 'aud1',
      email: 'aud1@example.com',
      profile: 'auditor',
      user_auths: ['local_password'],
      password: 'aud1 password',
    })
    const auditor = await watch(session.id, { cookie: await signIn('aud1', 'aud1 password') })
    auditor.socket.send(JSON.stringify({ type: 'kill', reason: 'no' }))
    await until('the refusal', () => auditor.messages.find(({ error }) => error === 'forbidden'))
    const admin = await watch(session.id)
    admin.socket.send(JSON.stringify({ type: 'kill', reason: 'seen enough' }))
    await terminal.expect('ended by admin: seen enough')
    expect(await admin.closed).toEqual({ code: 1000, reason: 'the session has ended' })
    expect(admin.messages.at(-1)).toMatchObject({ type: 'end', result: 'killed' })
    const kill = (await bastion.events('session.kill', 1)).at(-1)
    expect(kill).toMatchObject({ session: session.id, user: 'admin', reason: 'seen enough' })
    await auditor.closed

    // Any other message ends the watching, but not the session.
    const next = await shell(['sh'])
    for (const message of ['{"type":"kill"}', '{"type":"type","text":"rm"}', 'x', '[]']) {
      const watcher = await watch(next.session.id)
      watcher.socket.send(message)
      expect((await watcher.closed).code).toBe(1008)
    }
    const large = await watch(next.session.id)
    large.socket.send('x'.repeat(10_000))
    expect((await large.closed).code).toBe(1009)
    expect((await current()).map(({ id }) => id)).toContain(next.session.id)
  })

  test('sees the session from its first moment on', async () => {
    for (let times = 0; times < 5; times++) {
      // A session is listed as soon as it is opened: before its recording has begun, and before its target
      // has answered.
      const { terminal, session } = await shell(['sh'])
      const watcher = await watch(session.id)
      terminal.send('echo fi\\rst\r')
      await seen(watcher, 'first')
      terminal.send('exit\r')
      await watcher.closed
    }
  })

  test('a flood is watched as far as anybody can, beside somebody who does not read', {
    timeout: 300_000,
  }, async () => {
    const { terminal, session } = await shell(['sh'])
    terminal.send("PS1='$ '; clear; sleep 1; timeout 4 yes flooding; clear; echo ca\\lm\r")
    const watcher = await watch(session.id)
    const asleep = await watch(session.id)
    asleep.socket.pause()
    await terminal.expect('calm', 30_000)
    await seen(watcher, 'calm')
    const keyframes = watcher.messages.filter(({ type }) => type === 'keyframe')
    expect(keyframes.length).toBeGreaterThan(1)
    expect(keyframes.slice(1).every(({ gap }) => gap)).toBe(true)
    const sent = watcher.messages.reduce((sum, { base64 }) => sum + (base64?.length ?? 0), 0)
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    terminal.send('exit\r')
    await watcher.closed
    asleep.socket.resume()
    await asleep.closed
  })

  describe('the right to it', () => {
    let id: string
    beforeAll(async () => {
      id = (await shell(['sh'])).session.id
    })

    test.each([
      ['nobody', {}, '401 '],
      ['a cookie of nobody', { cookie: 'sallyport_session=x' }, '401 '],
      ['a user without the right', 'ops1', '403 {"error":"forbidden"'],
      ['another site', { origin: 'https://evil.example' }, '403 {"error":"cross_site"'],
      ['another site by a browser', { 'sec-fetch-site': 'cross-site' }, '403 {"error":"cross_site"'],
      ['a page in a sandbox', { origin: 'null' }, '403 {"error":"cross_site"'],
    ])('is not that of %s (attack cases 27 and 30)', async (_, who, refused) => {
      const headers =
        who === 'ops1'
          ? { cookie: await signIn('ops1', bastion.password) }
          : Object.keys(who).some((name) => name.startsWith('o') || name.startsWith('sec'))
            ? { cookie, ...(who as Record<string, string>) }
            : (who as Record<string, string>)
      await expect(watch(id, headers)).rejects.toThrow(refused)
    })

    test('is asked like any other: what is not there, has ended, or is no WebSocket', async () => {
      await expect(watch('01JD0000000000000000000009')).rejects.toThrow('404 {"error":"not_found"')
      const done = await bastion.closedSessions(1)
      await expect(watch(done[0]!.id)).rejects.toThrow('409 {"error":"not_running"')
      const plain = await request('GET', `/sessions/${id}/live`, undefined, { cookie })
      expect(plain).toMatchObject({ status: 426, body: { error: 'upgrade_required' } })
      const sameOrigin = { cookie, origin: `https://127.0.0.1:${bastion.broker.ports.https}` }
      await (await watch(id, sameOrigin)).close()
    })

    test.each([
      ['the user is disabled', 4401],
      ['the user signs out', 4401],
      ['the profile loses the right', 4403],
      ['the API key is removed', 4401],
    ])('ends when %s, within the interval of reviews', { timeout: 300_000 }, async (what, code) => {
      const name = `aud-${code}-${what.length}`
      await bastion.broker.must('POST', '/users', {
        user_name: name,
        display_name: name,
        email: `${name}@example.com`,
        profile: 'auditor',
        user_auths: ['local_password'],
        password: `${name} password`,
      })
      const own = { cookie: await signIn(name, `${name} password`) }
      const key = await bastion.broker.must<{ id: string; api_key: string }>('POST', '/apikeys', {
        key_name: name,
        profile: 'auditor',
      })
      const watcher = await watch(
        id,
        what.includes('key') ? { 'x-auth-key': key.api_key, 'x-auth-user': name } : own,
      )
      await until('the keyframe', () => watcher.messages.find(({ type }) => type === 'keyframe'))
      const changes: Record<string, () => Promise<unknown>> = {
        'the user is disabled': () => bastion.broker.must('PUT', `/users/${name}`, { is_disabled: true }),
        'the user signs out': () => request('DELETE', '/session', undefined, own),
        'the profile loses the right': () =>
          bastion.broker.must('PUT', `/users/${name}`, { profile: 'user' }),
        'the API key is removed': () => bastion.broker.must('DELETE', `/apikeys/${key.id}`),
      }
      const begin = performance.now()
      await changes[what]!()
      expect((await watcher.closed).code).toBe(code)
      expect(performance.now() - begin).toBeLessThan(8_000)
    })
  })

  test('sessions that are not recorded are not watched', async () => {
    const [first] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    await bastion.broker.must('PUT', `/authorizations/${first!.id}`, { is_recorded: false })
    const { session } = await shell(['sh'])
    await expect(watch(session.id)).rejects.toThrow('409 {"error":"not_recorded"')
    await bastion.broker.must('PUT', `/authorizations/${first!.id}`, { is_recorded: true })
  })

  test('a user whose policy says so is not told', async () => {
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', { tell_watched: false })
    const { terminal, session } = await shell(['sh'])
    const watcher = await watch(session.id)
    terminal.send('echo qui\\et\r')
    await terminal.expect('quiet')
    await seen(watcher, 'quiet')
    expect(terminal.output()).not.toContain('watches this session')
  })
})
