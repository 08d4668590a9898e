/** The target that a user means in a request for approval, whatever front leads there. */
import { resolveTarget, type Target } from '../access/targets.ts'
import { parseLogin, parseTargetName, type WantedTarget } from '../model/login.ts'
import type { Id } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import type { Store } from '../store/store.ts'

/** A terminal leads to all terminal protocols. */
const FRONTS: readonly Protocol[] = ['SSH', 'RDP', 'VNC']

/** Returns the target, the candidates if there are several, or undefined if the user may open none of that name. */
export async function askedTarget(
  { access }: Pick<Store, 'access'>,
  userId: Id,
  text: string,
): Promise<{ target: Target } | { candidates: string[] } | undefined> {
  for (const wanted of [parseTargetName(text), targetOf(text)]) {
    if (!wanted) continue
    const rows = await access.sessionTargets(userId, { device: wanted.device })
    for (const front of FRONTS) {
      const resolution = resolveTarget(rows, wanted, front)
      if (resolution.result === 'ambiguous') return { candidates: resolution.candidates }
      if (resolution.result === 'found' && resolution.target.rights.length > 0)
        return { target: resolution.target }
    }
  }
  return undefined
}

function targetOf(text: string): WantedTarget | undefined {
  const login = parseLogin(`user:${text}`)
  return 'malformed' in login ? undefined : login.target
}
