/**
 * Attack cases 46 and 47: the contents, names and descriptions of a session are shown to auditors and
 * administrators by the command line, the API, the live view and the page of a recording, and have no effect
 * there.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bastion, type SessionRow, startBastion } from '../e2e/bastion.ts'
import { sallyport } from '../e2e/recorded.ts'
import { ADMIN_PASSWORD } from '../peers/broker.ts'
import { type Browser, type Page, startChromium } from '../peers/chromium.ts'
import { watchLive } from '../peers/live.ts'
import { sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import { BREAKOUT, MARKUP, NAME, SEQUENCES, UNSAFE } from './hostile.ts'
import { type Answer, sendAsIs, signInAs } from './requests.ts'
import { noSession } from './setting.ts'

const LONG = 120_000
/** Like the file's name, for a command line and a reason. */
const C1 = `\u009b2J \u009d0;owned\u009c \u202e${NAME}`

describeWithPeers('what is hostile', ['sshd', 'ssh', 'sftp', 'chromium'], () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-hostile-'))
  let bastion: Bastion
  let cookie: string
  let shell: SessionRow
  let sessions: SessionRow[]
  /** The messages to a watcher of the shell. */
  let live = ''

  const get = (path: string): Promise<Answer> => sendAsIs(bastion.broker, 'GET', path, { cookie })

  beforeAll(async () => {
    bastion = await startBastion()
    const { account, broker, home } = bastion
    cookie = await signInAs(broker, 'admin', ADMIN_PASSWORD)
    await broker.must('PUT', '/users/ops1', { display_name: NAME })
    await broker.must('PUT', '/devices/srv1', { description: `${BREAKOUT}\u202e` })

    const file = join(account.home, 'hostile')
    writeFileSync(file, `${SEQUENCES}\r\n${BREAKOUT}\r\n`, { mode: 0o644 })
    const terminal = sshTerminal(home, bastion.login())
    await terminal.expect(account.prompt)
    ;[shell] = (await broker.must('GET', '/sessions?status=current')) as [SessionRow]
    const watcher = await watchLive(broker, shell.id, { headers: { cookie } })
    watcher.socket.on('message', (data) => {
      live += `${data}\n`
    })
    await until('the screen', () => watcher.messages.find(({ type }) => type === 'keyframe'))
    terminal.send(`cat hostile # ${NAME}\r`)
    await terminal.expect(account.prompt)
    terminal.send(`echo '${C1}'; echo do\\ne\r`)
    await terminal.expect('done')
    await broker.must('POST', `/sessions/${shell.id}/kill`, { reason: BREAKOUT.slice(0, 200) })
    await terminal.exit()
    await watcher.closed

    expect((await ssh(home, bastion.login(), [`cat hostile # ${C1} ${BREAKOUT}`])).code).toBe(0)
    const copied = await sftp(home, bastion.login(), [`put ${file} "${C1}\x1b]0;x\x07"`])
    expect(copied.code, copied.stderr).toBe(0)
    await ssh(home, bastion.login({ user: `nobody${C1.slice(9)}` }), ['true'])
    await noSession(bastion)
    sessions = await bastion.closedSessions(3)
    await until('the index', async () => {
      const found = await broker.must<unknown[]>(
        'GET',
        `/sessions?q=${encodeURIComponent('output~"press here"')}`,
      )
      return found.length >= 2 || undefined
    })
  }, LONG)
  afterAll(async () => {
    await bastion?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('is clean text in what the command line prints', { timeout: LONG }, async () => {
    expect(SEQUENCES).toMatch(UNSAFE)
    for (const words of [
      ['list'],
      ['list', '--json'],
      ['verify'],
      ['verify', '--json'],
      ['search', 'press here'],
      ['search', 'press here', '--json'],
      ['search', 'img src'],
      ['search', 'img src', '--json'],
      ...['txt', 'json', 'cast', 'cast3'].map((format) => ['export', shell.id, '--format', format]),
    ]) {
      const done = await sallyport(bastion.broker, ['recordings', ...words])
      expect(done.stdout, words.join(' ')).not.toBe('')
      expect(done.stdout + done.stderr, words.join(' ')).not.toMatch(UNSAFE)
    }
    const exported = await sallyport(bastion.broker, ['audit', 'export'])
    expect(exported.stdout).toContain('onerror=attack')
    expect(exported.stdout).not.toMatch(UNSAFE)
  })

  test('is clean text in what the API answers and refuses, and never a page', async () => {
    const odd = encodeURIComponent(`x\x1b]0;owned\x07${C1}\x7f`)
    const query = encodeURIComponent('output~"press here" || command~img || file~img')
    const paths = [
      ...['/users', '/devices', '/sessions', `/sessions?q=${query}`],
      ...sessions.flatMap(({ id }) => [
        `/sessions/${id}`,
        `/sessions/${id}/events`,
        `/sessions/${id}/matches?q=${query}`,
      ]),
      ...['fields', 'sort', 'q', 'limit', odd].map((name) => `/devices?${name}=${odd}`),
      ...[`/${odd}`, `/devices/${odd}`, `/sessions/${shell.id}/recording.${odd}`, `/export/${odd}`],
      ...[`/sessions/${shell.id}/recording.txt?channel=${odd}`, `/export/users?separator=${odd}`],
    ]
    let text = ''
    for (const path of paths) {
      const { headers, body } = await get(`/api/v3.12${path}`)
      expect(headers['content-type'], path).toMatch(/^application\/json/)
      expect(headers['x-content-type-options'], path).toBe('nosniff')
      expect(body, path).not.toMatch(UNSAFE)
      text += body
    }
    expect(text).toContain('onerror=attack')
    expect(text).toContain('press here')
    for (const [method, path, body] of [
      ['POST', '/session', `{"user":"${C1}","password":"x"}`],
      ['PUT', '/users/ops1', `{"${C1}":1}`],
      ['PUT', '/users/ops1', `{"profile":"${C1}"}`],
      ['PUT', '/users/ops1', `{"groups":["${C1}"]}`],
      ['PUT', '/users/ops1', C1],
    ] as const) {
      const answer = await sendAsIs(bastion.broker, method, `/api/v3.12${path}`, { cookie }, body)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.body, answer.body).not.toMatch(UNSAFE)
    }
  })

  test('is clean text in what watchers are sent, but for bytes in base64', () => {
    const messages = live
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; data?: { line?: string } })
    expect(
      messages.find(({ type, data }) => type === 'command' && data?.line?.includes('onerror')),
    ).toBeDefined()
    expect(live).not.toMatch(UNSAFE)
    expect(live).not.toContain('press here')
  })

  describe('in a browser', () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await startChromium()
    }, LONG)
    afterAll(() => browser?.stop())

    /** Waits until the page's scripts have run, and its pictures were requested. */
    const settled = async (page: Page): Promise<void> => {
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 300)))')
    }

    test('is an attack, where it is let', { timeout: LONG }, async () => {
      const path = join(folder, 'unsafe.html')
      writeFileSync(path, `<!doctype html><title>x</title><body><pre>${BREAKOUT}`)
      const page = await browser.open(`file://${path}`)
      await until('the attacks', () => (page.did.length >= 3 && page.requests.length >= 5) || undefined)
      expect(page.did).toEqual(expect.arrayContaining(['attack script', 'attack img', 'attack svg']))
      expect(page.requests.map((url) => url.replace(/^file:.*\//, ''))).toEqual(
        expect.arrayContaining(['x', 'https://evil.invalid/frame', 'https://evil.invalid/gone']),
      )
    })

    test('runs, asks for, copies and changes nothing on the page of a recording, whatever is pressed', {
      timeout: LONG,
    }, async () => {
      for (const { id } of sessions) {
        const path = join(folder, `${id}.html`)
        const { status, body } = await get(`/api/sessions/${id}/recording.html`)
        expect(status).toBe(200)
        writeFileSync(path, body)
        const page = await browser.open(`file://${path}`)
        await page.evaluate('document.querySelector("details").open = true')
        const press = await page.evaluate<number>('document.querySelectorAll("button").length')
        expect(press).toBeGreaterThan(1)
        for (let button = 0; button < press; button++) {
          await page.click(`document.querySelectorAll('button')[${button}]`)
          await page.click('document.querySelector(".xterm-rows") ?? document.body')
        }
        for (const key of [' ', 'ArrowRight', 'ArrowLeft', 'Enter', 'Escape']) await page.key(key)
        await settled(page)
        const shown = await page.evaluate<string>('document.body.innerText')
        expect(shown).toContain('onerror=attack')
        expect(page.did, id).toEqual([])
        expect(page.requests, id).toEqual([`file://${path}`])
        expect(page.navigations, id).toEqual([`file://${path}`])
        expect(await page.evaluate('document.title')).toBe(`Session ${id}`)
        expect(
          await page.evaluate('document.querySelectorAll("a, img, iframe, svg, [onerror]").length'),
        ).toBe(0)
      }
      expect(browser.strangers()).toEqual([])
    })

    test('is saved and not shown where it is an export, and is text in answers', {
      timeout: LONG,
    }, async () => {
      const { https } = bastion.broker.ports
      const site = `https://127.0.0.1:${https}`
      for (const suffix of ['.html', '.txt', '.json', '.cast', '']) {
        const page = await browser.open(`${site}/api/sessions/${shell.id}/recording${suffix}`, { cookie })
        expect(page.downloads, suffix).toEqual([expect.stringContaining(shell.id)])
        expect(page.did).toEqual([])
      }
      const table = await browser.open(`${site}/api/export/devices`, { cookie })
      expect(table.downloads).toEqual(['devices.csv'])
      for (const path of [
        '/devices',
        '/users',
        `/sessions/${shell.id}/events`,
        `/devices?fields=${encodeURIComponent(MARKUP)}`,
        `/${encodeURIComponent(MARKUP)}`,
      ]) {
        const page = await browser.open(`${site}/api${path}`, { cookie })
        await sleep(200)
        expect(page.did, path).toEqual([])
        expect(
          page.requests.filter((url) => !url.startsWith(site)),
          path,
        ).toEqual([])
        expect(await page.evaluate('document.contentType'), path).toBe('application/json')
      }
    })
  })
})
