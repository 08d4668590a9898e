/** Credentials of a session at its target: its certificate, and those that its policy names. */
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Target } from '../../src/access/targets.ts'
import { certificateFor, VALID_BEFORE_NOW_S, VALID_FROM_NOW_S } from '../../src/gate/certificates.ts'
import { credentialsFor, isCredentialOptional } from '../../src/gate/credentials.ts'
import { parseCertificate } from '../../src/identity/certificate.ts'
import type { Certificate } from '../../src/identity/certificate-parts.ts'
import type { AuthenticationMethod } from '../../src/model/authentication-methods.ts'
import { RIGHTS, type Right } from '../../src/model/rights.ts'
import { Secret } from '../../src/model/secret.ts'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'
import { readAuthorityKey } from '../../src/vault/authority.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { opensshKey } from '../identity/keys.ts'
import { type Estate, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const NOW = 1_700_000_000_500
let temp: TemporaryStore
let estate: Estate
let vault: Vault
beforeEach(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
  vault = await openVault(temp.store, { file: join(dirname(temp.path), 'master.key') })
  const key = readAuthorityKey({ privateKey: Secret.of(opensshKey('ed25519').file) })
  await vault.setAuthority(estate.domain.id, key)
})
afterEach(() => temp.remove())

async function session(change: Partial<Target> = {}) {
  const [row] = await temp.store.access.sessionTargets(estate.user.id, 0)
  const target: Target = {
    ...row!,
    rights: ['SSH_SHELL'],
    isRecorded: false,
    isStrict: false,
    authorizationIds: [],
    authorizationNames: [],
    ...change,
  }
  return { id: '01K9T5RZ8Q4W6X2C3V1B0N7M5J', user: 'ops1', target, begin: NOW }
}

async function certificate(
  change: Partial<Target> = {},
): Promise<{ certificate: Certificate; blob: Buffer }> {
  const made = await certificateFor(vault, await session(change))
  if (made.result !== 'made' || made.credential.type !== 'ssh_certificate') throw new Error(made.result)
  const blob = Buffer.from(made.credential.certificate)
  return { certificate: parseCertificate(blob), blob }
}

test('a certificate is for one login, for a few minutes, of another key each time', async () => {
  const first = (await certificate()).certificate
  const second = (await certificate()).certificate
  expect(first).toMatchObject({
    isOfUser: true,
    principals: ['root'],
    validAfter: BigInt(1_700_000_000 - VALID_BEFORE_NOW_S),
    validBefore: BigInt(1_700_000_000 + VALID_FROM_NOW_S),
  })
  expect(first.keyId.toString()).toBe(
    'sallyport session=01K9T5RZ8Q4W6X2C3V1B0N7M5J user=ops1 account=root@local:srv1:ssh',
  )
  expect(first.key.blob.equals(second.key.blob)).toBe(false)
  expect(first.serial).not.toBe(second.serial)
})

test.each<[Right[], string[]]>([
  [['SFTP_SESSION'], []],
  [['SSH_SCP_UP', 'SSH_SCP_DOWN'], []],
  [['SSH_SHELL'], ['permit-pty']],
  [['SSH_REMOTE_COMMAND'], ['permit-pty']],
  [['SSH_X11'], ['permit-X11-forwarding']],
  [['SSH_AUTH_AGENT'], ['permit-agent-forwarding']],
  [['SSH_DIRECT_TCPIP'], ['permit-port-forwarding']],
  [['SSH_REVERSE_TCPIP'], ['permit-port-forwarding']],
  [['SSH_DIRECT_UNIXSOCK'], ['permit-port-forwarding']],
  [['SSH_REVERSE_UNIXSOCK'], ['permit-port-forwarding']],
  [[...RIGHTS], ['permit-X11-forwarding', 'permit-agent-forwarding', 'permit-port-forwarding', 'permit-pty']],
])('%j needs %j', async (rights, extensions) => {
  const { blob } = await certificate({ rights })
  expect(blob.toString('latin1').match(/permit-[A-Za-z0-9-]+?(?=\0)/g) ?? []).toEqual(extensions)
})

test.each(['a,root', 'a root', 'root,'])('the login %j gets none', async (accountLogin) => {
  const made = await certificateFor(vault, await session({ accountLogin }))
  expect(made).toMatchObject({ result: 'refused' })
})

describe('the methods of the policy', () => {
  const found = async (...methods: AuthenticationMethod[]) => {
    const answer = await credentialsFor(vault, await session(), methods, {
      isOptional: isCredentialOptional('SSH', methods, VNC_OPTIONS),
    })
    return answer.result === 'found' ? answer.credentials.map(({ type }) => type) : answer.message
  }
  beforeEach(() =>
    vault.setCredentials(estate.account.id, [
      { type: 'password', password: Secret.of('secret') },
      { type: 'ssh_key', privateKey: Secret.of(opensshKey('ed25519').file) },
    ]),
  )

  test('decide what leaves the vault, and in which order', async () => {
    expect(await found('PUBKEY_VAULT', 'PASSWORD_VAULT')).toEqual(['ssh_certificate', 'ssh_key', 'password'])
    expect(await found('PASSWORD_VAULT', 'PUBKEY_VAULT')).toEqual(['password', 'ssh_certificate', 'ssh_key'])
    expect(await found('PASSWORD_VAULT')).toEqual(['password'])
    expect(await found('PUBKEY_AGENT_FORWARDING')).toEqual([])
    await vault.setAuthority(estate.domain.id, undefined)
    expect(await found('PUBKEY_VAULT')).toEqual(['ssh_key'])
  })

  test('without anything for them there is no session', async () => {
    await vault.setAuthority(estate.domain.id, undefined)
    await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('secret') }])
    expect(await found('PUBKEY_VAULT')).toBe(
      'no credential is stored for root@local:srv1:ssh for PUBKEY_VAULT, which its connection policy names',
    )
    await vault.setCredentials(estate.account.id, [])
    expect(await found('PUBKEY_VAULT', 'PASSWORD_VAULT')).toBe(
      'no credential is stored for root@local:srv1:ssh',
    )
    expect(await found('PASSWORD_VAULT', 'PUBKEY_AGENT_FORWARDING')).toEqual([])
  })
})
