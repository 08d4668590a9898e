/**
 * The package for Debian, with a small product inside: dpkg installs, upgrades, removes and purges it in an overlay of this
 * machine that is thrown away, with stand-ins for systemd's programs.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildDeb } from '../../packaging/deb.mjs'
import { run } from '../peers/process.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const SLOW = { timeout: 300_000 }
const EPOCH = 1_780_000_000
const PROGRAM = '#!/bin/sh\necho "$@"\n'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-packaging-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function layOut(into: string): void {
  mkdirSync(join(into, 'bin'), { recursive: true })
  writeFileSync(join(into, 'bin', 'sallyport'), PROGRAM)
  chmodSync(join(into, 'bin', 'sallyport'), 0o755)
}

function deb(version: string, out: string): string {
  mkdirSync(join(folder, out), { recursive: true })
  return buildDeb({ root: ROOT, layOut, version, cpu: process.arch, out: join(folder, out), epoch: EPOCH })
}

const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

test(
  'the same sources make the same package, with pages, completions and the unit of the sources',
  SLOW,
  () => {
    const file = deb('1.0.0', 'first')
    expect(digest(file)).toBe(digest(deb('1.0.0', 'second')))
    const listed = execFileSync('dpkg-deb', ['--contents', file], { encoding: 'utf8' })
    for (const line of listed.trim().split('\n')) expect(line).toMatch(/^\S+ root\/root /)
    for (const path of [
      './lib/systemd/system/sallyport.service',
      './usr/share/man/man5/sallyport.yaml.5.gz',
      './usr/share/zsh/vendor-completions/_sallyport',
      './usr/bin/sallyport -> ../lib/sallyport/bin/sallyport',
    ]) {
      expect(listed).toContain(path)
    }
  },
)

/** Each step of a life prints what the test looks at, as `NAME: text`. */
const LIFE = `
set -e
say() { echo "$1: $(cat)"; }
dpkg() { /usr/bin/dpkg --admindir=/admin --force-depends --log=/dev/null "$@" > /dump 2>&1 || { cat /dump; exit 1; }; }
mkdir -p /admin/updates /admin/info /run/systemd/system
touch /admin/status /admin/available
for name in systemctl deb-systemd-invoke deb-systemd-helper; do
  printf '#!/bin/sh\\necho "%s $*" >> /called\\n' "$name" > "/usr/bin/$name"
  chmod 755 "/usr/bin/$name"
done
dpkg -i /old.deb
stat -c '%a %U:%G' /etc/sallyport/sallyport.yaml | say configuration
stat -c '%a %U' /var/lib/sallyport | say data
getent passwd sallyport-session | cut -d: -f6- | say worker
grep '^data_dir' /etc/sallyport/sallyport.yaml | say folder
/usr/bin/dpkg --admindir=/admin --verify sallyport | say altered
systemd-analyze verify --man=no sallyport.service 2>&1 | grep sallyport | say faults
sallyport one two | say program
cat /usr/share/bash-completion/completions/sallyport | say completion
logrotate --debug /etc/logrotate.d/sallyport 2>&1 | grep -ci error | say rotation || true
echo '# of the administrator' >> /etc/sallyport/sallyport.yaml
chmod 0600 /etc/sallyport/sallyport.yaml
echo state > /var/lib/sallyport/sallyport.db
: > /called
dpkg -i /new.deb
tail -1 /etc/sallyport/sallyport.yaml | say kept
stat -c %a /etc/sallyport/sallyport.yaml | say mode
tr '\\n' ',' < /called | say upgrade
: > /called
dpkg --remove sallyport
ls /etc/sallyport /var/lib/sallyport | tr '\\n' ' ' | say removed
tr '\\n' ',' < /called | say stopped
dpkg --purge sallyport
ls -d /etc/sallyport /var/lib/sallyport /var/log/sallyport /usr/lib/sallyport 2> /dev/null | say purged || true
getent passwd sallyport | cut -d: -f1 | say user
`

test(
  'installed, upgraded, removed and purged: the configuration stays until the end, and so does the state',
  SLOW,
  async () => {
    const place = join(folder, 'overlay')
    mkdirSync(place)
    const mounts = [
      `mount -t tmpfs -o size=64m tmpfs ${place}`,
      `cd ${place}`,
      `mkdir upper work merged`,
      `mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay merged`,
      // A copy: other tests make users meanwhile, and their locks would be seen here.
      `cp -a /etc etc`,
      `rm -f etc/*.lock`,
      `mount --bind etc merged/etc`,
      `cp ${deb('1.0.0', 'old')} merged/old.deb`,
      `cp ${deb('1.0.1', 'new')} merged/new.deb`,
      `mount -t tmpfs tmpfs merged/run`,
      `exec chroot merged /bin/sh -c "$LIFE"`,
    ]
    const env = {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C',
      DEBIAN_FRONTEND: 'noninteractive',
      LIFE,
    }
    const done = await run('unshare', ['--mount', '/bin/sh', '-ec', mounts.join('\n')], {
      env,
      timeout: SLOW.timeout,
    })
    expect(done.code, `${done.stdout}${done.stderr}`).toBe(0)
    const said = Object.fromEntries(
      done.stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/: (.*)/).slice(0, 2)),
    )
    expect(said).toEqual({
      configuration: '640 root:sallyport',
      data: '700 sallyport',
      worker: '/var/lib/sallyport:/usr/sbin/nologin',
      folder: 'data_dir: /var/lib/sallyport',
      altered: '',
      // As far as the machine has systemd.
      faults: '',
      program: 'one two',
      completion: 'completion bash',
      rotation: '0',
      kept: '# of the administrator',
      mode: '600',
      upgrade:
        'deb-systemd-helper update-state sallyport.service,systemctl --system daemon-reload,deb-systemd-invoke try-restart sallyport.service,',
      removed: '/etc/sallyport: sallyport.yaml  /var/lib/sallyport: sallyport.db ',
      stopped: expect.stringContaining('deb-systemd-invoke stop sallyport.service,'),
      purged: '',
      user: 'sallyport',
    })
  },
)
