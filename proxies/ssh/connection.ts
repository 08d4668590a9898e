/**
 * One client's connection from sign-in to the end: the lobby first, then the target, then the relay.
 */
import type { Gate, Identity, OpenRequest, Source, TargetEntry } from '../../src/gate/messages.ts'
import { connectTarget } from './back.ts'
import { INTERNAL, TargetError } from './errors.ts'
import { farewell } from './farewell.ts'
import { Lobby } from './lobby.ts'
import type { LocalChannel } from './local.ts'
import { Relay } from './relay.ts'
import { type SessionResult, SshSession } from './session.ts'
import type { Transport } from './transport.ts'

export interface ConnectionOptions {
  gate: Gate
  identity: Identity
  source: Source
  client: Transport
  /** Software version toward the target, `SSH-2.0-` excluded. */
  ident: string
  /** A session has begun or ended here: the proxy hands its stop notices on. */
  onSession: (id: string, session: SshSession | undefined) => void
  /** Nothing is left of the connection. */
  onGone: () => void
}

/** What a login without target is told where there is no terminal to choose in. */
const SYNTAX =
  'no target in the login: use USER+ACCOUNT@DEVICE, for example ssh ops1+root@srv1@bastion, or a terminal for the menu'

export class SshConnection {
  readonly #options: ConnectionOptions
  readonly #lobby: Lobby
  readonly #abandon = new AbortController()
  #session: SshSession | undefined
  /** The way to the target, while it is being made. */
  #connecting: Promise<void> | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { client, identity, gate } = options
    client.onClose = () => {
      this.#abandon.abort('the client has gone')
      this.#lobby.close()
      void this.#leave()
    }
    this.#lobby = new Lobby(
      {
        client,
        onFirstChannel: () => {
          this.#connecting = this.#toTarget()
        },
        targets: () => gate.targets({ identity: identity.token, protocol: 'SSH' }),
        onChoice: (choice, channel) => {
          this.#connecting = this.#toChosen(choice, channel)
        },
        onDenied: (what) => {
          const request = {
            identity: identity.token,
            protocol: 'SSH' as const,
            what,
            reason: 'not allowed here',
          }
          // What cannot be audited does not go on.
          gate.denied(request).catch(() => client.destroy())
        },
        jumpHint: (device) =>
          `the bastion is no jump host (-J, -W): sign in to the target through it, ssh ${identity.user}+ACCOUNT@${device}@BASTION`,
        onBreach: () => client.breach(),
        onIdle: () => this.stop('failure', 'nothing was asked for in time'),
      },
      identity.hasTarget ? { name: 'waiting' } : { name: 'local', text: SYNTAX, menu: true },
    )
  }

  /** The broker is stopping. */
  stop(result: SessionResult, reason: string): void {
    if (this.#session) {
      this.#session.stop(result, reason)
      return
    }
    this.#abandon.abort(reason)
    this.#lobby.end(reason)
    farewell(this.#options.client)
  }

  /** The target of the login string. */
  async #toTarget(): Promise<void> {
    const relay = await this.#connect(undefined, this.#abandon.signal, undefined)
    if (typeof relay === 'string') this.#lobby.goLocal(relay, false)
    else this.#handOver(relay)
  }

  /** The target that was chosen in the menu, whose channel goes on as the target's. */
  async #toChosen(choice: TargetEntry, channel: LocalChannel): Promise<void> {
    const interrupt = new AbortController()
    channel.wait(`Connecting to ${choice.target} ...\r\n`, () => interrupt.abort('interrupted'))
    const relay = await this.#connect(
      choice.target,
      AbortSignal.any([interrupt.signal, this.#abandon.signal]),
      channel,
    )
    if (typeof relay === 'string') {
      this.#lobby.goLocal(SYNTAX, true)
      channel.resume(`sallyport: ${relay}`)
      return
    }
    const adopted = channel.release()
    if (adopted) relay.guarded(() => relay.adopt(adopted))
    this.#handOver(relay)
  }

  #handOver(relay: Relay): void {
    for (const message of this.#lobby.takeWaiting()) relay.replay(message)
  }

  /** The relay to the target, or why there is none. Never rejects. */
  async #connect(
    target: string | undefined,
    signal: AbortSignal,
    chosen: LocalChannel | undefined,
  ): Promise<Relay | string> {
    const { gate, identity, source, client, ident, onSession } = this.#options
    const request: OpenRequest = { identity: identity.token, protocol: 'SSH', source }
    let session: SshSession | undefined
    try {
      const answer = await gate.open(target === undefined ? request : { ...request, target })
      if (answer.result === 'denied') return answer.message
      session = await SshSession.begin(answer.session, gate)
      this.#session = session
      onSession(session.id, session)
      session.onStop = (_result, reason) => this.#abandon.abort(reason)
      const transport = await connectTarget(answer.session, gate, ident, signal)
      if (session.stopped) {
        transport.destroy()
        throw new Error(session.stopped.reason)
      }
      this.#lobby.close()
      this.#lobby.leaveBehind(chosen)
      return new Relay(client, transport, session, this.#lobby.nextId, () => void this.#leave())
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (session) {
        onSession(session.id, undefined)
        this.#session = undefined
        await session.end('failure', reason)
      }
      return error instanceof TargetError || session?.stopped ? reason : INTERNAL
    }
  }

  /** After the client has gone, or the relay has ended. Never rejects. */
  async #leave(): Promise<void> {
    const { gate, identity, onSession, onGone } = this.#options
    try {
      await this.#connecting
      if (this.#session) {
        await this.#session.end('success')
        onSession(this.#session.id, undefined)
      }
      await gate.leave({ identity: identity.token })
    } catch {
      // The broker has gone away: there is nobody left to tell.
    } finally {
      onGone()
    }
  }
}
