/** A whole bastion for RDP: a broker that listens for it, real targets of every kind, and a login. */
import { type Broker, type BrokerOptions, startBroker } from '../peers/broker.ts'
import { setDesktop } from '../peers/rdp/sesman.ts'
import { type Shadow, startShadow } from '../peers/rdp/shadow.ts'
import { startXrdp } from '../peers/rdp/xrdp.ts'
import { type Picture, paint, type Screen, startScreen } from '../peers/screen.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'
import {
  addDesktop,
  addPerson,
  type DesktopTarget,
  type History,
  historyOf,
  PERSON,
  type ReachableDesktop,
} from './desktop-targets.ts'

export interface RdpDesktop extends History {
  broker: Broker
  /** Port of the bastion. */
  port: number
  /** The user's name and password. */
  user: string
  password: string
  /** Adds a target that ops1 may open, with the right RDP alone unless `subprotocols` is set. */
  add(target: RdpTarget): Promise<ReachableDesktop>
  stop(): Promise<void>
}

export type RdpTarget = Omit<DesktopTarget, 'protocol' | 'subprotocols'> &
  Partial<Pick<DesktopTarget, 'subprotocols'>>

export async function startRdpDesktop(options: BrokerOptions = {}): Promise<RdpDesktop> {
  const broker = await startBroker({ rdp: {}, ...options })
  await addPerson(broker)
  return {
    broker,
    port: broker.ports.rdp!,
    ...PERSON,
    ...historyOf(broker),
    add: (target) => addDesktop(broker, { protocol: 'RDP', subprotocols: ['RDP'], ...target }),
    stop: () => broker.stop(),
  }
}

/** A target that shows a test's own display, to clients with its credential or to all. */
export interface ShadowTarget extends Shadow {
  account: string
  password: string
  display: string
  paint(picture: Picture): Promise<void>
}

export async function startShadowTarget(
  security: 'nla' | 'tls',
  size: { width: number; height: number },
  { name: account, password } = { name: 'administrator', password: 'Shadow-Pass1 ü' },
): Promise<ShadowTarget> {
  const screen: Screen = await startScreen(size.width, size.height)
  const shadow = await startShadow({ screen, security, users: [{ name: account, password }] })
  return {
    ...shadow,
    account,
    password,
    display: screen.display,
    paint: (picture) => paint(screen.display, picture),
    stop: async () => {
      await shadow.stop()
      await screen.stop()
    },
  }
}

export interface XrdpTargets {
  /** Adds the desktop of a new user, which runs these lines of sh; ops1 may open it. */
  add(
    name: string,
    program: string,
    options?: Partial<Pick<DesktopTarget, 'subprotocols' | 'policy' | 'password'>>,
  ): Promise<ReachableDesktop & { user: SystemUser }>
  log(): string
  stop(): Promise<void>
}

/** Each desktop has its own user: a client that returns within a minute finds it unchanged. */
export async function startXrdpTargets(desktop: Pick<RdpDesktop, 'add'>): Promise<XrdpTargets> {
  const xrdp = await startXrdp()
  const users: SystemUser[] = []
  return {
    add: async (name, program, options) => {
      const user = await createSystemUser()
      users.push(user)
      setDesktop(user, program)
      const { name: account, password } = user
      return { user, ...(await desktop.add({ name, port: xrdp.port, account, password, ...options })) }
    },
    log: () => xrdp.log(),
    stop: async () => {
      await xrdp.stop()
      for (const user of users) await user.remove()
    },
  }
}
