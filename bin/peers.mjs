/**
 * Installs the real programs that the tests use, on Debian as root; elsewhere reports the missing ones. Their
 * daemons are kept from starting, and no package is ever removed.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { withLock } from './lock.mjs'

/** Debian's packages of the programs and modules in test/peers/program.ts. */
export const PEER_PACKAGES = [
  'openssh-server',
  'openssh-client',
  'openssl',
  'oathtool',
  'zbar-tools',
  'rsync',
  'lftp',
  'sshfs',
  'putty-tools',
  'dropbear-bin',
  'python3-paramiko',
  'python3-aiosmtpd',
  'python3-asyncssh',
  'python3-pexpect',
  'rsyslog',
  'rsyslog-gnutls',
  'snmptrapd',
  'snmp',
  'smitools',
  'asciinema',
  'ffmpeg',
  'ttyrec',
  'chromium',
  'simplesamlphp',
  'php-cli',
  'php-xml',
  'php-mbstring',
  'php-sqlite3',
  'liblemonldap-ng-portal-perl',
  'libplack-perl',
  'liblasso-perl',
  'libio-string-perl',
  'libstring-random-perl',
  'libxml-simple-perl',
  'age',
  'git',
  'haproxy',
  'curl',
  'gdb',
  'expect',
  'tmux',
  'busybox',
  'less',
  'sudo',
  'vim',
  'groff-base',
  'mandoc',
  'zsh',
  'fish',
  'tcsh',
  'xauth',
  'xvfb',
  'x11-utils',
  'libx11-6',
  'libxfixes3',
  'ansible-core',
  'mosh',
  'unbound',
  'postgresql-15',
  'postgresql-client-15',
  'pgbouncer',
  'ldnsutils',
  'inetutils-inetd',
  'inetutils-telnet',
  'inetutils-telnetd',
  'rsh-redone-client',
  'rsh-redone-server',
  'frr',
  'gcc',
  'libcli-dev',
  'tigervnc-standalone-server',
  'tigervnc-tools',
  'tigervnc-viewer',
  'x11vnc',
  'gvncviewer',
  'vncsnapshot',
  'remmina',
  'remmina-plugin-vnc',
  'remmina-plugin-rdp',
  'weston',
  'freerdp2-shadow-x11',
  'freerdp2-x11',
  'winpr-utils',
  'rdesktop',
  'xrdp',
  'xorgxrdp',
  'python3-gssapi',
  'python3-pyasn1',
  'gss-ntlmssp',
  'dbus-x11',
  'imagemagick',
  'xclip',
  'x11-xkb-utils',
  'xdotool',
  'xterm',
  'swift-proxy',
  'swift-account',
  'swift-container',
  'swift-object',
  'freeradius',
  'slapd',
  'krb5-kdc',
  'krb5-admin-server',
  'krb5-user',
  'mariadb-server-core',
  'samba',
  'samba-ad-dc',
  'samba-ad-provision',
  'samba-dsdb-modules',
  'tshark',
  'libauthen-tacacsplus-perl',
  'prometheus',
]

const LOCK = '/run/lock/sallyport-peers.lock'
const POLICY = '/usr/sbin/policy-rc.d'
const SAVED = `${POLICY}.sallyport-saved`
const POLICY_TEXT = '#!/bin/sh\n# sallyport: no daemon starts while test peers are installed\nexit 101\n'
const APT = ['-y', '-qq', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Dpkg::Options::=--force-confold']

function missingPackages() {
  const listed = spawnSync('dpkg-query', ['-W', '-f', `\${Package} \${db:Status-Status}\n`], {
    encoding: 'utf8',
  })
  const installed = new Set()
  for (const line of listed.stdout.split('\n')) {
    const [name, status] = line.split(' ')
    if (status === 'installed') installed.add(name)
  }
  return PEER_PACKAGES.filter((name) => !installed.has(name))
}

/** policy-rc.d answers 101 to invoke-rc.d: "action forbidden by policy" (Debian Policy, 9.3.3). */
function forbidDaemons() {
  if (existsSync(POLICY) && readFileSync(POLICY, 'utf8') !== POLICY_TEXT && !existsSync(SAVED)) {
    renameSync(POLICY, SAVED)
  }
  writeFileSync(POLICY, POLICY_TEXT)
  chmodSync(POLICY, 0o755)
}

function restoreDaemons() {
  if (existsSync(SAVED)) renameSync(SAVED, POLICY)
  else if (existsSync(POLICY) && readFileSync(POLICY, 'utf8') === POLICY_TEXT) unlinkSync(POLICY)
}

function aptGet(args) {
  return new Promise((done) => {
    const child = spawn('apt-get', [...APT, ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_SUSPEND: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const keep = (data) => {
      output = (output + data).slice(-8192)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', (error) => done({ ok: false, output: error.message }))
    child.on('close', (code) => done({ ok: code === 0, output }))
  })
}

const install = (names) => aptGet(['install', '--no-install-recommends', '--no-remove', ...names])

function listsAreEmpty() {
  try {
    return !readdirSync('/var/lib/apt/lists').some((name) => /_(Packages|InRelease)/.test(name))
  } catch {
    return true
  }
}

/**
 * Installs the missing packages, together if that works and else one by one; returns those that stay missing.
 */
async function installAll(missing, say) {
  if (listsAreEmpty()) await aptGet(['update'])
  if ((await install(missing)).ok) return []
  await aptGet(['update'])
  if ((await install(missing)).ok) return []
  const failed = []
  for (const name of missing) {
    const done = await install([name])
    if (done.ok) continue
    failed.push(name)
    say(`${name} was not installed:\n${done.output.trim().split('\n').slice(-4).join('\n')}`)
  }
  return failed
}

/**
 * Installs the peers' packages if possible, and reports with `say` each step and each package left out. Does
 * nothing with SALLYPORT_PEERS=skip or on other systems than Debian. Never throws for a missing package: the
 * tests that need it report it themselves.
 */
export async function installPeers(say) {
  if (process.env.SALLYPORT_PEERS === 'skip' || !existsSync('/usr/bin/apt-get')) return
  const missing = missingPackages()
  if (missing.length === 0) return
  if (process.getuid?.() !== 0) {
    say(
      `not root, so these test peers stay missing: apt-get install --no-install-recommends ${missing.join(' ')}`,
    )
    return
  }
  say(`installing test peers (SALLYPORT_PEERS=skip leaves them out): ${missing.join(' ')} …`)
  await withLock(LOCK, say, async () => {
    const stop = (signal) => {
      restoreDaemons()
      process.kill(process.pid, signal)
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
    forbidDaemons()
    try {
      const failed = await installAll(missing, say)
      say(failed.length === 0 ? 'test peers installed' : `test peers still missing: ${failed.join(' ')}`)
    } finally {
      restoreDaemons()
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
    }
  })
}
