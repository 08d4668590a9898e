/** Events of second factors that begin within sign-ins, whatever the front. */
import type { Audit } from '../audit/events/catalogue.ts'
import type { SecondFactors } from '../identity/second-factor/second-factors.ts'
import type { Store } from '../store/store.ts'

export function recordFactors(
  factors: Pick<SecondFactors, 'onEnrolled' | 'onHeld'>,
  { audit, store }: { audit: Audit; store: Pick<Store, 'users'> },
): void {
  factors.onEnrolled = async ({ userName: user }, client_ip) => {
    await audit.record('factor.enrol', { user, client_ip, object_type: 'user', object: user })
  }
  factors.onHeld = async ({ userId, ms: duration, source: client_ip }) => {
    const object = (await store.users.find(userId))?.userName ?? userId
    await audit.record('factor.held', { client_ip, object_type: 'user', object, duration })
  }
}
