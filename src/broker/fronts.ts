/** The listeners of all protocols, and their connections. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { serverContext } from '../../proxies/net/tls.ts'
import type { RdpFrontSecurity } from '../../proxies/rdp/front/front.ts'
import { RdpProxy } from '../../proxies/rdp/proxy.ts'
import { rloginBack } from '../../proxies/rlogin/back.ts'
import { RloginClientWire, rloginRefusal } from '../../proxies/rlogin/client-wire.ts'
import { Connections } from '../../proxies/session/connections.ts'
import { SshConnections } from '../../proxies/ssh/begin.ts'
import { SshProxy } from '../../proxies/ssh/proxy.ts'
import { TerminalClientLeg } from '../../proxies/ssh/terminal/client-leg.ts'
import { telnetBack } from '../../proxies/telnet/back.ts'
import { TelnetClientWire, telnetRefusal } from '../../proxies/telnet/client-wire.ts'
import { type Security, TerminalFront, type TerminalFrontOptions } from '../../proxies/terminal/front.ts'
import type { VncFrontSecurity } from '../../proxies/vnc/front.ts'
import { VncProxy } from '../../proxies/vnc/proxy.ts'
import { anonymousContext, certificateContext } from '../../proxies/vnc/tls.ts'
import type { Config, ListenAddress } from '../config/config.ts'
import { copyingGate, GATE_COPIES } from '../contract/copying-gate.ts'
import type { Gate } from '../contract/gate.ts'
import { type UrgentData, WITHOUT_URGENCY } from '../contract/urgent-data.ts'
import { hostKeys, nextHostKeys, publicHostKeys, tlsFiles, vncKey } from '../host/data-folder.ts'
import { openUrgentData } from '../sockets/urgent.ts'
import { type OwnCertificate, openHostCertificates, validityOf } from './own-certificates.ts'

type TerminalListener = 'telnet' | 'rlogin' | 'telnets'
type Warn = (message: string) => void

const TERMINAL_LISTENERS: Readonly<
  Record<TerminalListener, Pick<TerminalFrontOptions, 'protocol' | 'wire' | 'refusal'>>
> = {
  telnet: { protocol: 'TELNET', wire: (around) => new TelnetClientWire(around), refusal: telnetRefusal },
  rlogin: { protocol: 'RLOGIN', wire: (around) => new RloginClientWire(around), refusal: rloginRefusal },
  telnets: { protocol: 'TELNET', wire: (around) => new TelnetClientWire(around), refusal: telnetRefusal },
}

export interface Listener {
  /** The name in the configuration. */
  name: string
  address: ListenAddress
  listen: (host: string, port: number) => Promise<{ address: string; port: number }>
}

export class Fronts {
  readonly #warn: Warn
  readonly #connections: Connections
  readonly #sshConnections: SshConnections
  #ssh: SshProxy | undefined
  #vnc: VncProxy | undefined
  #rdp: RdpProxy | undefined
  readonly #terminals = new Map<TerminalListener, TerminalFront>()
  /** The listeners to bind, in the order in which they are reported. */
  readonly listeners: Listener[] = []

  private constructor(connections: Connections, sshConnections: SshConnections, warn: Warn) {
    this.#connections = connections
    this.#sshConnections = sshConnections
    this.#warn = warn
  }

  /** Opens the fronts; nothing listens yet. `warn` gets faults that do not prevent the start. */
  static async open(config: Config, asked: Gate, warn: Warn): Promise<Fronts> {
    const gate = process.env[GATE_COPIES] === '1' ? copyingGate(asked) : asked
    const urgent = await urgentData(warn)
    const { motd } = config.ssh
    const connections = new Connections(gate)
    const sshConnections = new SshConnections({
      gate,
      connections,
      backs: { TELNET: telnetBack(urgent), RLOGIN: rloginBack(urgent) },
      ...(motd !== undefined && { motd }),
    })
    const fronts = new Fronts(connections, sshConnections, warn)
    if (config.listen.ssh) fronts.#openSsh(config, config.listen.ssh, gate)
    for (const name of Object.keys(TERMINAL_LISTENERS) as TerminalListener[]) {
      const security = await securityOf(name, config)
      const address = config.listen[name]
      if (security && address) fronts.#openTerminal(name, address, security, config, gate, urgent)
    }
    const security = await vncSecurityOf(config)
    if (security && config.listen.vnc) fronts.#openVnc(config, config.listen.vnc, security, gate)
    const rdpSecurity = await rdpSecurityOf(config)
    if (rdpSecurity && config.listen.rdp) fronts.#openRdp(config, config.listen.rdp, rdpSecurity, gate)
    return fronts
  }

