import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { classifyExec, classifySubsystem, rightFor } from '../../../../proxies/ssh/codec/classify.ts'
import { describeWithPeers } from '../../../peers/program.ts'

const classify = (text: string) => classifyExec(Buffer.from(text, 'latin1'))

/** Returns the command sent to the target for a user that may only use SCP, or undefined if there is none. */
function forwarded(text: string): string | undefined {
  const command = classify(text)
  if (command.kind !== 'scp' || command.forwarded === undefined) return undefined
  return Buffer.from(command.forwarded).toString('latin1')
}

describe('what clients send', () => {
  it.each([
    ['scp -t /tmp/x', 'up', false, '/tmp/x', 'scp -t /tmp/x'],
    ['scp -r -p -t d', 'up', true, 'd', 'scp -r -p -t d'],
    ['scp -v -d -t d', 'up', false, 'd', 'scp -v -d -t d'],
    ['scp -prt d', 'up', true, 'd', 'scp -prt d'],
    ['scp -t -- -x', 'up', false, '-x', 'scp -t -- "-x"'],
    ['scp -f -- x', 'down', false, 'x', 'scp -f x'],
    ['scp -f -q x', 'down', false, 'x', 'scp -f -q x'],
    ['scp -v -r -p -f /tmp/dir*', 'down', true, '/tmp/dir*', 'scp -v -r -p -f /tmp/dir*'],
    ['scp -f ~/x', 'down', false, '~/x', 'scp -f ~/x'],
    ['scp -f *.txt', 'down', false, '*.txt', 'scp -f -- *.txt'],
    ['scp -t ~', 'up', false, '~', 'scp -t ~'],
    ['scp -f a\\ b', 'down', false, 'a b', 'scp -f "a b"'],
    ["scp -t 'a b/c=d,e@f~g'", 'up', false, 'a b/c=d,e@f~g', 'scp -t "a b/c=d,e@f~g"'],
    ["scp -t '~/x'", 'up', false, '~/x', 'scp -t "~/x"'],
    ['scp -t C:/x', 'up', false, 'C:/x', 'scp -t C:/x'],
    ["scp -f 'a b;c'", 'down', false, 'a b;c', undefined],
    ["scp -f it\\'s", 'down', false, "it's", undefined],
    ["scp -t 'a -b'", 'up', false, 'a -b', undefined],
    ['scp -t /tmp/d*', 'up', false, '/tmp/d*', undefined],
    ['scp -t ~root/x', 'up', false, '~root/x', undefined],
    ['scp -t %PATH%', 'up', false, '%PATH%', undefined],
    ['scp -t \xe2\x80\x99', 'up', false, '\u2019', undefined],
  ])('%s is SCP', (text, direction, recursive, path, sent) => {
    expect(classify(text)).toMatchObject({ kind: 'scp', direction, recursive, path })
    expect(forwarded(text)).toBe(sent)
  })

  it.each([
    ['rsync --server -logDtpre.iLsfxCIvu . P', 'up', ['P']],
    ['rsync --server --sender -vlogDtpre.iLsfxCIvu . /a /b/*', 'down', ['/a', '/b/*']],
    [
      'rsync --server -vlogDtprze.iLsfxCIvu --delete --partial-dir .rsync-partial --timeout=30 . d/',
      'up',
      ['d/'],
    ],
    ['rsync --server --sender -e.LsfxCIvu --max-size=1M . a\\ b', 'down', ['a b']],
  ])('%s is rsync', (text, direction, paths) => {
    expect(classify(text)).toEqual({ kind: 'rsync', direction, paths })
  })

  it.each([
    ["git-upload-pack '/p'", 'git-upload-pack', 'down', '/p'],
    ["git-receive-pack 'it'\\''s'", 'git-receive-pack', 'up', "it's"],
    ["git-upload-archive '~/r.git'", 'git-upload-archive', 'down', '~/r.git'],
    ['git-upload-pack ~/r.git', 'git-upload-pack', 'down', '~/r.git'],
  ])('%s is git', (text, operation, direction, path) => {
    expect(classify(text)).toEqual({ kind: 'git', operation, direction, path })
  })
})

