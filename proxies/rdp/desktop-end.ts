/** How a client is rid of a target's desktop, so that another can be offered to it on the same connection. */
import type { RdpClient } from './client.ts'
import type { SessionFilter } from './connection/session-filter.ts'

/** How long a client may take to agree to what it was offered last; it takes nothing else before that. */
const AGREEMENT_MS = 1_000

/**
 * Takes away what the client has of the target's desktop. Resolves to false where it has been offered one and does not
 * answer: nothing else can be shown to it then. What it sends meanwhile reaches nobody.
 */
export async function takeAway(client: RdpClient, filter: SessionFilter): Promise<boolean> {
  if (filter.isOffered && !(await agreed(client, filter))) return false
  for (const pdu of filter.takeAway()) client.sendIo(pdu)
  client.handler = undefined
  return !client.pipe.closed
}

function agreed(client: RdpClient, filter: SessionFilter): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), AGREEMENT_MS)
    client.handler = {
      io: (data) => {
        filter.fromClient(data)
        if (filter.isOffered) return
        clearTimeout(timer)
        resolve(true)
      },
      fastPath: () => undefined,
      channel: () => undefined,
    }
    client.pipe.paused = false
  })
}
