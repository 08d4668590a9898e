/** What the bastion itself does with the desktop of a target that a client has: draws on it, and takes it away. */

import { buildFastPathUpdate } from '../codec/fast-path-output.ts'
import { buildShareData, DATA_PDU } from '../codec/share.ts'
import type { Update } from '../codec/updates.ts'
import type { SessionFilter } from '../connection/session-filter.ts'
import type { RdpClient } from '../front/client.ts'

/** How long a client may take to agree to what it was offered last; it takes nothing else before that. */
const AGREEMENT_MS = 1_000

/** A bitmap of the bastion's own, which the target does not know of. */
export function drawFor(client: RdpClient, { takesFastPath, shareId }: SessionFilter, update: Update): void {
  if (takesFastPath) for (const pdu of buildFastPathUpdate(update)) client.sendFastPath(pdu)
  else client.sendIo(buildShareData({ shareId, type: DATA_PDU.update, body: update.data }))
}

/**
 * Takes away what the client has of the target's desktop. Resolves to false where it has been offered one and does not
 * answer: nothing else can be shown to it then. What it sends meanwhile reaches nobody.
 */
export async function takeAway(client: RdpClient, filter: SessionFilter): Promise<boolean> {
  if (filter.isOffered && !(await agreed(client, filter))) return false
  for (const pdu of filter.takeAway()) client.sendIo(pdu)
  client.handler = undefined
  return !client.stream.closed
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
    client.stream.paused = false
  })
}
