/**
 * The effects of a target and its user on an auditor's terminal. The client runs two commands over one
 * connection; each sends every sequence that controls a terminal, in its output and on its command line.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, expect, test } from 'vitest'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import { sallyport } from '../e2e/recorded.ts'
import { sallyportCommand } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { begin, describeAttacks, noSession, OWN } from './setting.ts'

/** Titles, clipboard, links, reports and queries, answerback, printing, key modes, and strings of all kinds. */
const HOSTILE = [
  '\x1b]52;c;cm0gLXJmIH4K\x07',
  '\x1b]0;title\x1b\\',
  '\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\',
  '\x1b[c\x1b[>c\x1b[=c\x1b[5n\x1b[6n\x1b[?6n\x1b[21t\x1b[18t\x1b[x',
  '\x1bP$qm\x1b\\\x1bP+q544e\x1b\\',
  '\x1b_G;AAAA\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\',
  '\x05\x1bZ\x1b[5i\x1b[?1000h\x1b[>1u\x1b[?2004h',
  '\u009b6n\u009d52;c;cm0=\u009c\u0090$qm\u009c',
].join('')
/**
 * Sequences that query or configure a terminal, or that it answers. `\x1b[` and others that only draw are not
 * included.
 */
const DRIVES =
  /\x1b[\]P_^XZ]|\x05|[\u0080-\u009f]|\x1b\[[0-9;?>=]*[cnitxu]|\x1b\[[?>][0-9;]*[hl](?<!\x1b\[\?(?:7|25|47|104[789])[hl])/
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const LONG = { timeout: 300_000 }

describeAttacks("an auditor's terminal", (setting) => {
  let session: string

  beforeAll(async () => {
    const { bastion } = setting
    const client = await setting.arrive()
    for (const [own, word] of [
      [OWN, 'first'],
      [OWN + 1, 'second'],
    ] as const) {
      await begin(client, `printf %s ${quoted(`${word}${HOSTILE}end of ${word}`)}`, own)
      await client.next(MSG.channelClose)
    }
    client.destroy()
    await noSession(bastion)
    const rows = await bastion.closedSessions(1)
    session = rows.at(-1)!.id
  }, 300_000)

  const exported = (...args: string[]) =>
    sallyport(setting.bastion.broker, ['recordings', 'export', session, ...args])
  /** Returns the output of a command in a terminal. */
  async function onTerminal(args: string[]): Promise<string> {
    const [command, words] = sallyportCommand([...args, '--config', setting.bastion.broker.configFile])
    const line = [command, ...words].map(quoted).join(' ')
    const { stdout } = await run('script', ['-qec', line, '/dev/null'], { timeout: 300_000 })
    return stdout
  }
  const events = (cast: string) =>
    cast
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => String((JSON.parse(line) as unknown[])[2]))
      .join('')

  test('the attack is one', () => {
    expect(HOSTILE).toMatch(DRIVES)
    expect('\x1b[31m\x1b[2J\x1b[5;5H\x1b[?25l\x1b[?1049h').not.toMatch(DRIVES)
  })

  test.each(['cast', 'cast3', 'ttyrec', 'txt', 'json'])(
    'is not driven by %s, of one channel or of all',
    LONG,
    async (format) => {
      for (const chosen of [[], ['--channel', 'all']]) {
        const { stdout, code } = await exported('--format', format, ...chosen)
        expect(code).toBe(0)
        // ttyrec has binary numbers before each piece.
        const isNoText = format === 'ttyrec'
        if (!isNoText) expect(stdout).not.toMatch(DRIVES)
        if (isNoText) expect(stdout.replace(/\x05/g, '')).not.toMatch(/\x1b[\]P_^XZ]|\x1b\[[0-9;?>=]*[cn]/)
        if (format.startsWith('cast')) expect(events(stdout)).not.toMatch(DRIVES)
        expect(stdout).toContain('end of first')
        expect(stdout.includes('end of second')).toBe(format === 'json' || chosen.length > 0)
      }
    },
  )

  test(
    'is told that there is more: on standard error, in the file, and in the answer of the API',
    LONG,
    async () => {
      const { stdout, stderr } = await exported('--format', 'cast')
      expect(JSON.parse(stdout.split('\n')[0]!).title).toMatch(/, channel \d+ \(1 of 2\)$/)
      expect(stderr).toMatch(/^sallyport: only channel \d+ \(1 of 2\) is shown: see --channel$/m)
      const { stdout: text } = await exported('--format', 'txt')
      expect(text).toMatch(/^\[only channel \d+ \(1 of 2\) is shown here\]\n/)
      expect((await exported('--format', 'png')).stdout).toMatch(
        /Title\0session [^\0]*channel \d+ \(1 of 2\)/,
      )
      const { broker } = setting.bastion
      const answer = await broker.api('GET', `/sessions/${session}/recording.txt`)
      expect(answer.headers).toMatchObject({
        'recording-channel': expect.stringMatching(/^\d+$/),
        'recording-channels': '2',
      })
      const all = await broker.api('GET', `/sessions/${session}/recording.txt?channel=all`)
      expect(all.headers).toMatchObject({ 'recording-channel': 'all', 'recording-channels': '2' })
      expect(String(all.body)).toContain('end of second')
    },
  )

  test('can have the bytes, into a file only', LONG, async () => {
    const { stdout } = await exported('--format', 'txt', '--raw')
    expect(stdout).toBe(`first${HOSTILE}end of first`)
    expect(events((await exported('--raw')).stdout)).toContain(HOSTILE)
    const shown = await onTerminal(['recordings', 'export', session, '--format', 'txt', '--raw'])
    expect(shown).toContain('--raw is for a file, not for a terminal')
    expect(shown).not.toMatch(DRIVES)
  })

  test('is not driven by anything else that the command line prints', LONG, async () => {
    for (const args of [
      ['recordings', 'list'],
      ['recordings', 'list', '--json'],
      ['recordings', 'export', session],
      ['recordings', 'search', 'printf'],
      ['recordings', 'search', 'printf', '--json'],
      ['recordings', 'verify'],
      ['recordings', 'verify', HOSTILE],
      ['recordings', 'export', HOSTILE],
      ['audit', 'export'],
      [HOSTILE],
    ]) {
      expect(await onTerminal(args), args.join(' ')).not.toMatch(DRIVES)
    }
  })

  test('is not driven by rows of the audit log that somebody has written on the disk', LONG, async () => {
    const { broker, home } = setting.bastion
    const database = new DatabaseSync(join(broker.dataFolder, 'sallyport.db'))
    const row = database.prepare('select sequence, json from audit order by sequence limit 1').get()!
    const json = String(row['json'])
    const forged = json.replace('"code":"', `"code":"${HOSTILE}`)
    const write = database.prepare('update audit set json = ? where sequence = ?')
    write.run(forged, row['sequence']!)
    try {
      for (const args of [
        ['audit', 'verify'],
        ['audit', 'verify', '--json'],
        ['audit', 'export'],
      ]) {
        expect(await onTerminal(args), args.join(' ')).not.toMatch(DRIVES)
      }
      const { stdout } = await sallyport(broker, ['audit', 'export'])
      const file = join(home.folder, 'forged.jsonl')
      writeFileSync(file, stdout)
      expect(stdout).toContain(HOSTILE)
    } finally {
      write.run(json, row['sequence']!)
      database.close()
    }
  })
})
