/** A directory tried step by step, for administrators. */
import type { AuthDomainAttributes, LdapOptions } from '../../../model/external-auths.ts'
import type { TestRequest, TestStep } from '../method.ts'
import { DirectoryConnection, nameOf } from './connection.ts'
import { findPerson, readPerson, standingOf } from './person.ts'
import { mustChange, refusalOf } from './refusals.ts'
import { type DirectoryServer, said } from './server.ts'

interface Trial {
  server: DirectoryServer
  options: LdapOptions
  attributes: AuthDomainAttributes
  /** Milliseconds since the epoch. */
  now: number
  request: TestRequest
  signal: AbortSignal
}

/** Returns the steps until the first that fails. */
export async function tryDirectory({
  server,
  options,
  attributes,
  now,
  request: { userName, password },
  signal,
}: Trial): Promise<TestStep[]> {
  const steps: TestStep[] = []
  const name = nameOf(server.endpoint)
  let step: TestStep['step'] = 'reached'
  const passed = (detail: string, groups?: readonly string[]) =>
    steps.push({ step, ok: true, detail, ...(groups && { groups }) })
  try {
    const probe = await DirectoryConnection.open(server.endpoint, signal)
    probe.close()
    passed(`${name} accepts connections`)
    if (options.security !== 'none') {
      step = 'tls'
      passed(`the certificate is trusted, and names ${options.serverName ?? server.endpoint.host}`)
    }
    step = 'bound'
    await server.searching.use(signal, async (connection) => {
      passed(
        options.bindDn === '' ? 'searches without an account of its own' : `signed in as ${options.bindDn}`,
      )
      if (userName === undefined) return
      step = 'user_found'
      const found = await findPerson(connection, options, attributes, userName, signal)
      if (!found) {
        const what = `one entry with ${options.loginAttribute}=${said(userName)} below ${options.baseDn}`
        throw new Error(`expected ${what}, found none or several`)
      }
      passed(found.dn)
      const reason = standingOf(found, now)
      if (reason) throw new Error(`the account may not sign in: ${reason}`)
      step = 'groups'
      const { groups } = await readPerson(connection, options, attributes, found, signal)
      passed(groups.length === 0 ? 'in no group' : groups.join('\n'), groups)
      if (password === undefined) return
      step = 'signed_in'
      const { refused, policy } = await server.tryPassword(found.dn, password, signal)
      if (refused) throw new Error(refusalOf(refused, policy) ?? said(refused.message))
      passed(mustChange(policy) ? 'the password is right, and has to be changed' : 'the password is right')
    })
  } catch (error) {
    steps.push({ step, ok: false, detail: said((error as Error).message) })
  }
  return steps
}
