/** Sign-ins of persons by LDAPS through the chain, with slapd on the same machine: as it is, and without the cost of hashes. */
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Identities } from '../../src/identity/chain.ts'
import { External } from '../../src/identity/external.ts'
import { sealExternal } from '../../src/identity/external-secrets.ts'
import type { HashSeal } from '../../src/identity/hashes.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import { MethodRegistry } from '../../src/identity/methods/registry.ts'
import { PasswordHasher } from '../../src/identity/password.ts'
import type { LdapOptions } from '../../src/model/external-auths.ts'
import { Secret } from '../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../src/vault/seal.ts'
import { LDAP_ADMIN, SUFFIX, startSlapd } from '../peers/directory.ts'
import { certificateFiles } from '../peers/vnc/certificate.ts'
import { temporaryStore } from '../store/temp.ts'
import { table } from './stats.ts'

const { values: flags } = parseArgs({
  options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } },
})
const PEOPLE = 200
const AT_A_TIME = 20
/** Hashes of next to no cost. */
const QUICK = { memory: 256, passes: 1 }

const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
const SEAL: HashSeal = {
  seal: (place, secret) => seal(dataKey, place, secret),
  open: (place, sealed) => open(dataKey, place, sealed),
}
const passwordOf = (index: number) => `Password-of-${index}`

const certificate = await certificateFiles()
const people = Object.fromEntries(
  Array.from({ length: PEOPLE }, (_, index) => [`u${index}`, passwordOf(index)]),
)
const slapd = await startSlapd(people, certificate)
const temp = await temporaryStore()
const { store } = temp
const registry = new MethodRegistry({
  store,
  vault: SEAL,
  site: 'https://bastion.lab',
  now: Date.now,
  onFailure: (name, server, error) => process.stderr.write(`${name} ${server}: ${error.message}\n`),
})

async function prepare(): Promise<void> {
  const options: LdapOptions = {
    security: 'ldaps',
    caCertificates: certificate.pem.cert,
    bindDn: LDAP_ADMIN.login,
    baseDn: SUFFIX,
    directory: 'generic',
    loginAttribute: 'uid',
    nestedGroups: false,
  }
  const auth = await store.externalAuths.create({
    authenticationName: 'directory',
    description: '',
    type: 'LDAP',
    servers: [{ host: '127.0.0.1', port: slapd.ldaps }],
    timeoutMs: 20_000,
    secretNames: [],
    secretRevision: 0,
    options,
  })
  const password = sealExternal(SEAL, auth.id, 'bind_password', Secret.of(LDAP_ADMIN.password))
  await store.externalAuths.setSealedSecrets(auth.id, new Map([['bind_password', password]]))
  const group = await store.userGroups.create({
    groupName: 'staff',
    description: '',
    userIds: [],
    timeframeIds: [],
  } as never)
  const domain = await store.authDomains.create({
    domainName: 'corp',
    description: '',
    type: 'LDAP',
    isDefault: false,
    externalAuthIds: [auth.id],
    secondaryAuthIds: [],
    attributes: {},
    defaultLanguage: 'en',
  })
  await store.authDomainMappings.create({
    authDomainId: domain.id,
    userGroupId: group.id,
    externalGroup: '*',
    profile: 'user',
  })
}

/** Returns sign-ins per second, and milliseconds of the chain's processor time for each. */
async function measure(hasher: PasswordHasher, count: number): Promise<[string, string]> {
  const external = new External({ store, registry })
  const identities = new Identities(store.users, hasher, new Lockout(), Date.now, SEAL, external)
  let left = count
  const begin = performance.now()
  const before = process.cpuUsage()
  const worker = async (): Promise<void> => {
    while (left > 0) {
      const nth = left--
      const index = nth % PEOPLE
      const user = `u${index}@corp`
      const outcome = await identities.authenticate({
        user,
        login: user,
        source: `10.${nth % 250}.${index}.9`,
        proof: { method: 'password', password: passwordOf(index) },
      })
      if (outcome.result !== 'accepted') throw new Error(`${user}: ${JSON.stringify(outcome)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  const { user, system } = process.cpuUsage(before)
  const ms = performance.now() - begin
  return [((count * 1000) / ms).toFixed(0), ((user + system) / 1000 / count).toFixed(1)]
}

try {
  await prepare()
  const count = flags.quick ? 200 : 2000
  // Each person's row is made by the first of their sign-ins.
  await measure(new PasswordHasher(QUICK), PEOPLE)
  const bare = await measure(new PasswordHasher(QUICK), count)
  const whole = await measure(new PasswordHasher(), count / 10)
  const rows = [
    [`sign-ins by LDAPS, ${AT_A_TIME} at a time`, '1/s', 'CPU of the chain, ms each'],
    ['as they are', ...whole],
    ['without the cost of the hash', ...bare],
  ]
  process.stdout.write(`${table(rows)}\n`)
} finally {
  await registry.close()
  await temp.remove()
  await slapd.stop()
  certificate.remove()
}
