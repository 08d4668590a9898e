/** The options of SSH sessions as fields of `/connectionpolicies`. */
import { type Static, Type } from 'typebox'
import { LEGACY_ALGORITHMS } from '../model/legacy-algorithms.ts'
import type { SshOptions } from '../model/ssh-options.ts'
import { exact, oneOf, partial } from './fields.ts'

const MAX_SECONDS = 366 * 24 * 3600

const seconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: MAX_SECONDS, description: `seconds ${description}; 0: no end` })

export const SshFields = exact({
  idle_timeout: seconds(
    'until a session ends in which the user types nothing, and where there is no terminal, nothing moves',
  ),
  max_duration: seconds('that a session lasts at most'),
  legacy_algorithms: Type.Array(oneOf(LEGACY_ALGORITHMS, 'algorithm'), {
    maxItems: LEGACY_ALGORITHMS.length,
    description: 'broken or weak algorithms that may be used toward the targets, for gear that has no others',
  }),
})
export const SshUpdate = partial(SshFields)

export function sshFieldsOf(options: SshOptions): Static<typeof SshFields> {
  return {
    idle_timeout: options.idleTimeout,
    max_duration: options.maxDuration,
    legacy_algorithms: [...options.legacyAlgorithms],
  }
}

/** The options as they are with what the body gives. */
export function sshOptionsOf(body: Static<typeof SshUpdate>, old: SshOptions): SshOptions {
  return {
    idleTimeout: body.idle_timeout ?? old.idleTimeout,
    maxDuration: body.max_duration ?? old.maxDuration,
    legacyAlgorithms: body.legacy_algorithms ? [...new Set(body.legacy_algorithms)] : old.legacyAlgorithms,
  }
}
