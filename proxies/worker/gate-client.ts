/** The gate as a session worker sees it: requests by number to the broker, answers and notices from it. */
import type { Socket } from 'node:net'
import { HeldBytes } from '../../recordings/container/held.ts'
import type { Sealer } from '../../recordings/container/sealing/sealer.ts'
import type { Gate, GateNotice } from '../../src/contract/gate.ts'
import { encodeParts } from '../../src/contract/wire.ts'
import type { FromWorker, GateAnswer, GateMethod, GateRequest, ToWorker } from '../../src/contract/worker.ts'
import { Questions } from '../../src/threads/questions.ts'

export class GateClient implements Gate {
  readonly #socket: Socket
  readonly #sealer: Sealer
  readonly #questions = new Questions<unknown>()
  #listener: ((notice: GateNotice) => void) | undefined

  /** `sealer`: has an outlet to the broker. */
  constructor(socket: Socket, sealer: Sealer) {
    this.#socket = socket
    this.#sealer = sealer
  }

  /** Sends a message; one with held bytes by the sealing thread, which throws if they are lost. */
  send(message: FromWorker): void {
    const parts = encodeParts(message)
    if (parts.some((part) => part instanceof HeldBytes)) {
      this.#sealer.write(parts)
      return
    }
    this.#socket.cork()
    for (const part of parts as Uint8Array[]) this.#socket.write(part)
    this.#socket.uncork()
  }

  /** Takes a message of the broker. Returns false if it is none of the gate's. */
  take(message: ToWorker): boolean {
    switch (message.type) {
      case 'answer':
        this.#questions.answer(message.id, message.answer)
        return true
      case 'failure':
        this.#questions.fail(message.id, new Error(message.message))
        return true
      case 'notice':
        this.#listener?.(message.notice)
        return true
      default:
        return false
    }
  }

  #ask<M extends GateMethod>(method: M, request: GateRequest<M>): Promise<GateAnswer<M>> {
    const answer = this.#questions.ask((id) => this.send({ type: 'ask', id, method, request }))
    return answer as Promise<GateAnswer<M>>
  }

  readonly authenticate: Gate['authenticate'] = (request) => this.#ask('authenticate', request)
  readonly targets: Gate['targets'] = (request) => this.#ask('targets', request)
  readonly open: Gate['open'] = (request) => this.#ask('open', request)
  readonly hostKey: Gate['hostKey'] = (request) => this.#ask('hostKey', request)
  readonly targetGssapi: Gate['targetGssapi'] = (request) => this.#ask('targetGssapi', request)
  readonly dial: Gate['dial'] = (request) => this.#ask('dial', request)
  readonly event: Gate['event'] = (request) => this.#ask('event', request)
  readonly denied: Gate['denied'] = (request) => this.#ask('denied', request)
  readonly sign: Gate['sign'] = (request) => this.#ask('sign', request)
  readonly close: Gate['close'] = (request) => this.#ask('close', request)
  readonly live: Gate['live'] = (request) => this.#ask('live', request)
  readonly counted: Gate['counted'] = (request) => this.#ask('counted', request)
  readonly askCommand: Gate['askCommand'] = (request) => this.#ask('askCommand', request)
  readonly giveUpCommand: Gate['giveUpCommand'] = (request) => this.#ask('giveUpCommand', request)
  readonly withdraw: Gate['withdraw'] = (request) => this.#ask('withdraw', request)
  readonly leave: Gate['leave'] = (request) => this.#ask('leave', request)
  readonly beginRecording: Gate['beginRecording'] = (request) => this.#ask('beginRecording', request)
  readonly appendRecording: Gate['appendRecording'] = (request) => this.#ask('appendRecording', request)
  readonly endRecording: Gate['endRecording'] = (request) => this.#ask('endRecording', request)

  onNotice(listener: (notice: GateNotice) => void): void {
    this.#listener = listener
  }
}
