/**
 * Wraps the gate as a proxy in another process will see it: every request, answer and notice goes through
 * structuredClone, so that a message that is not plain data fails. Tests put this gate between the broker and
 * its proxies.
 */
import type { Gate } from './gate.ts'

/** Environment variable that makes the broker use the copying gate if set to `1`. For tests. */
export const GATE_COPIES = 'SALLYPORT_GATE_COPIES'

export function copyingGate(gate: Gate): Gate {
  const asked =
    <Q, A>(method: (question: Q) => Promise<A>) =>
    async (question: Q): Promise<A> =>
      structuredClone(await method.call(gate, structuredClone(question)))
  return {
    authenticate: asked(gate.authenticate),
    targets: asked(gate.targets),
    open: asked(gate.open),
    hostKey: asked(gate.hostKey),
    event: asked(gate.event) as Gate['event'],
    sign: asked(gate.sign),
    beginRecording: asked(gate.beginRecording),
    appendRecording: asked(gate.appendRecording),
    endRecording: asked(gate.endRecording),
    close: asked(gate.close),
    denied: asked(gate.denied),
    live: asked(gate.live),
    leave: asked(gate.leave),
    onNotice: (listener) => gate.onNotice((notice) => listener(structuredClone(notice))),
  }
}
