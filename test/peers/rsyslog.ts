/** A real rsyslogd that accepts RFC 5424 over UDP, TCP and TLS, and writes the parsed messages as JSON. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

/** One message as rsyslog parsed it. */
export interface SyslogMessage {
  app: string
  msgid: string
  hostname: string
  procid: string
  facility: string
  severity: string
  /** The message's own time (RFC 3339). */
  reported: string
  via: 'udp' | 'tcp' | 'tls'
  text: string
  /** Structured data by its name, then by key. */
  'rfc5424-sd'?: Record<string, Record<string, string>>
}

/** Files in PEM, and the name in the certificate of the only client that may connect. */
export interface RsyslogTls {
  ca: string
  certificate: string
  key: string
  client: string
}

export interface Rsyslog {
  /** Port of both UDP and TCP. */
  port: number
  /** Port of TLS (RFC 5425), if it was asked for. */
  tlsPort: number
  /** Returns all messages so far, one for each line of its output. */
  messages(): SyslogMessage[]
  /** Waits until there are `count` messages; rejects after ten seconds. */
  waitFor(count: number): Promise<SyslogMessage[]>
  stop(): Promise<void>
}

// message size and characters unchanged, even control characters: escapes would hide those
const configuration = (folder: string, port: number, tls: string) => `
global(workDirectory="${folder}/work" parser.escapeControlCharactersOnReceive="off")
module(load="imudp")
module(load="imtcp")
module(load="mmpstrucdata")
template(name="reported" type="string" string="%timereported:::date-rfc3339%")
template(name="all" type="string" string="%$!all-json%\\n")
ruleset(name="all") {
  action(type="mmpstrucdata" sd_name.lowercase="off")
  set $!app = $app-name;
  set $!msgid = $msgid;
  set $!hostname = $hostname;
  set $!procid = $procid;
  set $!facility = $syslogfacility-text;
  set $!severity = $syslogseverity-text;
  set $!reported = exec_template("reported");
  set $!via = $inputname;
  set $!text = $msg;
  action(type="omfile" file="${folder}/out.json" template="all" asyncWriting="off")
}
input(type="imudp" address="127.0.0.1" port="${port}" name="udp" ruleset="all")
input(type="imtcp" address="127.0.0.1" port="${port}" name="tcp" ruleset="all")
${tls}
`

const tlsInput = (port: number, { ca, certificate, key, client }: RsyslogTls) => `
input(type="imtcp" address="127.0.0.1" port="${port}" name="tls" ruleset="all"
  streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="x509/name" permittedPeer=["${client}"]
  streamDriver.CAFile="${ca}" streamDriver.certFile="${certificate}" streamDriver.keyFile="${key}")
`

async function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

/** Starts it; `port` 0 finds a free one. */
export async function startRsyslog(port = 0, tls?: RsyslogTls): Promise<Rsyslog> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-rsyslog-'))
  const chosen = port === 0 ? await freePort() : port
  const tlsPort = tls ? await freePort() : 0
  mkdirSync(join(folder, 'work'))
  const input = tls ? tlsInput(tlsPort, tls) : ''
  writeFileSync(join(folder, 'rsyslog.conf'), configuration(folder, chosen, input))
  const args = ['-n', '-f', join(folder, 'rsyslog.conf'), '-i', join(folder, 'rsyslogd.pid')]
  const daemon = await startDaemon(findProgram('rsyslogd'), args, () => listens(chosen))
  const messages = (): SyslogMessage[] => {
    let text = ''
    try {
      text = readFileSync(join(folder, 'out.json'), 'utf8')
    } catch {
      // no message has come yet
    }
    return (
      text
        .split('\n')
        // the last line may not be complete yet
        .slice(0, -1)
        .map((line) => JSON.parse(line) as SyslogMessage)
    )
  }
  return {
    port: chosen,
    tlsPort,
    messages,
    async waitFor(count) {
      for (const deadline = Date.now() + 10_000; ; await sleep(20)) {
        const found = messages()
        if (found.length >= count) return found
        if (Date.now() > deadline)
          throw new Error(`expected ${count} messages, got ${found.length}: ${daemon.log()}`)
      }
    },
    async stop() {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
