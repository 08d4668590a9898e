/** A whole bastion for desktops: a broker that listens for VNC, a real Xvnc as the target, and a way in. */
import { type Broker, type BrokerOptions, startBroker } from '../peers/broker.ts'
import { startXvnc, type Xvnc, type XvncOptions } from '../peers/vnc/servers.ts'
import { addDesktop, addPerson, type History, historyOf, PERSON } from './desktop-targets.ts'

export interface DesktopOptions {
  /** Default: VncAuth, 640 × 480. */
  target?: Partial<XvncOptions>
  /** Somebody else's VNC server on this port of 127.0.0.1 instead. */
  port?: number
  /** What the person may do; default: VNC alone. */
  subprotocols?: string[]
  /** Fields of the connection policy. The notice before the desktop is off unless they say otherwise. */
  policy?: Record<string, unknown>
  authorization?: Record<string, unknown>
  broker?: BrokerOptions
}

export interface Desktop extends History {
  broker: Broker
  /** Undefined where the target is somebody else's. */
  xvnc: Xvnc | undefined
  /** Of the viewer: the login string, and ops1's password. */
  login: string
  password: string
  /** The account's, which no user learns. */
  targetPassword: string
  /** Where the bastion listens. */
  port: number
  /** Fields of the connection policy are others from now on. */
  policy(fields: Record<string, unknown>): Promise<void>
  /** The person may do these from now on. */
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
