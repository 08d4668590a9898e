/** Names that hold tags and quotes, on each page that shows some. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SESSION_COOKIE } from '../../src/api/access/authenticate.ts'
import { SignIns } from '../../src/api/access/sign-ins.ts'
import type { ApiDeps } from '../../src/api/http/deps.ts'
import { BrowserSignIns } from '../../src/identity/browser-sign-in/waiting.ts'
import type { RoundForm } from '../../src/identity/round-form.ts'
import { type Harness, startHarness } from '../api/harness.ts'
import { FormBrowser, type Shown } from './browser.ts'

/** Ends attributes and elements, and would be an element of its own. */
const TAGS = `'"><b id="planted" onclick="x()">&lt;`
const ESCAPED = '&#39;&quot;&gt;&lt;b id=&quot;planted&quot; onclick=&quot;x()&quot;&gt;&amp;lt;'

const waiting = new BrowserSignIns(randomBytes)
/** The page that the next round has; without one it shows a message and a prompt. */
let form: RoundForm | undefined
const challenge = () => ({
  result: 'challenge' as const,
  challenge: TAGS,
  message: `message ${TAGS}`,
  uri: `otpauth://totp/${TAGS}`,
  prompts: [{ text: `prompt ${TAGS}`, echo: true }],
  ...(form && { form }),
})
let h: Harness
let browser: FormBrowser
let code: string

beforeAll(async () => {
  const identities = { authenticate: async () => challenge() } as unknown as ApiDeps['identities']
  h = await startHarness({ browserSignIns: waiting, identities })
  const { store } = h
  const signIns = new SignIns(store.signIns, randomBytes)
  const cookieOf = async (name: string) => {
    const client = { address: '192.0.2.7', agent: `agent ${TAGS}`, method: `method ${TAGS}` }
    return await signIns.begin((await store.users.find(name))!, h.clock.now, { client })
  }
  const cookie = `${SESSION_COOKIE}=${await cookieOf('admin')}`
  const must = async (path: string, body: object) => {
    const made = await h.call('POST', path, { cookie, body })
    if (made.status !== 201) throw new Error(`${path}: ${made.text}`)
  }
  const oidc = { issuer: 'https://login.lab', client_id: 'bastion', user_claim: 'sub' }
  await must('/externalauths', { authentication_name: 'login', type: 'OIDC', oidc })
  await must('/authdomains', { domain_name: 'corp', type: 'OIDC', external_auths: ['login'] })
  await must('/usergroups', { group_name: 'all' })
  await must('/authdomains/corp/mappings', { user_group: 'all', external_group: '*' })
  // The API gives no such name.
  const { id } = (await store.externalAuths.find('login'))!
  await store.externalAuths.update(id, { authenticationName: `provider ${TAGS}` })
  const domain = (await store.authDomains.find('corp'))!
  const person = { userName: `user ${TAGS}`, stableId: 'u1', groups: [] }
  const user = (await store.persons.signedIn(domain.id, person))!
  const name = user.userName
  const bytes = { credentialId: Buffer.from('1'), publicKey: Buffer.from('2') }
  const key = { ...bytes, name: `key ${TAGS}`, signCount: 0, transports: [], created: h.clock.now }
  await store.securityKeys.add(user.id, key, 1)
  const asking = { domain, name, protocol: `SSH ${TAGS}`, source: `source ${TAGS}`, target: `target ${TAGS}` }
  code = waiting.open(asking)!.code
  browser = new FormBrowser(h.api)
  browser.cookies.set(SESSION_COOKIE, await cookieOf(name))
})
afterAll(() => h.close())

const stranger = () => new FormBrowser(h.api)
const begin = async (next?: RoundForm): Promise<Shown> => {
  form = next
  const own = stranger()
  return await own.submit(await own.get('/signin'), '/signin', { user: 'x', password: 'x', return: TAGS })
}

it.each<[page: string, names: string[], open: () => Promise<Shown>]>([
  ['sign-in', ['provider'], () => stranger().get(`/signin?return=${encodeURIComponent(TAGS)}&lang=${TAGS}`)],
  ['round', ['message', 'prompt'], () => begin()],
  ['code', [], () => begin({ kind: 'code', hasCodes: true, key: { challenge: TAGS, rpId: TAGS, keys: [] } })],
  ['enrolment', [], () => begin({ kind: 'enrol', secret: TAGS, isAgain: true })],
  ['recovery codes', ['code'], () => begin({ kind: 'recovery_codes', codes: [`code ${TAGS}`] })],
  ['account', ['user', 'agent', 'method', 'key'], () => browser.get('/account')],
  ['waiting client', ['user', 'SSH', 'source', 'target'], () => browser.get(`/s/${code}`)],
  ['unknown code', [], () => browser.get(`/s/${encodeURIComponent(TAGS)}`)],
  ['typed code', [], () => browser.get(`/s?code=${encodeURIComponent(TAGS)}`)],
  ['no page', [], () => stranger().get(`/${encodeURIComponent(TAGS)}`, { accept: 'text/html' })],
])('shows names as text: %s', async (_page, names, open) => {
  const { headers, text } = await open()
  expect(headers['content-type']).toBe('text/html; charset=utf-8')
  expect(text).not.toContain('id="planted"')
  for (const name of names) expect(text).toContain(`${name} ${ESCAPED}`)
})
