import { Buffer } from 'node:buffer'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { auditAnchor } from '../../src/audit/anchor.ts'
import { sealScreen } from '../../src/gate/approval-screens.ts'
import { openExternal, sealExternal } from '../../src/identity/external-secrets.ts'
import { openHash, sealHash } from '../../src/identity/hashes.ts'
import { Secret } from '../../src/model/secret.ts'
import { openNotification, sealNotification } from '../../src/notifications/secrets.ts'
import { openRecordingKeys, renewRecordingKeys } from '../../src/recording-service/service.ts'
import { loadMasterKey, rotateMasterKeyFile } from '../../src/vault/key-file.ts'
import { MasterKeyError, newMasterKey, WRAPPED_KEY } from '../../src/vault/master-key.ts'
import { renewDataKey } from '../../src/vault/renewal.ts'
import { openVault } from '../../src/vault/vault.ts'
import { type Estate, newApproval, newExternalAuth, newNotification, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

let temp: TemporaryStore
let estate: Estate
let file: string
let external: string
beforeEach(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
  file = join(dirname(temp.path), 'master.key')
  const vault = await openVault(temp.store, { file })
  await vault.setCredentials(estate.account.id, [
    { type: 'password', password: Secret.of('hunter2') },
    { type: 'enable', password: Secret.of('hunter3') },
  ])
  const { domainId } = estate.account
  await vault.setAuthority(domainId, { pkcs8: Secret.of('a key'), publicKey: 'ssh-ed25519 AAAA' })
  await temp.store.users.setPasswordHash(estate.user.id, sealHash(vault, estate.user.id, '$argon2id$'))
  external = (await temp.store.externalAuths.create(newExternalAuth('directory'))).id
  const bind = sealExternal(vault, external, 'bind_password', Secret.of('hunter5'))
  await temp.store.externalAuths.setSealedSecrets(external, new Map([['bind_password', bind]]))
  const { id: notification } = await temp.store.notifications.create(newNotification('soc'))
  const signing = sealNotification(vault, notification, 'signing_secret', Secret.of('hunter6'))
  await temp.store.notifications.setSealedSecret(notification, 'signing_secret', signing)
  const id = '01J00000000000000000000000'
  const screen = sealScreen(vault, id, 'the screen')
  await temp.store.approvals.create(newApproval(estate, 1, { id, kind: 'command', screen }), {
    ofUser: 1,
    all: 1,
  })
  await openRecordingKeys(temp.store.settings, vault)
  await auditAnchor({ ...temp.store, vault }).note({ sequence: 0, hash: Buffer.alloc(32) })
})
afterEach(() => temp.remove())

const renew = () =>
  rotateMasterKeyFile(file, temp.store.settings, async (old, fresh) => {
    await temp.store.transaction(async (within) => {
      await renewDataKey(within, old, fresh)
    })
  })

/** Returns the id of the data key in use. */
async function keyId(): Promise<Buffer> {
  const wrapped = JSON.parse(Buffer.from((await temp.store.settings.get(WRAPPED_KEY))!).toString())
  return Buffer.from(wrapped.id, 'hex')
}

/** Returns tables and columns that contain a value sealed under that key, whatever the code assumes. */
function sealedUnder(id: Buffer): string[] {
  const database = new DatabaseSync(temp.path, { readOnly: true })
  try {
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all()
    return tables.flatMap(({ name: table }) =>
      database
        .prepare(`select * from "${table}"`)
        .all()
        .flatMap((row) => Object.entries(row))
        .filter(([, value]) => value instanceof Uint8Array && Buffer.from(value).subarray(1, 9).equals(id))
        .map(([column]) => `${table}.${column}`),
    )
  } finally {
    database.close()
  }
}

describe('a new data key', () => {
  test('opens all that the old one had sealed, and nothing is left under the old one', async () => {
    const before = await keyId()
    const places = sealedUnder(before)
    expect(new Set(places)).toEqual(
      new Set([
        'account_credentials.sealed',
        'approvals.screen',
        'domain_authorities.sealed',
        'external_auth_secrets.sealed',
        'notification_secrets.sealed',
        'settings.value',
        'users.sealed_password_hash',
      ]),
    )
    await renew()
    const after = await keyId()
    expect(after.equals(before)).toBe(false)
    expect(sealedUnder(before)).toEqual([])
    expect(sealedUnder(after)).toEqual(places)

    const vault = await openVault(temp.store, { file })
    const bind = (await temp.store.externalAuths.sealedSecrets(external)).get('bind_password')!
    expect(openExternal(vault, external, 'bind_password', bind).revealText()).toBe('hunter5')
    const [soc] = (await temp.store.notifications.list()).items
    const signing = (await temp.store.notifications.sealedSecret(soc!.id, 'signing_secret'))!
    expect(openNotification(vault, soc!.id, 'signing_secret', signing).revealText()).toBe('hunter6')
    const texts = (await vault.credentials(estate.account.id)).map((one) =>
      one.type === 'ssh_key' ? '' : one.password.revealText(),
    )
    expect(texts).toEqual(['hunter2', 'hunter3'])
    expect((await vault.authorityKey(estate.account.domainId))?.revealText()).toBe('a key')
    const { passwordHash } = await temp.store.users.secretsOf(estate.user.id)
    expect(openHash(vault, estate.user.id, passwordHash!)).toBe('$argon2id$')
    expect(await auditAnchor({ ...temp.store, vault }).read()).toMatchObject({ sequence: 0 })
  })

  test('is not made with a master key that is not the one of the database', async () => {
    const before = await keyId()
    await expect(renewDataKey(temp.store, newMasterKey(), newMasterKey())).rejects.toThrow(MasterKeyError)
    expect(await keyId()).toEqual(before)
  })

  test('is not made when a value does not open: all stays as it was, the master key too', async () => {
    const before = await keyId()
    const own = await loadMasterKey({ file }, temp.store.settings)
    const sealed = await temp.store.accounts.sealedCredentials(estate.account.id)
    const damaged = sealed.map((one) => ({
      ...one,
      sealed: Buffer.concat([one.sealed.subarray(0, -4), Buffer.alloc(4)]),
    }))
    await temp.store.accounts.setSealedCredentials(estate.account.id, damaged)
    await expect(renew()).rejects.toThrow('was changed or belongs elsewhere')
    expect(await keyId()).toEqual(before)
    expect((await loadMasterKey({ file }, temp.store.settings)).equals(own)).toBe(true)
  })
})

test('new recording keys: those of before go on verifying and opening', async () => {
  const vault = await openVault(temp.store, { file })
  const first = await openRecordingKeys(temp.store.settings, vault)
  const second = await renewRecordingKeys(temp.store.settings, vault)
  const third = await renewRecordingKeys(temp.store.settings, vault)
  expect(third.trusted).toEqual([third.signer, second.signer, first.signer])
  const texts = third.identities.map((identity) => identity.revealText())
  expect(texts).toEqual([third, second, first].map(({ identities }) => identities[0]!.revealText()))
  expect(new Set(texts).size).toBe(3)
})
