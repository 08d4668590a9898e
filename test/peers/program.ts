/**
 * Finds the real programs that the tests use. A test without its program fails on the build server (CI=true)
 * and is skipped elsewhere; both name the Debian package to install.
 */
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, test } from 'vitest'

/** Program → its Debian package. */
const PROGRAMS = {
  age: 'age',
  asciinema: 'asciinema',
  chromium: 'chromium',
  ffmpeg: 'ffmpeg',
  ffprobe: 'ffmpeg',
  ttyplay: 'ttyrec',
  busybox: 'busybox',
  curl: 'curl',
  gcc: 'gcc',
  staticd: 'frr',
  dbclient: 'dropbear-bin',
  dropbear: 'dropbear-bin',
  dropbearkey: 'dropbear-bin',
  expect: 'expect',
  gcore: 'gdb',
  git: 'git',
  haproxy: 'haproxy',
  etcd: 'etcd-server',
  'kadmin.local': 'krb5-admin-server',
  kdb5_util: 'krb5-kdc',
  kinit: 'krb5-user',
  krb5kdc: 'krb5-kdc',
  less: 'less',
  lftp: 'lftp',
  oathtool: 'oathtool',
  zbarimg: 'zbar-tools',
  openssl: 'openssl',
  php: 'php-cli',
  plink: 'putty-tools',
  pscp: 'putty-tools',
  psftp: 'putty-tools',
  puttygen: 'putty-tools',
  rsync: 'rsync',
  rsyslogd: 'rsyslog',
  scp: 'openssh-client',
  sftp: 'openssh-client',
  smilint: 'smitools',
  snmpbulkget: 'snmp',
  snmpget: 'snmp',
  snmpset: 'snmp',
  snmptable: 'snmp',
  snmptranslate: 'snmp',
  snmptrapd: 'snmptrapd',
  snmpwalk: 'snmp',
  ssh: 'openssh-client',
  'ssh-add': 'openssh-client',
  'ssh-agent': 'openssh-client',
  'ssh-keygen': 'openssh-client',
  'ssh-keyscan': 'openssh-client',
  sshd: 'openssh-server',
  sshfs: 'sshfs',
  sudo: 'sudo',
  text2pcap: 'tshark',
  tmux: 'tmux',
  tshark: 'tshark',
  vim: 'vim',
  groff: 'groff-base',
  mandoc: 'mandoc',
  zsh: 'zsh',
  fish: 'fish',
  tcsh: 'tcsh',
  xauth: 'xauth',
  xdpyinfo: 'x11-utils',
  Xvfb: 'xvfb',
  Xtigervnc: 'tigervnc-standalone-server',
  tigervncpasswd: 'tigervnc-tools',
  xtigervncviewer: 'tigervnc-viewer',
  x11vnc: 'x11vnc',
  gvnccapture: 'gvncviewer',
  vncsnapshot: 'vncsnapshot',
  remmina: 'remmina',
  weston: 'weston',
  'freerdp-shadow-cli': 'freerdp2-shadow-x11',
  xfreerdp: 'freerdp2-x11',
  promtool: 'prometheus',
  plackup: 'libplack-perl',
  'winpr-hash': 'winpr-utils',
  rdesktop: 'rdesktop',
  xrdp: 'xrdp',
  'xrdp-sesman': 'xrdp',
  'dbus-launch': 'dbus-x11',
  convert: 'imagemagick',
  display: 'imagemagick',
  import: 'imagemagick',
  xclip: 'xclip',
  xdotool: 'xdotool',
  setxkbmap: 'x11-xkb-utils',
  xev: 'x11-utils',
  xterm: 'xterm',
  'ansible-playbook': 'ansible-core',
  mariadbd: 'mariadb-server-core',
  mosh: 'mosh',
  samba: 'samba',
  'samba-tool': 'samba-common-bin',
  freeradius: 'freeradius',
  slapd: 'slapd',
  unbound: 'unbound',
  initdb: 'postgresql-15',
  pg_basebackup: 'postgresql-client-15',
  patroni: 'patroni',
  pgbouncer: 'pgbouncer',
  postgres: 'postgresql-15',
  'ldns-keygen': 'ldnsutils',
  'ldns-signzone': 'ldnsutils',
  'in.rlogind': 'rsh-redone-server',
  'inetutils-inetd': 'inetutils-inetd',
  'inetutils-telnet': 'inetutils-telnet',
  'rsh-redone-rlogin': 'rsh-redone-client',
  telnetd: 'inetutils-telnetd',
  'swift-account-server': 'swift-account',
  'swift-container-server': 'swift-container',
  'swift-object-server': 'swift-object',
  'swift-proxy-server': 'swift-proxy',
} as const

export type ProgramName = keyof typeof PROGRAMS

/** Debian's Python, which has the modules: another Python in PATH does not. */
const PYTHON = '/usr/bin/python3'
const MODULES_FOLDER = '/usr/lib/python3/dist-packages'
const PYTHON_MODULES = {
  aiosmtpd: 'python3-aiosmtpd',
  asyncssh: 'python3-asyncssh',
  gssapi: 'python3-gssapi',
  paramiko: 'python3-paramiko',
  pexpect: 'python3-pexpect',
  // paramiko shows tickets with it.
  pyasn1: 'python3-pyasn1',
} as const