describe('what only looks like it is a plain command', () => {
  it.each([
    'scp -t x; id',
    'scp -t x\nid',
    'scp -t x\rid',
    'scp -f $(id -u)',
    'scp -f `id`',
    'scp -f x && id',
    'scp -f x|id',
    'scp -t x > y',
    'scp -t x < y',
    'scp -f "x"',
    'scp -f "$(id)"',
    "scp -f 'x",
    "scp -f 'x\ny'",
    "scp -f ''",
    'scp -f x\\',
    'scp -f x\\\ny',
    'scp -f x\0y',
    'scp -f {a,b}',
    'scp -f !x',
    'scp -f x#',
    'scp -f /x/a b;c',
    'scp -f a b',
    "scp -f 'a b'*",
    "scp -f '~/x'*",
    'scp -S /tmp/evil.sh /etc/hostname x:/y',
    'scp -S /bin/false -f file',
    'scp -o ProxyCommand=id -f x',
    'scp -oProxyCommand=id -f x',
    'scp -F /tmp/c -t x',
    'scp -J h -t x',
    'scp -D /tmp/x -f x',
    'scp -i k -t x',
    'scp -c c -t x',
    'scp -P 2 -t x',
    'sh -c "scp -f f"',
    "sh -c 'scp -f f'",
    '/usr/bin/scp -f f',
    "s''cp -f f",
    's\\cp -f f',
    'env scp -f f',
    'exec scp -f f',
    'scp -tf x',
    'scp -t -f x',
    'scp -t -t x',
    'scp -f -x',
    'scp -f',
    'scp -t ',
    'scp  -t x',
    'scp -t  x',
    ' scp -t x',
    'scp -t x ',
    'scp x',
    'scp -rp -t x',
    'scp -t -- -- x',
    'scp -- -t x',
    'SCP -t x',
    '/usr/lib/openssh/sftp-server',
    'sftp-server -R',
    'rsync',
    'rsync --server',
    'rsync --server .',
    'rsync --server . P; id',
    'rsync --server -e.LsfxCIvu . $(id)',
    'rsync --server --daemon .',
    'rsync --server --daemon . x',
    'rsync --server --config=/tmp/c . x',
    'rsync --server --rsh=sh . x',
    'rsync --server --log-file=/x . x',
    'rsync --server -e.LsfxCIvu --sender . x',
    'rsync --server -e.LsfxCIvu x . y',
    'rsync --server -e.LsfxCIvu . -x',
    'rsync --server -* . x',
    'rsync --daemon',
    'sudo rsync --server -e.LsfxCIvu . x',
    'rsync -av /x /y',
    "git-upload-pack '--help'",
    'git-upload-pack -x',
    "git-upload-pack '/p'; id",
    "git-upload-pack '/p' x",
    "git-upload-pack ''",
    'git-upload-pack',
    'git-upload-pack *',
    "git upload-pack '/p'",
    "git-shell -c 'x'",
    '',
    ' ',
    'bash',
  ])('%j', (text) => {
    expect(classify(text)).toEqual({ kind: 'command' })
  })
})

