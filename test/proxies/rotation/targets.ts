/** Jobs of plugins in tests: targets on 127.0.0.1, and the outcome as a word. */

import { ChangeError } from '../../../proxies/rotation/plugin.ts'
import type { ChangeTarget, SecretChange, SignIn } from '../../../src/contract/change.ts'

export const JOB_TIMEOUT_MS = 20_000

export function targetAt(
  port: number,
  parameters: ChangeTarget['parameters'] = {},
  trust: ChangeTarget['trust'] = {},
): ChangeTarget {
  return { host: '127.0.0.1', port, parameters, trust }
}

export const signInOf = (login: string, password: string, enable?: string): SignIn => ({
  login,
  secret: { type: 'password', password },
  ...(enable !== undefined && { enable }),
})

/** A change of the account's own password. */
export const ownChange = (login: string, old: string, password: string): SecretChange => ({
  account: signInOf(login, old),
  by: signInOf(login, old),
  isAdministrator: false,
  next: { type: 'password', password },
})

/** A change by an administrator, to whom the present password is of no use. */
export const changeBy = (
  by: { login: string; password: string },
  login: string,
  password: string,
): SecretChange => ({
  account: signInOf(login, 'no longer true'),
  by: signInOf(by.login, by.password),
  isAdministrator: true,
  next: { type: 'password', password },
})

export const inTime = (): AbortSignal => AbortSignal.timeout(JOB_TIMEOUT_MS)

/** Returns the outcome of a job: its result, or the code of its error. Other errors are thrown. */
export async function outcomeOf(job: Promise<unknown>): Promise<unknown> {
  return (await errorOf(job))?.code ?? (await job)
}

export async function errorOf(job: Promise<unknown>): Promise<ChangeError | undefined> {
  try {
    await job
    return undefined
  } catch (error) {
    if (error instanceof ChangeError) return error
    throw error
  }
}
