/**
 * The gate as a session worker sees it, without the process: every request, answer and notice becomes bytes on its
 * way, and the worker's seat judges it. Tests of brokers whose sessions run in their own process use it.
 */
import { Buffer } from 'node:buffer'
import type { Gate } from '../contract/gate.ts'
import { MessageReader } from '../contract/message-reader.ts'
import { encodeMessage } from '../contract/wire.ts'
import type { GateAnswer, GateMethod, GateRequest } from '../contract/worker.ts'
import { Seat, type SeatGate } from './seat.ts'

/** Environment variable that makes the broker use the copying gate if set to `1`. For tests. */
export const GATE_COPIES = 'SALLYPORT_GATE_COPIES'

export function copyingGate(gate: SeatGate): Gate {
  const listeners: Parameters<Gate['onNotice']>[0][] = []
  const seat = new Seat(gate, (notice) => {
    for (const listener of listeners) listener(copied(notice))
  })
  const asked =
    <M extends GateMethod>(method: M) =>
    async (request: GateRequest<M>): Promise<GateAnswer<M>> => {
      const crossed = copied(request)
      // There is no listener here that would tell of the connection.
      if ('source' in crossed) seat.arrived(crossed.source)
      return copied((await seat.ask(method, crossed)) as GateAnswer<M>)
    }
  return {
    authenticate: asked('authenticate'),
    targets: asked('targets'),
    open: asked('open'),
    hostKey: asked('hostKey'),
    targetGssapi: asked('targetGssapi'),
    dial: asked('dial'),
    event: asked('event') as Gate['event'],
    sign: asked('sign'),
    close: asked('close'),
    denied: asked('denied'),
    live: asked('live'),
    counted: asked('counted'),
    askCommand: asked('askCommand'),
    giveUpCommand: asked('giveUpCommand'),
    withdraw: asked('withdraw'),
    leave: asked('leave'),
    beginRecording: asked('beginRecording'),
    appendRecording: asked('appendRecording'),
    endRecording: asked('endRecording'),
    onNotice: (listener) => void listeners.push(listener),
  }
}

/** Returns the value as it comes out at the other end. */
function copied<T>(value: T): T {
  const [message] = new MessageReader().read(Buffer.concat(encodeMessage({ value })))
  return (message as { value: T }).value
}