describeWithPeers('a rebuilt SCP command', ['busybox', 'zsh', 'fish', 'tcsh'], () => {
  const bin = mkdtempSync(join(tmpdir(), 'sallyport-shells-'))
  afterAll(() => rmSync(bin, { recursive: true, force: true }))
  beforeAll(() => {
    // Replaces scp: prints its arguments.
    writeFileSync(join(bin, 'scp'), '#!/bin/sh\nfor a; do printf "[%s]" "$a"; done\n', { mode: 0o755 })
  })
  const SHELLS: [string, string[]][] = [
    ['/bin/sh', []],
    ['/bin/bash', []],
    ['/bin/busybox', ['sh']],
    ['/usr/bin/zsh', []],
    ['/usr/bin/fish', []],
    ['/bin/tcsh', []],
  ]
  const text = fc.string({
    unit: fc.constantFrom(...' -tfrpvdq\'"\\$`;&|<>(){}*?[]~#!%^=:,.@/\n\r\t\0abcSxyz\xe9\xff'.split('')),
    maxLength: 12,
  })
  const calm = fc.string({ unit: fc.constantFrom(..." -\\'=:,.@~/+_aB9".split('')), maxLength: 12 })

  it('runs scp with one path and nothing else in every shell, whatever the user wrote', () => {
    let seen = 0
    const heads = fc.constantFrom('scp -t ', 'scp -f ', "scp -r -f '", "scp -t '", "scp -t -- '")
    fc.assert(
      fc.property(heads, fc.oneof(text, calm), (head, tail) => {
        const line = head.endsWith("'") ? `${head}${tail}'` : head + tail
        const command = classify(line)
        const sent = forwarded(line)
        if (command.kind !== 'scp' || sent === undefined || /[*?[\]]|^scp [^~]* ~/.test(sent)) return
        seen++
        for (const [shell, args] of SHELLS) {
          const said = execFileSync(shell, [...args, '-c', sent], {
            encoding: 'latin1',
            env: { PATH: `${bin}:/usr/bin:/bin`, HOME: bin },
          })
          const words = [...said.matchAll(/\[((?:[^\]])*)\]/g)].map((match) => match[1])
          expect(words.at(-1), `${shell}: ${sent}`).toBe(command.path)
          expect(words.slice(0, -1).every((word) => /^-[rpdvqtf]+$|^--$/.test(word ?? ''))).toBe(true)
          if (words.at(-1)?.startsWith('-')) expect(words.at(-2)).toBe('--')
        }
      }),
      { numRuns: 250 },
    )
    expect(seen).toBeGreaterThan(20)
  }, 300_000)

  it('holds nothing that any shell makes something of, but for globs of a download and the home folder', () => {
    let seen = 0
    fc.assert(
      fc.property(fc.constantFrom('scp -t ', 'scp -f '), fc.oneof(text, calm), (head, tail) => {
        const sent = forwarded(head + tail)
        if (sent === undefined) return
        seen++
        expect(sent).toMatch(
          head === 'scp -t '
            ? /^scp -t (-- )?((~(?=$|\/))?[A-Za-z0-9_./:+-]*|"[A-Za-z0-9_./:+ ,=@~-]+")$/
            : /^scp -f (-- )?((~(?=$|\/))?[A-Za-z0-9_./:+*?[\]-]*|"[A-Za-z0-9_./:+ ,=@~-]+")$/,
        )
        // No option results from a glob, or from a blank in rc, which does not know these quotes.
        expect(sent.slice(head.length)).not.toMatch(/^[*?[]|^-(?!- )|[^-] -/)
      }),
      { numRuns: 3000 },
    )
    expect(seen).toBeGreaterThan(100)
  })
})

describe('the right that a request needs', () => {
  it('follows the decision table', () => {
    for (const [command, right] of [
      ['scp -t /x', 'SSH_SCP_UP'],
      ['scp -f /x', 'SSH_SCP_DOWN'],
      ['rsync --server . /x', 'SSH_REMOTE_COMMAND'],
      ["git-upload-pack '/x'", 'SSH_REMOTE_COMMAND'],
      ['id', 'SSH_REMOTE_COMMAND'],
    ] as const)
      expect(rightFor(classifyExec(Buffer.from(command)))).toBe(right)
  })

  it('takes only the exact bytes for the sftp subsystem', () => {
    expect(classifySubsystem(Buffer.from('sftp'))).toBe('sftp')
    for (const name of ['SFTP', 'sftp\0', 'sftp ', 'sftp\n', '', 'netconf']) {
      expect(classifySubsystem(Buffer.from(name))).toBe('subsystem')
    }
  })
})
