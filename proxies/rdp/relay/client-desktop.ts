/** The bastion's own actions on the desktop of a target that a client shows: drawing, and deactivation. */

import { buildFastPathUpdate } from '../codec/fast-path-output.ts'
import { buildShareData, DATA_PDU } from '../codec/share.ts'
import type { Update } from '../codec/updates.ts'
import type { SessionFilter } from '../connection/session-filter.ts'
import type { RdpClient } from '../front/client.ts'

/** Milliseconds for a client to confirm the last desktop offered; it accepts nothing else before. */
const AGREEMENT_MS = 1_000

/** Draws a bitmap of the bastion, unknown to the target. */
export function drawFor(client: RdpClient, { takesFastPath, shareId }: SessionFilter, update: Update): void {
  if (takesFastPath) for (const pdu of buildFastPathUpdate(update)) client.sendFastPath(pdu)
  else client.sendIo(buildShareData({ shareId, type: DATA_PDU.update, body: update.data }))
}

/**
 * Deactivates the target's desktop on the client, and drops the client's data meanwhile. Resolves to false if
 * the client does not confirm the desktop last offered: no other can be shown then.
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
