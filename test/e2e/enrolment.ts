/** Users with a second factor: one-time codes by oathtool, and recovery codes. */
import { sendAsIs, signInAs } from '../attacks/requests.ts'
import type { Broker } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'

const STEP = 30

/** Makes codes by oathtool, each of a step that was not used yet. */
export function codesOf(secret: string): () => Promise<string> {
  let last = 0
  return async () => {
    last = Math.max(last + 1, Math.floor(Date.now() / 1000 / STEP) - 1)
    const args = ['--totp', '--base32', '--now', `@${last * STEP}`, secret]
    return (await run(findProgram('oathtool'), args)).stdout.trim()
  }
}

export interface Enrolled {
  secret: string
  newCode: () => Promise<string>
  /** Each signs in once. */
  recovery: string[]
}

/** Enrols a user through the API. */
export async function enrol(broker: Broker, user: string, password: string): Promise<Enrolled> {
  const cookie = await signInAs(broker, user, password)
  const call = async (path: string, body: object) => {
    const url = `/api/users/${user}/totp${path}`
    const answer = await sendAsIs(broker, 'POST', url, { cookie }, JSON.stringify(body))
    return JSON.parse(answer.body) as { secret: string; recovery_codes: string[] }
  }
  const { secret } = await call('', { password })
  const newCode = codesOf(secret)
  const { recovery_codes: recovery } = await call('/confirm', { code: await newCode() })
  return { secret, newCode, recovery }
}
