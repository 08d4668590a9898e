import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classifyExec, classifySubsystem, rightFor } from '../../../../proxies/ssh/codec/classify.ts'
import { quoted } from '../../../../proxies/ssh/codec/word.ts'

const classify = (text: string) => classifyExec(Buffer.from(text, 'latin1'))

/** The command that the target gets from a user who may only use SCP. */
function forwarded(text: string): string | undefined {
  const command = classify(text)
  return command.kind === 'scp' ? Buffer.from(command.forwarded).toString('latin1') : undefined
}

describe('what clients send', () => {
  it.each([
    ['scp -t /tmp/x', 'up', false, '/tmp/x', "scp -t '/tmp/x'"],
    ['scp -r -p -t d', 'up', true, 'd', "scp -r -p -t 'd'"],
    ['scp -v -d -t d', 'up', false, 'd', "scp -v -d -t 'd'"],
    ['scp -prt d', 'up', true, 'd', "scp -prt 'd'"],
    ['scp -t -- -x', 'up', false, '-x', "scp -t -- '-x'"],
    ['scp -f -- x', 'down', false, 'x', "scp -f 'x'"],
    ['scp -f -q x', 'down', false, 'x', "scp -f -q 'x'"],
    ['scp -v -r -p -f /tmp/dir*', 'down', true, '/tmp/dir*', 'scp -v -r -p -f /tmp/dir*'],
    ['scp -f ~/x', 'down', false, '~/x', 'scp -f ~/x'],
    ['scp -f *.txt', 'down', false, '*.txt', 'scp -f -- *.txt'],
    ["scp -f 'a b;c'", 'down', false, 'a b;c', "scp -f 'a b;c'"],
    ['scp -f a\\ b', 'down', false, 'a b', "scp -f 'a b'"],
    ["scp -f it\\'s", 'down', false, "it's", "scp -f 'it'\\''s'"],
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

describe('a rebuilt SCP command', () => {
  const text = fc.string({
    unit: fc.constantFrom(...' -tfrpvdq\'"\\$`;&|<>(){}*?[]~#!%=:,.@/\n\r\t\0abcSxyz\xe9\xff'.split('')),
    maxLength: 24,
  })

  it('runs scp with one path and nothing else, whatever the user wrote', () => {
    let seen = 0
    fc.assert(
      fc.property(fc.constantFrom('scp -t ', 'scp -f ', 'scp -r -f ', 'scp -t -- '), text, (head, tail) => {
        const command = classify(head + tail)
        if (command.kind !== 'scp' || /[*?[\]~]/.test(tail)) return
        seen++
        const probe = 'scp() { for a; do printf "[%s]" "$a"; done; }; '
        const script = Buffer.concat([Buffer.from(probe), command.forwarded])
        const said = execFileSync('/bin/sh', [], { input: script, encoding: 'latin1', env: {} })
        const words = [...said.matchAll(/\[((?:[^\]])*)\]/g)].map((match) => match[1])
        expect(Buffer.from(words.at(-1) ?? '', 'latin1').toString()).toBe(command.path)
        expect(words.slice(0, -1).every((word) => /^-[rpdvqtf]+$|^--$/.test(word ?? ''))).toBe(true)
        if (words.at(-1)?.startsWith('-')) expect(words.at(-2)).toBe('--')
      }),
      { numRuns: 300 },
    )
    expect(seen).toBeGreaterThan(5)
  })

  it('leaves only plain bytes and globs to the shell where it must expand them', () => {
    let seen = 0
    const globs = fc.string({ unit: fc.constantFrom(..."*?[]~ab/.-$;'\\ \n|\xe9".split('')), maxLength: 6 })
    fc.assert(
      fc.property(globs, (tail) => {
        const sent = forwarded(`scp -f ${tail}`)
        if (sent === undefined || sent.endsWith("'")) return
        seen++
        expect(sent).toMatch(/^scp -f (-- )?[A-Za-z0-9_./~*?[\]+,:=@%-]+$/)
        expect(sent).not.toMatch(/^scp -f ([*?[]|-(?!- ))/)
      }),
      { numRuns: 2000 },
    )
    expect(seen).toBeGreaterThan(20)
  })

  it('quotes any bytes so that a shell gives them back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 30 }), (bytes) => {
        const clean = bytes.map((byte) => (byte === 0 ? 1 : byte))
        const script = Buffer.concat([Buffer.from('printf %s '), quoted(clean)])
        expect(execFileSync('/bin/sh', [], { input: script, env: {} })).toEqual(Buffer.from(clean))
      }),
      { numRuns: 50 },
    )
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
