/** The fronts of all protocols, and the connections of their clients, in a session worker or in the broker. */
import type { Socket } from 'node:net'
import type { FrontName, FrontSettings } from '../../src/contract/front-settings.ts'
import type { Gate } from '../../src/contract/gate.ts'
import type { UrgentData } from '../../src/contract/urgent-data.ts'
import type { TcpHandle } from '../../src/sockets/accept.ts'
import { RdpProxy } from '../rdp/proxy.ts'
import { rloginBack } from '../rlogin/back.ts'
import { RloginClientWire, rloginRefusal } from '../rlogin/client-wire.ts'
import { Connections } from '../session/connections.ts'
import { SshConnections } from '../ssh/begin.ts'
import { SshProxy } from '../ssh/proxy.ts'
import { TerminalClientLeg } from '../ssh/terminal/client-leg.ts'
import { telnetBack } from '../telnet/back.ts'
import { TelnetClientWire, telnetRefusal } from '../telnet/client-wire.ts'
import { type Security, TerminalFront, type TerminalFrontOptions } from '../terminal/front.ts'
import { VncProxy } from '../vnc/proxy.ts'
import { type Securities, securitiesOf } from './securities.ts'

type TerminalName = 'telnet' | 'rlogin' | 'telnets'

const TELNET: Pick<TerminalFrontOptions, 'protocol' | 'wire' | 'refusal'> = {
  protocol: 'TELNET',
  wire: (around) => new TelnetClientWire(around),
  refusal: telnetRefusal,
}
const TERMINALS: Readonly<Record<TerminalName, typeof TELNET>> = {
  telnet: TELNET,
  rlogin: { protocol: 'RLOGIN', wire: (around) => new RloginClientWire(around), refusal: rloginRefusal },
  telnets: TELNET,
}

/** The part of a protocol's proxy that all of them have. */
interface Served {
  accept(handle: object): Socket
  close(): void
  destroy(): void
}

export class Fronts {
  readonly #gate: Gate
  readonly #urgent: UrgentData
  readonly #connections: Connections
  readonly #sshConnections: SshConnections
  #ssh: SshProxy | undefined
  #vnc: VncProxy | undefined
  #rdp: RdpProxy | undefined
  readonly #terminals = new Map<TerminalName, TerminalFront>()
  readonly #served = new Map<FrontName, Served>()

  /** Throws for settings that cannot be used: a certificate that does not match its key. */
  constructor(settings: FrontSettings, gate: Gate, urgent: UrgentData) {
    this.#gate = gate
    this.#urgent = urgent
    const { motd } = settings
    this.#connections = new Connections(gate)
    this.#sshConnections = new SshConnections({
      gate,
      connections: this.#connections,
      backs: { TELNET: telnetBack(urgent), RLOGIN: rloginBack(urgent, gate) },
      ...(motd !== undefined && { motd }),
    })
    const securities = securitiesOf(settings)
    this.#openSsh(settings)
    for (const name of Object.keys(TERMINALS) as TerminalName[]) {
      const security = securities[name]
      if (security) this.#openTerminal(name, security, settings)
    }
    this.#openDesktops(settings, securities)
  }

  #openSsh({ ssh, loginGraceMs, banner }: FrontSettings): void {
    if (!ssh) return
    this.#ssh = new SshProxy({
      gate: this.#gate,
      sshConnections: this.#sshConnections,
      ...ssh,
      ...(banner !== undefined && { banner }),
      loginGraceMs,
    })
    this.#served.set('ssh', this.#ssh)
  }

  #openTerminal(name: TerminalName, security: Security, { loginGraceMs, banner }: FrontSettings): void {
    const kind = TERMINALS[name]
    const front = new TerminalFront({
      ...kind,
      gate: this.#gate,
      urgent: this.#urgent,
      security,
      loginGraceMs,
      ...(banner !== undefined && { banner }),
      onSignedIn: (identity, source, client, ahead) => {
        const leg = new TerminalClientLeg(client, ahead)
        this.#sshConnections.begin({ identity, source, protocol: kind.protocol, client: leg })
        leg.begin()
      },
    })
    this.#terminals.set(name, front)
    this.#served.set(name, front)
  }

  #openDesktops({ hostname, loginGraceMs, motd }: FrontSettings, { vnc, rdp }: Securities): void {
    const common = { gate: this.#gate, connections: this.#connections, bastion: hostname, loginGraceMs }
    if (vnc) {
      this.#vnc = new VncProxy({ ...common, security: vnc })
      this.#served.set('vnc', this.#vnc)
    }
    if (rdp) {
      this.#rdp = new RdpProxy({ ...common, security: rdp, motd })
      this.#served.set('rdp', this.#rdp)
    }
  }

  /**
   * Takes over an accepted connection of that front, of which nothing has been read. Returns its socket, or
   * undefined if the front is not served.
   */
  accept(name: FrontName, handle: TcpHandle): Socket | undefined {
    const front = this.#served.get(name)
    if (!front) handle.close()
    return front?.accept(handle)
  }

  /** Number of connections that have signed in. */
  get connections(): number {
    return this.#connections.count
  }

  /** Applies to new connections. Throws, and changes nothing, if the settings cannot be used. */
  change(settings: FrontSettings): void {
    const securities = securitiesOf(settings)
    const { banner, motd, ssh } = settings
    if (this.#vnc && securities.vnc) this.#vnc.security = securities.vnc
    if (this.#rdp && securities.rdp) this.#rdp.security = securities.rdp
    this.#sshConnections.motd = motd
    if (this.#rdp) this.#rdp.motd = motd
    if (this.#ssh && ssh) {
      this.#ssh.hostCertificates = ssh.hostCertificates
      this.#ssh.banner = banner
    }
    for (const [name, front] of this.#terminals) {
      const security = securities[name]
      if (security) front.security = security
      front.banner = banner
    }
  }

  /**
   * Accepts no new connections; running ones get `graceMs`, then they are closed with the reason. Resolves at
   * the end.
   */
  async drain(graceMs: number, reason: string): Promise<void> {
    for (const front of this.#served.values()) front.close()
    await this.#connections.drain(graceMs, reason)
    for (const front of this.#served.values()) front.destroy()
    await this.#connections.emptied()
  }
}
