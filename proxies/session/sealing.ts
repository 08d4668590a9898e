/** The sealing thread of this process, which its first large group starts. */
import { type Outlet, Sealer } from '../../recordings/container/sealing/sealer.ts'

let sealer = new Sealer()

/** The one of this process. */
export const ownSealer = (): Sealer => sealer

/** Has the thread write what it seals by itself; before the first recording. */
export function sealInto(outlet: Outlet): Sealer {
  sealer = new Sealer({ outlet })
  return sealer
}
