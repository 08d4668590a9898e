/** A whole bastion for desktops: a broker that listens for VNC, a real Xvnc as the target, and a login. */
import { type Broker, type BrokerOptions, startBroker } from '../peers/broker.ts'
import { startXvnc, type Xvnc, type XvncOptions } from '../peers/vnc/servers.ts'
import { addDesktop, addPerson, type History, historyOf, PERSON } from './desktop-targets.ts'

export interface DesktopOptions {
  /** Default: VncAuth, 640 × 480. */
  target?: Partial<XvncOptions>
  /** Port of another VNC server on 127.0.0.1, instead of an Xvnc. */
  port?: number
  /** The user's rights; default: VNC alone. */
  subprotocols?: string[]
  /** Fields of the connection policy. The notice before the desktop is off unless set here. */
  policy?: Record<string, unknown>
  authorization?: Record<string, unknown>
  broker?: BrokerOptions
}

export interface Desktop extends History {
  broker: Broker
  /** Absent if the target is another server. */
  xvnc: Xvnc | undefined
  /** The login string; the viewer uses it with ops1's password. */
  login: string
  password: string
  /** The account's password, which no user sees. */
  targetPassword: string
  /** Port of the bastion. */
  port: number
  /** Changes fields of the connection policy. */
  policy(fields: Record<string, unknown>): Promise<void>
  /** Replaces the user's rights. */
  grant(subprotocols: string[]): Promise<void>
  stop(): Promise<void>
}

const TARGET_PASSWORD = 'Xvnc-pw1'

export async function startDesktop(options: DesktopOptions = {}): Promise<Desktop> {
  const { target } = options
  const xvnc =
    options.port === undefined
      ? await startXvnc({ types: ['VncAuth'], password: TARGET_PASSWORD, ...target })
      : undefined
  const targetPassword = target?.password ?? TARGET_PASSWORD
  const broker = await startBroker({ vnc: {}, ...options.broker })
  await addPerson(broker)
  const { login, policy, grant } = await addDesktop(broker, {
    name: 'desk1',
    protocol: 'VNC',
    port: (xvnc?.port ?? options.port)!,
    account: 'screen',
    password: targetPassword,
    subprotocols: options.subprotocols ?? ['VNC'],
    ...(options.policy && { policy: options.policy }),
    ...(options.authorization && { authorization: options.authorization }),
  })
  return {
    broker,
    xvnc,
    login,
    password: PERSON.password,
    targetPassword,
    port: broker.ports.vnc!,
    policy,
    grant,
    ...historyOf(broker),
    stop: async () => {
      await broker.stop()
      await xvnc?.stop()
    },
  }
}