export type PythonModule = keyof typeof PYTHON_MODULES
/** Debian's name of this architecture, in paths of libraries. */
const MULTIARCH = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
/** Library → a file of it and its Debian package. */
const LIBRARIES = {
  simplesamlphp: { file: '/usr/share/simplesamlphp/www/index.php', debian: 'simplesamlphp' },
  'lemonldap-ng': {
    file: '/usr/share/perl5/Lemonldap/NG/Portal/Main.pm',
    debian: 'liblemonldap-ng-portal-perl',
  },
  // Modules that the portal needs for these two protocols, and does not depend on.
  lasso: { file: `/usr/lib/${MULTIARCH}/perl5/5.36/Lasso.pm`, debian: 'liblasso-perl' },
  'io-string': { file: '/usr/share/perl5/IO/String.pm', debian: 'libio-string-perl' },
  'string-random': { file: '/usr/share/perl5/String/Random.pm', debian: 'libstring-random-perl' },
  'xml-simple': { file: '/usr/share/perl5/XML/Simple.pm', debian: 'libxml-simple-perl' },
  'rsyslog-gnutls': { file: `/usr/lib/${MULTIARCH}/rsyslog/lmnsd_gtls.so`, debian: 'rsyslog-gnutls' },
  'samba-ad-dc': {
    file: '/usr/share/samba/setup/provision.ldif',
    debian: 'samba-ad-provision',
  },
  'samba-dsdb-modules': {
    file: `/usr/lib/${MULTIARCH}/samba/ldb/samba_dsdb.so`,
    debian: 'samba-dsdb-modules',
  },
  libcli: { file: '/usr/include/libcli.h', debian: 'libcli-dev' },
  'gss-ntlmssp': {
    file: `/usr/lib/${MULTIARCH}/gssntlmssp/gssntlmssp.so`,
    debian: 'gss-ntlmssp',
  },
  'authen-tacacsplus': {
    file: `/usr/lib/${MULTIARCH}/perl5/5.36/Authen/TacacsPlus.pm`,
    debian: 'libauthen-tacacsplus-perl',
  },
  libx11: { file: `/usr/lib/${MULTIARCH}/libX11.so.6`, debian: 'libx11-6' },
  libxfixes: { file: `/usr/lib/${MULTIARCH}/libXfixes.so.3`, debian: 'libxfixes3' },
  libfreerdp: { file: `/usr/lib/${MULTIARCH}/libfreerdp2.so.2`, debian: 'freerdp2-x11' },
  xorgxrdp: { file: '/usr/lib/xorg/modules/libxorgxrdp.so', debian: 'xorgxrdp' },
  'remmina-plugin-rdp': {
    file: `/usr/lib/${MULTIARCH}/remmina/plugins/remmina-plugin-rdp.so`,
    debian: 'remmina-plugin-rdp',
  },
  'weston-rdp': { file: `/usr/lib/${MULTIARCH}/libweston-10/rdp-backend.so`, debian: 'weston' },
  'remmina-plugin-vnc': {
    file: `/usr/lib/${MULTIARCH}/remmina/plugins/remmina-plugin-vnc.so`,
    debian: 'remmina-plugin-vnc',
  },
} as const

export type Peer = ProgramName | keyof typeof LIBRARIES | 'python3' | `python3-${PythonModule}`

/** Daemons are outside of an ordinary user's PATH. */
const DAEMON_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/lib/frr', '/usr/lib/postgresql/15/bin']

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function locate(name: ProgramName): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...DAEMON_FOLDERS]
  return folders
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

function missingPackage(peer: Peer): string | undefined {
  if (peer === 'python3') return isExecutable(PYTHON) ? undefined : 'python3'
  if (peer.startsWith('python3-')) {
    const module = peer.slice('python3-'.length) as PythonModule
    if (!isExecutable(PYTHON)) return 'python3'
    try {
      accessSync(join(MODULES_FOLDER, module))
      return undefined
    } catch {
      return PYTHON_MODULES[module]
    }
  }
  if (peer in LIBRARIES) {
    const { file, debian } = LIBRARIES[peer as keyof typeof LIBRARIES]
    return existsSync(file) ? undefined : debian
  }
  const name = peer as ProgramName
  return locate(name) === undefined ? PROGRAMS[name] : undefined
}

/** Returns the path of a program; throws an error that names the package if it is not installed. */
export function findProgram(name: ProgramName | 'python3'): string {
  const path = name === 'python3' ? PYTHON : locate(name)
  if (path !== undefined && isExecutable(path)) return path
  const needed = name === 'python3' ? 'python3' : PROGRAMS[name]
  throw new Error(`${name} is not installed: apt-get install ${needed}`)
}

/** Returns a file of a library; `missingPackages` reports whether it exists. */
export const libraryFile = (name: keyof typeof LIBRARIES): string => LIBRARIES[name].file

/** Returns the missing Debian packages of these peers; empty if all are installed. */
export function missingPackages(peers: readonly Peer[]): string[] {
  return [...new Set(peers.map(missingPackage).filter((name) => name !== undefined))]
}

/**
 * `describe` for tests that need real programs. If one is missing the block is skipped under a title that
 * names the package, or, with CI=true, has one test that fails and names it.
 */
export function describeWithPeers(title: string, peers: readonly Peer[], body: () => void): void {
  const missing = missingPackages(peers)
  if (missing.length === 0) {
    describe(title, body)
    return
  }
  const needs = `needs apt-get install ${missing.join(' ')}`
  if (process.env.CI === 'true') {
    describe(title, () => {
      test(needs, () => {
        throw new Error(needs)
      })
    })
    return
  }
  describe.skipIf(true)(`${title} (${needs})`, body)
}
