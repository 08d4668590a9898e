/**
 * The client's global requests (RFC 4254 4, 7.1), in order: each is answered, by the bastion or the target,
 * before the next begins. A bind is sent to the target once the audit log has stored it. Binds that the
 * target has granted are kept: only their connections are accepted.
 */

import type { Buffer } from 'node:buffer'
import { isForwardAllowed } from '../../../src/model/forward-rules.ts'
import type { Right } from '../../../src/model/rights.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { missingRight } from '../../wording/missing-right.ts'
import { MAX_BINDS } from '../channel/limits.ts'
import { buildGlobalRequest, buildRequestFailure, buildRequestSuccess } from '../codec/build.ts'
import {
  type Address,
  addressFlaw,
  addressText,
  buildAddress,
  buildPort,
  buildSocketPath,
  parseAddress,
  parsePort,
  parseSocketPath,
  pathFlaw,
  pathText,
} from '../codec/forwarding.ts'
import type { GlobalRequest } from '../codec/messages.ts'
import { MAX_OWED } from '../transport/limits.ts'
import type { ChannelHost } from './channel.ts'

/** A listener for the client on the target, existing or requested. */
export type Bind = { kind: 'tcp'; address: Address } | { kind: 'socket'; path: string }

type Work =
  | { kind: 'bind' | 'cancel'; right: Right; bind: Bind; wantReply: boolean }
  /** A request that the bastion answers itself. */
  | { kind: 'answer'; granted: boolean; wantReply: boolean }

export class GlobalRequests {
  readonly #host: ChannelHost
  readonly #granted = new Set<string>()
  readonly #queue: Work[] = []
  #working = false
  /** Handlers of the target's pending replies, in order (RFC 4254 4). */
  readonly #asked: ((granted: boolean, data: Uint8Array) => void)[] = []

  constructor(host: ChannelHost) {
    this.#host = host
  }

  /** Answers a request by the bastion itself, in its turn. */
  answer(wantReply: boolean, granted: boolean): void {
    this.#add({ kind: 'answer', granted, wantReply })
  }

  /** Forwards a request that binds or cancels, under the right that it needs. Throws MalformedError. */
  forward({ name, wantReply, data }: GlobalRequest, right: Right): void {
    const bind: Bind = name.includes('tcpip')
      ? { kind: 'tcp', address: parseAddress(data) }
      : { kind: 'socket', path: parseSocketPath(data) }
    const kind = name.startsWith('cancel-') ? 'cancel' : 'bind'
    const reason = this.#refusal(kind, bind, right)
    if (reason === undefined) {
      this.#add({ kind, right, bind, wantReply })
    } else {
      this.#host.session.denied(right, reason, textOf(bind))
      this.answer(wantReply, false)
    }
  }

  /** Reserves the place of a reply to another request sent to the target. */
  expectAnswer(): void {
    this.#asked.push(() => undefined)
  }

  /** Handles the target's REQUEST_SUCCESS or REQUEST_FAILURE; a reply without request is ignored. */
  answered(granted: boolean, payload: Buffer): void {
    this.#asked.shift()?.(granted, payload.subarray(1))
  }

  /** Whether the client was granted this listener on the target. */
  isBound(bind: Bind): boolean {
    return this.#granted.has(keyOf(bind))
  }

  #refusal(kind: 'bind' | 'cancel', bind: Bind, right: Right): string | undefined {
    const { session } = this.#host
    if (!session.rights.has(right)) return missingRight(right, session.target.device)
    const { suspension } = session
    if (suspension.isOn) return `input is suspended: ${suspension.reason}`
    if (bind.kind === 'socket') return pathFlaw(bind.path)
    const { host, port } = bind.address
    const flaw = addressFlaw(bind.address, true)
    if (flaw !== undefined || kind === 'cancel') return flaw
    if (isForwardAllowed(session.options.listenOn, host, port)) return undefined
    return `the connection policy lets nobody listen on ${textOf(bind)}`
  }

  #add(work: Work): void {
    if (this.#queue.length >= MAX_OWED) throw new MalformedError('too many requests before an answer')
    this.#queue.push(work)
    this.#next()
  }

  #next(): void {
    while (!this.#working) {
      const work = this.#queue.shift()
      if (!work) return
      if (work.kind === 'answer') this.#reply(work, work.granted)
      else if (work.kind === 'bind') this.#bind(work.bind, work.right, work)
      else this.#cancel(work.bind, work)
    }
  }

  #bind(bind: Bind, right: Right, work: { wantReply: boolean }): void {
    const { session } = this.#host
    if (this.#granted.size >= MAX_BINDS) {
      session.denied(right, `at most ${MAX_BINDS} listeners at a time`, textOf(bind))
      this.#reply(work, false)
      return
    }
    this.#working = true
    session.forwards(right, textOf(bind)).then(
      () =>
        this.#host.guarded(() => {
          // Input may have been suspended meanwhile.
          if (session.suspension.isOn) {
            this.#done(work, false)
            return
          }
          this.#ask(requestName(bind), bind, (granted, data) => {
            // RFC 4254 7.1: only the reply to a request for any port names the port.
            const port =
              granted && bind.kind === 'tcp' && bind.address.port === 0 ? parsePort(data) : undefined
            if (granted) this.#granted.add(keyOf(bind, port))
            this.#done(work, granted, port === undefined ? undefined : buildPort(port))
          })
        }),
      () => session.stop('failure', 'the audit log cannot be written'),
    )
  }

  #cancel(bind: Bind, work: { wantReply: boolean }): void {
    if (!this.isBound(bind) || this.#host.session.suspension.isOn) {
      this.#reply(work, false)
      return
    }
    this.#working = true
    this.#ask(`cancel-${requestName(bind)}`, bind, (granted) => {
      if (granted) this.#granted.delete(keyOf(bind))
      this.#done(work, granted)
    })
  }

  /** Always requests a reply: connections are accepted only for binds that the target has granted. */
  #ask(name: string, bind: Bind, then: (granted: boolean, data: Uint8Array) => void): void {
    const data = bind.kind === 'tcp' ? buildAddress(bind.address) : buildSocketPath(bind.path)
    this.#asked.push(then)
    this.#host.target.send(buildGlobalRequest({ name, wantReply: true, data }))
  }

  #done(work: { wantReply: boolean }, granted: boolean, data?: Buffer): void {
    this.#working = false
    this.#reply(work, granted, data)
    this.#next()
  }

  #reply({ wantReply }: { wantReply: boolean }, granted: boolean, data?: Buffer): void {
    if (wantReply) this.#host.client.send(granted ? buildRequestSuccess(data) : buildRequestFailure())
  }
}

function requestName(bind: Bind): string {
  return bind.kind === 'tcp' ? 'tcpip-forward' : 'streamlocal-forward@openssh.com'
}

function keyOf(bind: Bind, port?: number): string {
  return bind.kind === 'tcp' ? `${port ?? bind.address.port} ${bind.address.host}` : `path ${bind.path}`
}

function textOf(bind: Bind): string {
  return bind.kind === 'tcp' ? addressText(bind.address) : pathText(bind.path)
}
