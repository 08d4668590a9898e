/** Approvals from end to end: asked and answered by the command line, used by OpenSSH, revoked (attack cases 16, 24). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapt, walkOf } from '../docs/walks.ts'
import { sallyportCommand, startBroker } from '../peers/broker.ts'
import { ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { until } from '../until.ts'
import { type Bastion, startBastion } from './bastion.ts'

const PAIR = 'ops1-srv1-users:ops1-srv1-targets'
let bastion: Bastion
let keyFile: string

beforeAll(async () => {
  bastion = await startBastion()
  await must('POST', '/usergroups', { group_name: 'chiefs' })
  const chief = {
    profile: 'approver',
    groups: ['chiefs'],
    user_auths: ['local_password'],
    password: 'not for jobs 1',
  }
  await must('POST', '/users', { user_name: 'chief1', ...chief })
  await must('PUT', `/authorizations/${PAIR}`, { approval_required: true, approvers: ['chiefs'] })
  await must('PUT', `/authorizations/${PAIR}`, { authorize_password_retrieval: true })
  const { api_key } = await bastion.broker.must<{ api_key: string }>('POST', '/apikeys', {
    key_name: 'all',
    profile: 'product_administrator',
  })
  keyFile = join(bastion.home.folder, 'key')
  writeFileSync(keyFile, `${api_key}\n`, { mode: 0o600 })
})
afterAll(() => bastion.stop())

const must = (method: string, path: string, body?: unknown) => bastion.broker.must(method, path, body)
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  SALLYPORT_URL: `https://127.0.0.1:${bastion.broker.ports.https}`,
  SALLYPORT_CA: join(bastion.broker.dataFolder, 'tls', 'cert.pem'),
  SALLYPORT_API_KEY_FILE: keyFile,
})
const sallyport = (user: string, ...args: string[]) =>
  run(...sallyportCommand([...args, '--user', user]), { env: environment() })
const request = async (): Promise<string> => {
  const target = (await bastion.broker.must<{ target: string }[]>('GET', '/sessionrights?user=ops1'))[0]!
    .target
  const done = await sallyport('ops1', 'approvals', 'request', target, '--comment', 'disk')
  expect(done.code, done.stderr).toBe(0)
  return done.stdout.split(' ')[0]!
}

test('the page for approvals works as it stands there; OpenSSH is let in by the approval, and out by its end', async () => {
  const target = (await bastion.broker.must<{ target: string }[]>('GET', '/sessionrights?user=ops1'))[0]!
    .target
  const [block] = walkOf('docs/approvals.md')
  const [program, args] = sallyportCommand([])
  const quoted = [program, ...args].map((word) => `'${word}'`).join(' ')
  const script = adapt(block!.text, { 'root@local:srv1:ssh': target })
  const walked = await run('sh', ['-euc', `sallyport() { ${quoted} "$@"; }\n${script}`], {
    env: environment(),
  })
  expect(walked.code, walked.stderr).toBe(0)
  expect(walked.stdout).toMatch(/status: accepted[\s\S]*answer: chief1 accepted \S+ go on/)
  const id = /^id: (\S+)$/m.exec(walked.stdout)![1]!
  const terminal = sshTerminal(bastion.home, bastion.login())
  await terminal.expect('$ ')
  const row = await until('the session', async () => {
    const all = await bastion.broker.must<{ id: string; approval: string | null }[]>(
      'GET',
      '/sessions?status=current',
    )
    return all.find(({ approval }) => approval === id)
  })
  expect(await bastion.broker.must('GET', `/approvals/${id}`)).toMatchObject({ sessions: [row.id] })
  const begin = Date.now()
  expect((await sallyport('chief1', 'approvals', 'cancel', id, '--comment', 'enough')).code).toBe(0)
  await terminal.exit()
  expect(Date.now() - begin).toBeLessThan(4_000)
  expect(terminal.output()).toContain('the approval was revoked by chief1: enough')
  expect((await bastion.events('session.kill', 1)).at(-1)).toMatchObject({
    session: row.id,
    reason: 'the approval was revoked by chief1: enough',
  })
})

test('without one nothing reaches the target, and a rejected client is told', async () => {
  const before = (await bastion.events('session.open')).length
  const client = ssh(bastion.home, bastion.login(), ['echo', 'in'])
  const asked = await until('the request', async () => {
    const [one] = await bastion.broker.must<{ id: string }[]>('GET', '/approvals?status=pending')
    return one
  })
  await sallyport('chief1', 'approvals', 'reject', asked.id, '--comment', 'not today')
  const done = await client
  expect([done.code, done.stdout]).toEqual([255, ''])
  expect(done.stderr).toContain('not today')
  expect((await bastion.events('session.open')).length).toBe(before)
  const id = await request()
  expect((await sallyport('ops1', 'approvals', 'accept', id)).stderr).toMatch(/forbidden/)
  expect((await sallyport('chief1', 'approvals', 'reject', id, '--comment', 'no')).code).toBe(0)
  expect((await sallyport('chief1', 'approvals', 'accept', id)).stderr).toMatch(/not_pending/)
})

test('a checkout that waits has its secret when it is accepted', async () => {
  const rights = await bastion.broker.must<{ account: string; domain: string; device: string }[]>(
    'GET',
    '/sessionrights?user=ops1',
  )
  const { account, domain, device } = rights[0]!
  const name = `${account}@${domain}@${device}`
  expect((await sallyport('ops1', 'checkout', name)).stderr).toMatch(/approval_required/)
  const waiting = sallyport('ops1', 'checkout', name, '--wait', '--comment', 'dump', '--json')
  const asked = await until('the request', async () => {
    const all = await bastion.broker.must<{ id: string; kind: string }[]>('GET', '/approvals?status=pending')
    return all.find(({ kind }) => kind === 'checkout')
  })
  expect((await sallyport('chief1', 'approvals', 'accept', asked.id)).code).toBe(0)
  const done = await waiting
  expect(done.code, done.stderr).toBe(0)
  expect(JSON.parse(done.stdout)).toMatchObject({
    login: expect.any(String),
    checkout_id: expect.any(String),
  })
})

test('what waits or was accepted is the same after the broker was killed', async () => {
  const [kept, waiting] = [await request(), await request()]
  await sallyport('chief1', 'approvals', 'accept', kept)
  const { broker } = bastion
  await broker.kill()
  const { dataFolder, ports } = broker
  const again = await startBroker({ dataFolder, ports })
  try {
    expect(await again.must('GET', `/approvals/${kept}`)).toMatchObject({ status: 'accepted' })
    expect(await again.must('GET', `/approvals/${waiting}`)).toMatchObject({ status: 'pending' })
    expect((await ssh(bastion.home, bastion.login(), ['echo', 'in'])).stdout).toBe('in\n')
  } finally {
    await again.stop()
  }
})
