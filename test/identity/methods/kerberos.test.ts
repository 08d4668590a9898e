/** Passwords judged by MIT's KDC, and KDCs that lie. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KerberosMethod } from '../../../src/identity/methods/kerberos/method.ts'
import type { MethodAnswer } from '../../../src/identity/methods/method.ts'
import { Replays } from '../../../src/kerberos/replays.ts'
import { Secret } from '../../../src/model/secret.ts'
import { type MitKdc, REALM, startKdc } from '../../peers/kerberos.ts'
import { freePort } from '../../peers/process.ts'
import { describeWithPeers } from '../../peers/program.ts'

const SERVICE = 'host/bastion.lab.test'
let kdc: MitKdc
let tcpOnly: MitKdc
let keytab: string
let oldKeytab: string
let otherKeytab: string
/** One realm with persons of every state; the same names and passwords in each KDC. */
async function fill({ admin }: MitKdc): Promise<void> {
  const persons = [
    '+requires_preauth -pw Alice-Pass1 alice',
    '-requires_preauth -pw Bob-Pass1 bob',
    '+requires_preauth -allow_tix -pw Off-Pass1 disabled',
    '+requires_preauth -expire 2020-01-01 -pw Old-Pass1 expired',
    '+requires_preauth -pwexpire 2020-01-01 -pw Stale-Pass1 stale',
    '+requires_preauth -e aes128-sha2:normal -pw Sha2-Pass1 sha2',
    '+requires_preauth -e aes128-cts:normal -pw Renamed-Pass1 before',
    `-randkey ${SERVICE}`,
  ]
  for (const person of persons) await admin(`addprinc ${person}`)
  // A renamed person keeps the salt of the old name: only the KDC knows it.
  await admin('renprinc -force before renamed')
}

const failures: string[] = []
interface Made {
  ports?: number[]
  keytab?: string | undefined
  realm?: string
  now?: () => number
}
function methodOf(made: Made = {}): KerberosMethod {
  failures.length = 0
  const text = 'keytab' in made ? made.keytab : keytab
  return new KerberosMethod({
    auth: {
      id: '1',
      authenticationName: 'realm',
      description: '',
      secretNames: ['keytab'],
      secretRevision: 1,
      type: 'KERBEROS',
      servers: (made.ports ?? [kdc.port]).map((port) => ({ host: '127.0.0.1', port })),
      timeoutMs: 4000,
      options: { realm: made.realm ?? REALM, servicePrincipal: SERVICE },
    },
    secrets: text === undefined ? {} : { keytab: Secret.of(text) },
    replays: new Replays(0),
    now: made.now ?? Date.now,
    onFailure: (_server, error) => failures.push(error.message),
  })
}
const signal = new AbortController().signal
const prove = (method: KerberosMethod, userName = 'alice', password = 'Alice-Pass1') =>
  method.prove({ userName, source: '192.0.2.7', attempt: 'c1' }, Secret.of(password), signal)
const outcome = (answer: MethodAnswer) => ('reason' in answer ? answer.reason : answer.result)

describeWithPeers('passwords at a KDC', ['krb5kdc', 'kdb5_util', 'kadmin.local'], () => {
  beforeAll(async () => {
    ;[kdc, tcpOnly] = await Promise.all([startKdc(), startKdc(true)])
    await Promise.all([fill(kdc), fill(tcpOnly)])
    oldKeytab = await kdc.keytab(SERVICE)
    keytab = await kdc.keytab(SERVICE)
    otherKeytab = await tcpOnly.keytab(SERVICE)
  }, 300_000)
  afterAll(async () => {
    await Promise.all([kdc?.stop(), tcpOnly?.stop()])
  })

  test.each([
    ['alice', 'Alice-Pass1', 'accepted'],
    ['alice', 'wrong', 'wrong_password'],
    ['alice', '', 'wrong_password'],
    ['bob', 'Bob-Pass1', 'accepted'],
    ['bob', 'wrong', 'wrong_password'],
    ['sha2', 'Sha2-Pass1', 'accepted'],
    ['renamed', 'Renamed-Pass1', 'accepted'],
    ['mallory', 'Alice-Pass1', 'unknown_user'],
    ['alice@OTHER.TEST', 'Alice-Pass1', 'unknown_user'],
    ['alice/admin', 'Alice-Pass1', 'unknown_user'],
    ['disabled', 'Off-Pass1', 'account_disabled'],
    ['expired', 'Old-Pass1', 'account_expired'],
    ['stale', 'Stale-Pass1', 'password_expired'],
  ])('%s with %j: %s', async (name, password, expected) => {
    expect(outcome(await prove(methodOf(), name, password))).toBe(expected)
    expect(failures).toEqual([])
  })

  test('a KDC without UDP is asked by TCP, and one that is away leaves it to the next', async () => {
    const away = await freePort()
    const method = methodOf({ ports: [away, tcpOnly.port], keytab: otherKeytab })
    expect(outcome(await prove(method))).toBe('accepted')
    expect(failures).toHaveLength(1)
    expect(await prove(methodOf({ ports: [away] }))).toMatchObject({ result: 'unavailable' })
  })

  test('a KDC that does not know our key cannot accept a password', async () => {
    const liar = await prove(methodOf({ ports: [tcpOnly.port] }))
    expect(liar.result).toBe('unavailable')
    expect(outcome(liar)).toContain('export the keytab again')
    const old = await prove(methodOf({ keytab: oldKeytab }))
    expect(old.result).toBe('unavailable')
    expect(outcome(old)).toMatch(/key version 3 .* the keytab has 2/)
    expect(outcome(await prove(methodOf({ keytab: undefined })))).toContain('expected a `keytab`')
  })

  test('clocks that differ, and a realm of another KDC, are said and are no wrong password', async () => {
    const skewed = await prove(methodOf({ now: () => Date.now() - 3_600_000 }))
    expect(skewed.result).toBe('unavailable')
    expect(outcome(skewed)).toMatch(/its clock is 3[56]\d\d s ahead of ours.*same time server/)
    expect((await prove(methodOf({ realm: 'OTHER.TEST' }))).result).toBe('unavailable')
  })

  test('a trial says each step', async () => {
    const steps = await methodOf().test({ userName: 'alice', password: Secret.of('Alice-Pass1') }, signal)
    expect(steps.map(({ step, ok }) => [step, ok])).toEqual([
      ['answered', true],
      ['bound', true],
      ['signed_in', true],
    ])
    const wrong = await methodOf().test({ userName: 'alice', password: Secret.of('wrong-canary') }, signal)
    expect(wrong.at(-1)).toEqual({
      step: 'signed_in',
      ok: false,
      detail: 'expected a ticket, got wrong_password',
    })
    expect(await methodOf({ ports: [await freePort()] }).test({}, signal)).toMatchObject([
      { step: 'answered', ok: false },
    ])
  })
})
