/** A relay between two legs that are only lists of messages, with a session that has a test's rights. */
import { Buffer } from 'node:buffer'
import type { SessionResult } from '../../../proxies/session/session.ts'
import { Suspension } from '../../../proxies/session/suspension.ts'
import { buildChannelOpen, buildChannelOpenConfirmation } from '../../../proxies/ssh/codec/build.ts'
import { MSG, parseChannelOpen, parseChannelOpenConfirmation } from '../../../proxies/ssh/codec/messages.ts'
import { OpenSizes } from '../../../proxies/ssh/files/open-sizes.ts'
import type { SshSession } from '../../../proxies/ssh/policy/session.ts'
import { Relay } from '../../../proxies/ssh/relay/relay.ts'
import { Turns } from '../../../proxies/ssh/sftp/turns.ts'
import type { Transport } from '../../../proxies/ssh/transport/transport.ts'
import { FileJudge } from '../../../src/model/file-judge.ts'
import type { Right } from '../../../src/model/rights.ts'
import { SSH_OPTIONS, type SshOptions } from '../../../src/model/ssh-options.ts'

export const WINDOW = 100_000
const NOTHING = new Uint8Array(0)

export interface Leg {
  /** If set, the peer has sent nothing, so a keepalive is due. */
  isSilent: boolean
  /** Messages that the bastion has sent to this peer. */
  readonly sent: Buffer[]
  /** Sends messages of the peer; the relay may rewrite their bytes. */
  say(...messages: Uint8Array[]): void
  /** Removes and returns the messages of one number. */
  take(type: number): Buffer[]
}

export interface Denial {
  what: string
  reason: string
  destination: string | undefined
}

/** The two peers of a bastion. */
export interface Peers {
  client: Leg
  target: Leg
  /** Waits until sent messages are read, and those that waited for the audit log continue. */
  settle(): Promise<void>
  /** Opens a session channel on both legs. Returns the bastion's number. */
  openSession(): number | Promise<number>
}

export interface World extends Peers {
  flow: Record<'client' | 'target', Flow>
  /** The opened channels in the audit log: right and destination. */
  opened: string[]
  denied: Denial[]
  /** The session's end, if it has ended. */
  readonly ended: string | undefined
  /** Bytes seen by the recorders of forwarded channels. */
  counted: { in: number; out: number }
  /** Targets' output seen by the recorders of session channels. */
  readonly recorded: string
  openSession(): number
  /** Makes the session's recording full, or no longer full. */
  setFull(isFull: boolean): void
  /** Kills the session, as an administrator or a rule does. */
  kill(): void
  /** Holds or releases the client's input. */
  readonly suspension: Suspension
  end(): void
}

/** `firstId`: the lowest channel number that the lobby has not used. */
export function newWorld(rights: Iterable<Right>, options: Partial<SshOptions> = {}, firstId = 0): World {
  const opened: string[] = []
  const denied: Denial[] = []
  const counted = { in: 0, out: 0 }
  let ended: string | undefined
  let recorded = ''
  const legs = [newLeg(), newLeg()] as const
  const [client, target] = legs
  const session: SshSession = {
    rights: new Set(rights),
    options: { ...SSH_OPTIONS, ...options },
    target: { device: 'srv1', protocol: 'SSH' },
    suspension: new Suspension(),
    questionFor: () => undefined,
    fileRules: new FileJudge([]),
    openSizes: new OpenSizes(),
    turns: new Turns(),
    filtersSftp: !new Set(rights).has('SFTP_SESSION'),
    granted: async ({ right }: { right: Right }) => void opened.push(right),
    forwards: async (right: Right, destination?: string) =>
      void opened.push(destination === undefined ? right : `${right} ${destination}`),
    denied: (what: string, reason: string, destination?: string) =>
      void denied.push({ what, reason, destination }),
    recording: { hasFailed: false },
    recorder: () => ({
      fromClient: () => undefined,
      fromTarget: (data: Uint8Array) => {
        recorded += Buffer.from(data).toString()
      },
      resize: () => undefined,
      exit: () => undefined,
      close: () => undefined,
    }),
    forwardRecorder: () => ({
      fromClient: (data: Uint8Array) => {
        counted.in += data.length
      },
      fromTarget: (data: Uint8Array) => {
        counted.out += data.length
      },
      close: () => undefined,
    }),
    bytesIn: 0,
    bytesOut: 0,
    signs: 0,
    isFull: false,
    stop: (result: SessionResult, reason: string) => session.onStop?.(result, reason),
    close: async (result: string, reason?: string) => {
      ended ??= reason ?? result
    },
  } as unknown as SshSession
  new Relay(client.transport, target.transport, session, {
    firstId,
    takeMotd: () => undefined,
    onClosed: () => undefined,
  })
  return {
    client,
    target,
    flow: { client: client.flow, target: target.flow },
    opened,
    denied,
    counted,
    get ended() {
      return ended
    },
    get recorded() {
      return recorded
    },
    setFull: (isFull) => Object.assign(session, { isFull }),
    suspension: session.suspension,
    kill: () => session.stop('killed', 'somebody said so'),
    settle: () => new Promise((resolve) => setImmediate(resolve)),
    openSession: () => {
      client.say(open('session', 3))
      const { sender } = parseChannelOpen(target.take(MSG.channelOpen).at(-1)!)
      target.say(confirmation(sender, 1003))
      return parseChannelOpenConfirmation(client.take(MSG.channelOpenConfirmation).at(-1)!).sender
    },
    end: () => {
      client.transport.onClosed?.()
    },
  }
}

interface TestLeg extends Leg {
  transport: Transport
  flow: Flow
}

/** The back-pressure of a leg. */
export interface Flow {
  congested: boolean
  written: number
  waiting: number
  flooded: boolean
  inKex: boolean
  readonly paused: boolean
  readonly mayRekey: (() => boolean) | undefined
}

function newLeg(): TestLeg {
  const sent: Buffer[] = []
  let isSilent = false
  const transport = {
    send: (payload: Uint8Array) => void sent.push(Buffer.from(payload)),
    onMessage: undefined as ((payload: Buffer) => void) | undefined,
    closed: false,
    congested: false,
    written: 0,
    waiting: 0,
    flooded: false,
    paused: false,
    inKex: false,
    mayRekey: undefined as (() => boolean) | undefined,
    takeHeard: () => !isSilent,
    refreshKeys: () => undefined,
    close: () => undefined,
    destroy: () => undefined,
  }
  return {
    sent,
    get isSilent() {
      return isSilent
    },
    set isSilent(silent) {
      isSilent = silent
    },
    transport: transport as unknown as Transport,
    flow: transport,
    say: (...messages) => {
      for (const message of messages) transport.onMessage?.(Buffer.from(message))
    },
    take: (type) => {
      const taken = sent.filter(([first]) => first === type)
      const rest = sent.filter(([first]) => first !== type)
      sent.splice(0, sent.length, ...rest)
      return taken
    },
  }
}

export function open(type: string, sender: number, typeData: Uint8Array = NOTHING, window = WINDOW): Buffer {
  return buildChannelOpen({ type, sender, window, maxPacket: 32_768, typeData })
}

export function confirmation(recipient: number, sender: number, window = WINDOW): Buffer {
  return buildChannelOpenConfirmation({ recipient, sender, window, maxPacket: 32_768 })
}
