/** Notifications, over the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await must('POST', '/usergroups', { group_name: 'dba' })
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: object, as = cookie) =>
  h.call(method, path, { cookie: as, ...(body && { body }) })
async function must(method: string, path: string, body?: object) {
  const answer = await call(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
  return answer.body
}
const webhook = { notification_name: 'soc', type: 'WEBHOOK', webhook: { url: 'https://soc.lab.test/x' } }
const mail = {
  notification_name: 'on-call',
  type: 'MAIL',
  mail: { host: 'mail.lab.test', user_name: 'bastion', from: 'bastion@lab.test', to: ['soc@lab.test'] },
}

test('a notification has its defaults, and its secret never comes back', async () => {
  const made = await must('POST', '/notifications', { ...webhook, signing_secret: 'canary-0123456789' })
  expect(made).toMatchObject({
    events: [],
    severity: 'warning',
    is_disabled: false,
    user_groups: [],
    target_groups: [],
    webhook: { ca_certificates: null },
    mail: {},
    secrets: ['signing_secret'],
  })
  const changed = await must('PUT', '/notifications/soc', { events: ['auth.*'], user_groups: ['dba'] })
  expect(changed).toMatchObject({ events: ['auth.*'], user_groups: ['dba'], secrets: ['signing_secret'] })
  expect(JSON.stringify([made, changed, await must('GET', '/notifications')])).not.toContain('canary')
  expect((await call('DELETE', '/usergroups/dba')).body).toMatchObject({ error: 'in_use' })
  expect(await must('POST', '/notifications/soc/test')).toMatchObject({ ok: true })
})

test.each<[string, object, string]>([
  ['an unknown event', { ...webhook, events: ['auth.guess'] }, 'events/0'],
  ['clear text', { ...webhook, webhook: { url: 'http://soc.lab.test/' } }, 'webhook/url'],
  ['a metadata service', { ...webhook, webhook: { url: 'https://169.254.169.254/' } }, 'webhook/url'],
  ['options of another type', { ...webhook, mail: mail.mail }, 'mail'],
  ['a secret of another type', { ...webhook, password: 'x' }, 'password'],
  ['a header in an address', { ...mail, mail: { ...mail.mail, to: ['a@b\r\nBcc: c@d'] } }, 'mail/to/0'],
  ['a name beside an address', { ...mail, mail: { ...mail.mail, from: 'SOC <a@b>' } }, 'mail/from'],
  ['nobody to send to', { ...mail, mail: { ...mail.mail, to: [] } }, 'mail/to'],
  ['a password in clear text', { ...mail, mail: { ...mail.mail, security: 'none' } }, 'mail/user_name'],
])('refuses %s', async (_, body, field) => {
  const answer = await call('POST', '/notifications', { ...body, notification_name: 'bad' })
  expect(answer.status).toBe(400)
  expect(answer.body.details[0].field).toBe(field)
})

test('the password of mail does not move to another server', async () => {
  expect(await must('POST', '/notifications', { ...mail, password: 'hunter2' })).toMatchObject({
    mail: { port: 587, security: 'starttls' },
    secrets: ['password'],
  })
  for (const change of [{ host: 'evil.lab.test' }, { port: 2525 }, { security: 'tls' }]) {
    const answer = await call('PUT', '/notifications/on-call', { mail: change })
    expect(answer.body.details).toMatchObject([{ field: 'password' }])
  }
  await must('PUT', '/notifications/on-call', { mail: { to: ['other@lab.test'] } })
  await must('PUT', '/notifications/on-call', { mail: { host: 'new.lab.test' }, password: 'hunter3' })
})

test('whoever does not see sessions sets no receiver of what happens in them', async () => {
  await must('POST', '/profiles', { profile_name: 'half', rights: { profiles: 'modify' } })
  await must('POST', '/users', { user_name: 'half', profile: 'half', password: 'half password' })
  const half = await h.signIn('half')
  const answer = await call('POST', '/notifications', { ...webhook, notification_name: 'own' }, half)
  expect(answer.status).toBe(403)
  expect((await call('GET', '/notifications', undefined, half)).status).toBe(200)
})
