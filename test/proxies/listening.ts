/** A front of a test on a port of its own. */

import type { UrgentData } from '../../src/contract/urgent-data.ts'
import { type Bound, listenAt } from '../../src/sockets/accept.ts'

/** Listens on a free port of 127.0.0.1, and gives the front each connection. */
export function listening(front: { accept(handle: object): unknown }, urgent?: UrgentData): Promise<Bound> {
  return listenAt({
    host: '127.0.0.1',
    port: 0,
    ...(urgent && { urgent }),
    onConnection: (handle) => void front.accept(handle),
  })
}