  #openVnc(
    { loginGrace, hostname }: Config,
    address: ListenAddress,
    security: VncFrontSecurity,
    gate: Gate,
  ): void {
    const connections = this.#connections
    const proxy = new VncProxy({ gate, connections, security, bastion: hostname, loginGraceMs: loginGrace })
    this.#vnc = proxy
    this.listeners.push({ name: 'vnc', address, listen: (host, port) => proxy.listen(host, port) })
  }

  #openRdp(
    { loginGrace, hostname, ssh }: Config,
    address: ListenAddress,
    security: RdpFrontSecurity,
    gate: Gate,
  ): void {
    const connections = this.#connections
    const proxy = new RdpProxy({
      gate,
      connections,
      security,
      bastion: hostname,
      loginGraceMs: loginGrace,
      motd: ssh.motd,
    })
    this.#rdp = proxy
    this.listeners.push({ name: 'rdp', address, listen: (host, port) => proxy.listen(host, port) })
  }

  #openSsh(config: Config, address: ListenAddress, gate: Gate): void {
    const { dataDir, loginGrace, ssh } = config
    const proxy = new SshProxy({
      gate,
      sshConnections: this.#sshConnections,
      hostKeys: hostKeys(dataDir).map((key) => key.private),
      nextHostKeys: nextHostKeys(dataDir),
      hostCertificates: this.#hostCertificates(config),
      ...(ssh.banner !== undefined && { banner: ssh.banner }),
      loginGraceMs: loginGrace,
    })
    this.#ssh = proxy
    this.listeners.push({ name: 'ssh', address, listen: (host, port) => proxy.listen(host, port) })
  }

  #openTerminal(
    name: TerminalListener,
    address: ListenAddress,
    security: Security,
    { loginGrace, ssh }: Config,
    gate: Gate,
    urgent: UrgentData,
  ): void {
    const kind = TERMINAL_LISTENERS[name]
    const front = new TerminalFront({
      ...kind,
      gate,
      urgent,
      security,
      loginGraceMs: loginGrace,
      ...(ssh.banner !== undefined && { banner: ssh.banner }),
      onSignedIn: (identity, source, client, ahead) => {
        const leg = new TerminalClientLeg(client, ahead)
        this.#sshConnections.begin({ identity, source, protocol: kind.protocol, client: leg })
        leg.begin()
      },
    })
    this.#terminals.set(name, front)
    this.listeners.push({ name, address, listen: (host, port) => front.listen(host, port) })
  }

  /** Returns the certificates that are valid now. Throws if one is wrong. */
  #hostCertificates({ ssh, dataDir }: Config): OwnCertificate[] {
    return openHostCertificates(ssh.hostCertificates, publicHostKeys(dataDir)).filter((certificate) => {
      const { isValid, warning } = validityOf(certificate, Date.now())
      if (warning !== undefined) this.#warn(warning)
      return isValid
    })
  }

  /**
   * Reads the files of a changed configuration, and throws if that fails. Returns a function that applies
   * them to new connections. Listeners stay.
   */
  async prepareReload(config: Config): Promise<() => void> {
    const hostCertificates = this.#ssh ? this.#hostCertificates(config) : []
    const securities = new Map<TerminalListener, Security>()
    for (const name of this.#terminals.keys()) {
      const security = await securityOf(name, config)
      if (security) securities.set(name, security)
    }
    const vncSecurity = this.#vnc && (await vncSecurityOf(config))
    const rdpSecurity = this.#rdp && (await rdpSecurityOf(config))
    return () => {
      if (this.#vnc && vncSecurity) this.#vnc.security = vncSecurity
      if (this.#rdp && rdpSecurity) this.#rdp.security = rdpSecurity
      const { banner, motd } = config.ssh
      this.#sshConnections.motd = motd
      if (this.#rdp) this.#rdp.motd = motd
      if (this.#ssh) {
        this.#ssh.hostCertificates = hostCertificates
        this.#ssh.banner = banner
      }
      for (const [name, front] of this.#terminals) {
        const security = securities.get(name)
        if (security) front.security = security
        front.banner = banner
      }
    }
  }

  /**
   * Accepts no new connections; running ones get `graceMs`, then they are closed with the reason. Resolves at
   * the end.
   */
  async drain(graceMs: number, reason: string): Promise<void> {
    const all = [this.#ssh, this.#vnc, this.#rdp, ...this.#terminals.values()]
    const fronts = all.filter((front) => front !== undefined)
    for (const front of fronts) front.close()
    await this.#connections.drain(graceMs, reason)
    for (const front of fronts) front.destroy()
    await this.#connections.emptied()
  }
}

async function securityOf(
  name: TerminalListener,
  { listen, dataDir, hostname }: Config,
): Promise<Security | undefined> {
  if (name !== 'telnets') return listen[name]
  if (!listen.telnets) return undefined
  return { tls: serverContext(await tlsFiles(dataDir, hostname, listen.telnets)) }
}

async function vncSecurityOf({ listen, dataDir, hostname }: Config): Promise<VncFrontSecurity | undefined> {
  if (!listen.vnc) return undefined
  return {
    certificate: certificateContext(await tlsFiles(dataDir, hostname, listen.vnc)),
    anonymous: anonymousContext(),
    rsaKey: createPrivateKey(vncKey(dataDir)),
    types: listen.vnc.securityTypes,
    allowClear: listen.vnc.allowClear,
  }
}

async function rdpSecurityOf({ listen, dataDir, hostname }: Config): Promise<RdpFrontSecurity | undefined> {
  if (!listen.rdp) return undefined
  const files = await tlsFiles(dataDir, hostname, listen.rdp)
  // In a file with a chain the first is the server's own, as in TLS.
  const certificate = new X509Certificate(files.cert).raw
  return { tls: serverContext(files), certificate, nla: listen.rdp.nla }
}

async function urgentData(warn: Warn): Promise<UrgentData> {
  const opened = await openUrgentData()
  if ('urgent' in opened) return opened.urgent
  warn(
    `there is no way to TCP's urgent data (${opened.missing}): Telnet and rlogin sessions lose bytes of it, and rlogin may not learn the window's size`,
  )
  return WITHOUT_URGENCY
}
