/** FreeRADIUS as a server of sign-ins, which asks some persons for codes after the password. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

export const RADIUS_SECRET = 'lab-secret'

export interface FreeRadius {
  port: number
  accountingPort: number
  /** Returns the records of accounting that it has written down, as names and values without quotes, apart by blanks. */
  accounted(): Record<string, string>[]
  log(): string
  stop(): Promise<void>
}

export interface FreeRadiusOptions {
  /** Address of loopback. */
  host: '127.0.0.1' | '::1'
  /** Message-Authenticator in replies; servers before CVE-2024-3596 have none. */
  signsReplies: boolean
  /** Those of a server that has stopped. Absent: free ones. */
  ports?: Pick<FreeRadius, 'port' | 'accountingPort'>
}

/**
 * Starts it with alice (in the groups netops and "dba, senior"), long (password of 128 octets), framed (for another
 * service), otto, who is asked for the codes 123456 and 654321, and olaf, who is asked for 123456 until it is right.
 */
export async function startFreeRadius(options: FreeRadiusOptions): Promise<FreeRadius> {
  const { host, signsReplies } = options
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-freeradius-'))
  const port = options.ports?.port ?? (await freePort())
  const accountingPort = options.ports?.accountingPort ?? (await freePort())
  const detail = join(folder, 'detail')
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  const sign = signsReplies ? 'update reply {\n&Message-Authenticator := 0x00\n}' : ''
  const ask = (text: string, state: string, prompt: string) => `update reply {
&Reply-Message := "${text}"
&State := "${state}"
&Prompt := ${prompt}
}
update control {
&Response-Packet-Type := Access-Challenge
}
handled`
  write('dictionary', '')
  write(
    'users',
    `alice Cleartext-Password := "Älice-Pass1"
\tFilter-Id += "netops", Filter-Id += "dba, senior", Class += "class-1", Cisco-AVPair += "shell:roles=net"
long Cleartext-Password := "${'p'.repeat(128)}"
framed Cleartext-Password := "Framed-Pass1"
\tService-Type = Framed-User
otto Cleartext-Password := "Otto-Pass1"
olaf Cleartext-Password := "Olaf-Pass1"
`,
  )
  write(
    'radiusd.conf',
    `prefix = /usr
name = lab
logdir = ${folder}
run_dir = ${folder}
pidfile = ${folder}/pid
libdir = /usr/lib/freeradius
max_request_time = 5
cleanup_delay = 1
log {
destination = stdout
auth = yes
}
security {
status_server = yes
reject_delay = 0
}
thread pool {
start_servers = 1
max_servers = 2
min_spare_servers = 1
max_spare_servers = 1
}
client loopback {
ipaddr = ${host === '::1' ? '::1' : '127.0.0.1'}
secret = ${RADIUS_SECRET}
require_message_authenticator = yes
}
modules {
always reject {
rcode = reject
}
always handled {
rcode = handled
}
pap {
}
files {
usersfile = ${folder}/users
}
detail {
filename = ${detail}
}
}
server lab {
listen {
type = auth
${host === '::1' ? 'ipv6addr' : 'ipaddr'} = ${host}
port = ${port}
}
listen {
type = acct
${host === '::1' ? 'ipv6addr' : 'ipaddr'} = ${host}
port = ${accountingPort}
}
accounting {
detail
}
authorize {
if (&State) {
if (&State == "first" && &User-Password == "123456") {
${ask('Next code:', 'second', 'Echo')}
}
elsif (&State == "again") {
if (&User-Password == "123456") {
update control {
&Auth-Type := Accept
}
}
else {
${ask('Wrong.\\nYour code:', 'again', 'No-Echo')}
}
}
elsif (&State == "second" && &User-Password == "654321") {
update control {
&Auth-Type := Accept
}
update reply {
&Class += "otto-1"
&Class += "otto-2"
}
}
else {
reject
}
}
else {
files
pap
}
}
authenticate {
Auth-Type PAP {
pap
if (&User-Name == "otto") {
${ask('A code was sent.\\nYour code:', 'first', 'No-Echo')}
}
if (&User-Name == "olaf") {
${ask('A code was sent.\\nYour code:', 'again', 'No-Echo')}
}
}
}
post-auth {
${sign}
Post-Auth-Type REJECT {
${sign}
}
Post-Auth-Type Challenge {
${sign}
}
}
}
`,
  )
  const daemon = await startDaemon(
    findProgram('freeradius'),
    ['-f', '-l', 'stdout', '-d', folder],
    /Ready to process requests/,
  )
  return {
    port,
    accountingPort,
    accounted: () => (existsSync(detail) ? recordsOf(readFileSync(detail, 'utf8')) : []),
    log: daemon.log,
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Returns the whole records of a detail file: each ends with an empty line. */
function recordsOf(text: string): Record<string, string>[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((record) => {
      const attributes = [...record.matchAll(/^\t([\w-]+) = "?(.*?)"?$/gm)]
      const named = Map.groupBy(attributes, ([, name = '']) => name)
      return Object.fromEntries(
        [...named].map(([name, all]) => [name, all.map(([, , value]) => value).join(' ')]),
      )
    })
}
