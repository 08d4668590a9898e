/** A native client that waits, and the page on which its person lets it in. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SESSION_COOKIE } from '../../src/api/access/authenticate.ts'
import { SignIns } from '../../src/api/access/sign-ins.ts'
import type { User } from '../../src/model/objects.ts'
import { ADMIN, type Answer, type Harness, startHarness } from '../api/harness.ts'
import { FormBrowser } from './browser.ts'

let h: Harness
let people: Record<'alice' | 'bob', User>

beforeAll(async () => {
  h = await startHarness()
  const cookie = await h.signIn()
  const make = async (path: string, body: object) => {
    const made = await h.call('POST', path, { cookie, body })
    if (made.status !== 201) throw new Error(made.text)
    return made.body as { id: string }
  }
  await make('/externalauths', {
    authentication_name: 'login',
    type: 'OIDC',
    oidc: { issuer: 'https://login.example.org', audience: 'https://bastion.example.com' },
  })
  const { id } = await make('/authdomains', { domain_name: 'corp', type: 'OIDC', external_auths: ['login'] })
  await make('/usergroups', { group_name: 'all', users: [] })
  await make('/authdomains/corp/mappings', { user_group: 'all', external_group: '*', profile: 'user' })
  const person = async (userName: string) => {
    const signedIn = await h.store.persons.signedIn(id, { userName, stableId: `sub-${userName}`, groups: [] })
    return signedIn!
  }
  people = { alice: await person('alice'), bob: await person('bob') }
})
afterAll(() => h.close())

/** Returns a browser in which the person is signed in. */
async function browserOf(user: User): Promise<FormBrowser> {
  const browser = new FormBrowser(h.api)
  const token = await new SignIns(h.store.signIns, randomBytes).begin(user, h.clock.now)
  browser.cookies.set(SESSION_COOKIE, token)
  return browser
}

const begin = (user = 'alice@corp') => h.call('POST', '/session', { body: { user } })
const answer = (asked: Answer) =>
  h.call('POST', '/session', { body: { challenge: asked.body.challenge.id, answers: [] } })
const pathOf = ({ body }: Answer) => new URL(body.challenge.link).pathname

describe('a client that waits for a person', () => {
  it('shows a link and a check, and is let in by a deliberate act', async () => {
    const asked = await begin()
    expect([asked.status, asked.body.error]).toEqual([401, 'second_factor_required'])
    const { link, message, prompts } = asked.body.challenge
    expect(link).toMatch(/^https:\/\/bastion\.example\.com\/s\/[2-9A-Z]{4}-[2-9A-Z]{4}$/)
    expect(prompts).toEqual([])
    const [, check = ''] = /shows ([2-9A-Z]{3}),/.exec(message) ?? []
    const verdict = answer(asked)
    const browser = await browserOf(people.alice)
    const page = await browser.get(pathOf(asked))
    for (const text of [check, 'alice@corp', 'HTTPS', '127.0.0.1']) expect(page.text).toContain(text)
    // Seeing the page is not enough.
    expect(await Promise.race([verdict, new Promise((done) => setTimeout(done, 50, 'waits'))])).toBe('waits')
    const done = await browser.submit(page, pathOf(asked), { decision: 'confirm' })
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('It is signed in')])
    const signedIn = await verdict
    expect([signedIn.status, signedIn.body.user]).toEqual([200, 'alice@corp'])
    expect((await h.events('auth.success')).at(-1)).toMatchObject({
      user: 'alice@corp',
      method: 'api_password',
    })
    // Once, for both sides.
    expect((await browser.get(pathOf(asked))).status).toBe(404)
    expect((await answer(asked)).body.error).toBe('invalid_credentials')
  })

  it('is turned away by its person, which is a failure with its reason', async () => {
    const asked = await begin()
    const verdict = answer(asked)
    const browser = await browserOf(people.alice)
    const page = await browser.get(pathOf(asked))
    expect((await browser.submit(page, pathOf(asked), { decision: 'refuse' })).text).toContain('turned away')
    expect((await verdict).body.error).toBe('invalid_credentials')
    expect((await h.events('auth.failure')).at(-1)).toMatchObject({
      user: 'alice@corp',
      reason: 'refused_in_browser',
    })
  })

  it('is not there for others, and for no one without a sign-in; nothing is let in without the form', async () => {
    const asked = await begin()
    const path = pathOf(asked)
    const stranger = await new FormBrowser(h.api).get(path)
    expect([stranger.status, stranger.headers['location']]).toEqual([
      303,
      `/signin?return=${encodeURIComponent(path)}`,
    ])
    const admin = new FormBrowser(h.api)
    await admin.submit(await admin.get('/signin'), '/signin', ADMIN)
    const unknown = await (await browserOf(people.alice)).get('/s/ABCD-EFGH')
    for (const browser of [await browserOf(people.bob), admin]) {
      const shown = await browser.get(path)
      expect([shown.status, shown.text]).toEqual([404, unknown.text])
      const form = { decision: 'confirm' }
      expect((await browser.send('POST', path, { form })).status).toBe(403)
    }
    const alice = await browserOf(people.alice)
    await alice.get(path)
    expect((await alice.send('POST', path, { form: { decision: 'confirm' } })).status).toBe(403)
    expect((await alice.get(path)).status).toBe(200)
  })

  it('warns of a client at another address', async () => {
    const asked = await begin()
    const browser = await browserOf(people.alice)
    expect((await browser.get(pathOf(asked))).text).not.toContain('role="alert"')
    const far = await h.api.inject({
      method: 'GET',
      url: pathOf(asked),
      remoteAddress: '192.0.2.99',
      cookies: Object.fromEntries(browser.cookies),
    })
    expect(far.body).toContain('127.0.0.1')
    expect(far.body).toContain('192.0.2.99')
    expect(far.body).toContain('role="alert"')
  })

  it('takes a code that was typed, in any spelling', async () => {
    const asked = await begin()
    const browser = await browserOf(people.alice)
    const typed = pathOf(asked).slice(3).replace('-', '').toLowerCase()
    const found = await browser.get(`/s?code=${typed}`)
    expect([found.status, found.headers['location']]).toEqual([303, pathOf(asked)])
    expect((await browser.get('/s?code=%3Cscript%3E')).text).not.toContain('<script>')
  })

  it('waits for persons of such domains only, whose name says the domain', async () => {
    for (const name of ['admin', 'nobody', 'alice', 'nobody@elsewhere']) {
      const refused = await begin(name)
      expect([refused.status, refused.body.error]).toEqual([400, 'invalid_field'])
    }
    // A person that is not known gets the same answer, which is never confirmed.
    expect((await begin('ghost@corp')).body.challenge.link).toBeDefined()
    const before = (await h.events('auth.failure')).length
    expect((await begin('CORP\\alice')).status).toBe(401)
    expect((await h.events('auth.failure')).length).toBe(before)
  })

  it('loses its sign-in if the domain goes meanwhile', async () => {
    const asked = await begin('bob@corp')
    const verdict = answer(asked)
    const browser = await browserOf(people.bob)
    const page = await browser.get(pathOf(asked))
    const mapping = await h.call('GET', '/authdomains/corp/mappings', { cookie: await h.signIn() })
    expect(mapping.body).toHaveLength(1)
    await h.store.users.update(people.bob.id, { isDisabled: true })
    expect((await browser.submit(page, pathOf(asked), { decision: 'confirm' })).status).not.toBe(200)
    void verdict.catch(() => undefined)
  })
})
