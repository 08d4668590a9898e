/** Directories as targets: Debian's slapd with its password policy, and Samba as a domain controller of Active Directory. */
import { randomInt } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'
import type { CertificateFiles } from './vnc/certificate.ts'

export const SUFFIX = 'dc=lab,dc=test'
export const LDAP_ADMIN = { login: `cn=admin,${SUFFIX}`, password: 'Admin-Pass1' }

export interface Slapd {
  ldap: number
  ldaps: number
  pid: number
  log(): string
  /** Whether slapd can read a text as a filter. */
  readsFilter(text: string): Promise<boolean>
  stop(): Promise<void>
}

/** Starts slapd with these users below `ou=people`, and the policy: ten characters, the last three not again. */
export async function startSlapd(
  users: Readonly<Record<string, string>>,
  { cert, key }: CertificateFiles,
): Promise<Slapd> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-slapd-'))
  const [ldap, ldaps] = [await freePort(), await freePort()]
  const config = join(folder, 'slapd.conf')
  mkdirSync(join(folder, 'db'))
  writeFileSync(
    config,
    `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY ( sshPublicKey $ uid ) )
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload ppolicy
moduleload memberof
pidfile ${folder}/pid
TLSCACertificateFile ${cert}
TLSCertificateFile ${cert}
TLSCertificateKeyFile ${key}
database mdb
directory ${folder}/db
suffix "${SUFFIX}"
rootdn "${LDAP_ADMIN.login}"
rootpw ${LDAP_ADMIN.password}
dbnosync
overlay memberof
overlay ppolicy
ppolicy_default cn=policy,${SUFFIX}
ppolicy_use_lockout
ppolicy_hash_cleartext
access to attrs=userPassword by self =xw by anonymous auth by * none
access to * by * read
`,
  )
  const base = [
    `dn: ${SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: lab\ndc: lab\n`,
    `dn: ou=people,${SUFFIX}\nobjectClass: organizationalUnit\nou: people\n`,
    `dn: cn=policy,${SUFFIX}\nobjectClass: device\nobjectClass: pwdPolicy\ncn: policy\npwdAttribute: userPassword\n` +
      'pwdMinLength: 10\npwdCheckQuality: 2\npwdInHistory: 3\npwdLockout: TRUE\npwdMaxFailure: 3\n' +
      'pwdMustChange: TRUE\npwdAllowUserChange: TRUE\n',
    ...Object.entries(users).map(
      ([uid, password]) =>
        `dn: uid=${uid},ou=people,${SUFFIX}\nobjectClass: inetOrgPerson\nuid: ${uid}\ncn: ${uid}\nsn: ${uid}\n` +
        `userPassword: ${password}\n`,
    ),
  ]
  const slapd = findProgram('slapd')
  const added = await run(slapd, ['-T', 'add', '-f', config], { input: base.join('\n') })
  if (added.code !== 0) throw new Error(added.stderr)
  const daemon = await startDaemon(
    slapd,
    ['-f', config, '-h', `ldap://127.0.0.1:${ldap} ldaps://127.0.0.1:${ldaps}`, '-d', '256'],
    async () => (await isListening(ldap)) && (await isListening(ldaps)),
  )
  return {
    ldap,
    ldaps,
    pid: daemon.pid,
    log: daemon.log,
    readsFilter: async (text) => {
      const read = await run(slapd, ['-T', 'cat', '-f', config, '-a', text])
      return read.code === 0 && !read.stderr.includes('filter')
    },
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const REALM = 'ad.lab.test'
export const AD_ADMIN = { login: 'Administrator', password: 'Admin-Pass1!' }

export interface DomainController {
  /** Its own address of loopback: the ports of Active Directory cannot be chosen. */
  host: string
  /** LDAPS. */
  port: number
  /** Runs `samba-tool` on its files. */
  tool(...args: string[]): Promise<void>
  /** Makes an account with that principal, with AES alone, and returns its keytab. */
  serviceKeytab(account: string, principal: string): Promise<Buffer>
  stop(): Promise<void>
}

/** Sets msDS-SupportedEncryptionTypes of an account to both AES types: sam.ldb, smb.conf, account. */
const ALLOW_AES = `
import ldb, sys
from samba.auth import system_session
from samba.param import LoadParm
from samba.samdb import SamDB
settings = LoadParm()
settings.load(sys.argv[2])
database = SamDB(url=sys.argv[1], session_info=system_session(), lp=settings)
change = ldb.Message(database.search(expression='(sAMAccountName=' + sys.argv[3] + ')')[0].dn)
change['types'] = ldb.MessageElement('24', ldb.FLAG_MOD_REPLACE, 'msDS-SupportedEncryptionTypes')
database.modify(change)
`

/** Makes a domain and starts its LDAP server and its KDC. It needs root, for ports below 1024. */
export async function startDomainController({ pem }: CertificateFiles): Promise<DomainController> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-samba-'))
  const host = `127.77.${randomInt(1, 255)}.${randomInt(1, 255)}`
  const program = findProgram('samba-tool')
  const made = await run(program, [
    ...['domain', 'provision', '-s', '/dev/null', `--realm=${REALM}`, '--domain=LABAD', '--server-role=dc'],
    ...['--dns-backend=NONE', `--adminpass=${AD_ADMIN.password}`, `--targetdir=${folder}`],
    ...['--host-name=dc1', `--host-ip=${host}`],
  ])
  if (made.code !== 0) throw new Error(made.stderr)
  const file = (name: string) => join(folder, name)
  writeFileSync(file('cert.pem'), pem.cert)
  writeFileSync(file('key.pem'), pem.key)
  chmodSync(file('key.pem'), 0o600)
  mkdirSync(file('run'))
  const config = file('etc/smb.conf')
  const settings = [
    'server services = ldap, kdc',
    `interfaces = ${host}/8`,
    'bind interfaces only = yes',
    `pid directory = ${folder}/run`,
    `ncalrpc dir = ${folder}/run/rpc`,
    `log file = ${folder}/log`,
    `tls certfile = ${file('cert.pem')}`,
    `tls keyfile = ${file('key.pem')}`,
    'tls cafile =',
  ]
  const written = readFileSync(config, 'utf8').replace(/^\s*server services = .*$/m, settings.join('\n'))
  writeFileSync(config, written)
  const daemon = await startDaemon(
    findProgram('samba'),
    ['-F', '--no-process-group', '-s', config, '--debug-stdout', '-d1'],
    () => isListening(636, host),
  )
  const tool = async (...args: string[]): Promise<void> => {
    const done = await run(program, [...args, '-H', file('private/sam.ldb'), '-s', config])
    if (done.code !== 0) throw new Error(`samba-tool ${args.join(' ')}: ${done.stdout}${done.stderr}`)
  }
  return {
    host,
    port: 636,
    tool,
    serviceKeytab: async (account, principal) => {
      await tool('user', 'create', account, '--random-password')
      await tool('spn', 'add', principal, account)
      const changed = await run(findProgram('python3'), [
        ...['-c', ALLOW_AES, file('private/sam.ldb'), config, account],
      ])
      if (changed.code !== 0) throw new Error(changed.stderr)
      // The keys of the new types are made of the next password.
      await tool('user', 'setpassword', account, `--newpassword=Pass-of-1-${account}`)
      const made = await run(program, [
        ...['domain', 'exportkeytab', file('keytab'), `--principal=${principal}`, '-s', config],
      ])
      if (made.code !== 0) throw new Error(made.stderr)
      return readFileSync(file('keytab'))
    },
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
