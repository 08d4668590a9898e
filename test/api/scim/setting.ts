/** An API with a domain that a provider provisions, and requests with its token. */
import { type Answer, type Harness, startHarness } from '../harness.ts'

export interface Setting {
  h: Harness
  cookie: string
  /** Of the domain corp. */
  token: string
  /** Sends a request to /scim/v2 with the token of corp, or another one. */
  scim(
    method: string,
    path: string,
    body?: unknown,
    more?: { token?: string; headers?: Record<string, string> },
  ): Promise<Answer>
  must(method: string, path: string, body?: object): Promise<Answer['body']>
  /** Makes a user, and returns its body. */
  user(userName: string, more?: object): Promise<Answer['body']>
  group(displayName: string, members?: readonly string[]): Promise<Answer['body']>
  close(): Promise<void>
}

export const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

export const patchOf = (...Operations: object[]) => ({ schemas: [PATCH], Operations })

export async function scimSetting(identifier: 'external_id' | 'user_name' = 'user_name'): Promise<Setting> {
  const h = await startHarness()
  const cookie = await h.signIn()
  const must: Setting['must'] = async (method, path, body) => {
    const answer = await h.call(method, path, { cookie, ...(body && { body }) })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
    return answer.body
  }
  for (const group_name of ['ops', 'dba', 'chiefs']) await must('POST', '/usergroups', { group_name })
  const ldap = { base_dn: 'dc=lab' }
  await must('POST', '/externalauths', {
    authentication_name: 'directory',
    type: 'LDAP',
    host: '192.0.2.9',
    ldap,
  })
  for (const domain_name of ['corp', 'other'])
    await must('POST', '/authdomains', {
      ...{ domain_name, type: 'LDAP', external_auths: ['directory'], scim_identifier: identifier },
    })
  for (const [external_group, user_group, profile] of [
    ['Operators', 'ops', 'user'],
    ['Databases', 'dba', 'auditor'],
    ['Chiefs', 'chiefs', 'product_administrator'],
  ])
    await must('POST', '/authdomains/corp/mappings', { external_group, user_group, profile })
  const { token } = await must('POST', '/authdomains/corp/scimtokens', { token_name: 'idp' })

  const scim: Setting['scim'] = async (method, path, body, more = {}) => {
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const answer = await h.api.inject({
      method: method as 'GET',
      url: `/scim/v2${path}`,
      headers: {
        host: 'bastion.example',
        authorization: `Bearer ${more.token ?? token}`,
        ...(payload === undefined ? {} : { 'content-type': 'application/scim+json' }),
        ...more.headers,
      },
      ...(payload === undefined ? {} : { payload }),
    })
    const { statusCode: status, headers, body: text } = answer
    return { status, headers, text, body: text === '' ? undefined : JSON.parse(text) }
  }
  const made = async (path: string, body: object) => {
    const answer = await scim('POST', path, body)
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.body
  }
  return {
    ...{ h, cookie, token, must, scim },
    user: (userName, more = {}) =>
      made('/Users', { schemas: [USER], userName, externalId: `id-${userName}`, ...more }),
    group: (displayName, members = []) =>
      made('/Groups', { schemas: [GROUP], displayName, members: members.map((value) => ({ value })) }),
    close: () => h.close(),
  }
}
