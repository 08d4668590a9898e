/** `sallyport master-key rotate [--data-key]`. */
import { signerId } from '../../recordings/container/format/header.ts'
import { auditAnchor } from '../audit/anchor.ts'
import { SIGNING_KEY } from '../audit/checkpoint.ts'
import { journalFolder, journalsIn } from '../audit/journal/file.ts'
import { AuditLog } from '../audit/log.ts'
import { openDatabase, requireUsed } from '../broker/database.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { holdKeys, holdRotation, openDataFolder } from '../host/data-folder.ts'
import type { Secret } from '../model/secret.ts'
import { renewRecordingKeys } from '../recording-service/service.ts'
import type { Store } from '../store/store.ts'
import { loadMasterKey, rotateMasterKeyFile } from '../vault/key-file.ts'
import { fingerprint, formatMasterKey, newMasterKey, rotate } from '../vault/master-key.ts'
import { renewDataKey } from '../vault/renewal.ts'
import { type Command, UsageError } from './command.ts'
import { localActor } from './local-user.ts'

const REASON = 'master-key rotate'

type Rewrap = (old: Secret, fresh: Secret) => Promise<void>

export const rotateMasterKey: Command = {
  synopsis: [
    [
      'master-key rotate [--data-key]',
      'replace the master key; with --data-key, while no broker runs, also the keys that it protects: ' +
        'of secrets, of signatures and of recordings',
    ],
  ],
  options: { 'data-key': { type: 'boolean' } },
  async run({ config: file, options, words }) {
    if (words.length !== 1 || words[0] !== 'rotate') throw new UsageError('expected master-key rotate')
    const config = loadConfig(file)
    requireUsed(config)
    openDataFolder(config.dataDir)
    const isWhole = options['data-key'] === true
    const releases = [holdRotation(config.dataDir)]
    if (isWhole) releases.push(holdKeys(config.dataDir))
    const store = await openDatabase(config)
    try {
      if (isWhole) {
        await requireClosedSessions(store)
        await requireNoJournal(config)
        await replaceMasterKey(config, store, (old, fresh) => renewAll(store, old, fresh))
      } else {
        const audit = new AuditLog({ repository: store.audit, now: Date.now, actor: localActor() })
        await audit.record('secret.change', {
          object_type: 'master_key',
          object: 'master key',
          reason: REASON,
        })
        await replaceMasterKey(config, store, (old, fresh) => rotate(store.settings, old, fresh))
      }
      return 0
    } finally {
      await store.close()
      for (const release of releases) release()
    }
  },
}

async function replaceMasterKey({ masterKey: source }: Config, store: Store, rewrap: Rewrap): Promise<void> {
  if ('file' in source) {
    await rotateMasterKeyFile(source.file, store.settings, rewrap)
    const now = fingerprint(await loadMasterKey(source, store.settings))
    process.stdout.write(
      `the master key ${source.file} was replaced: keep a copy of it apart (fingerprint ${now})\n`,
    )
    return
  }
  const old = await loadMasterKey(source, store.settings)
  const fresh = newMasterKey()
  // Shown before it is used, and stored nowhere: a key that no administrator has seen would lock all of them
  // out.
  await print(
    `set ${source.env} to this before the next start, it is shown only once:\n${formatMasterKey(fresh).revealText()}`,
  )
  await rewrap(old, fresh)
}

/**
 * Requires that no session is open: a recording left open by a crash is sealed with the key that it was begun
 * with.
 */
async function requireClosedSessions(store: Store): Promise<void> {
  const { total } = await store.sessions.list({ status: 'current' }, { limit: 1, offset: 0 })
  if (total === 0) return
  throw new Error(
    `${total} session${total === 1 ? ' was' : 's were'} cut off when the broker stopped: start it and stop it once, so that their recordings are sealed, then try again`,
  )
}

/** Requires that no events wait for the audit log: their journal is sealed under the key that is replaced. */
async function requireNoJournal({ dataDir }: Config): Promise<void> {
  if ((await journalsIn(journalFolder(dataDir))).length === 0) return
  throw new Error(
    'events that were kept while the database was away are not in the audit log yet: start the broker and stop it once, then try again',
  )
}

/**
 * Renews all keys and writes their events in one transaction, with the first checkpoint by the new signing
 * key.
 */
async function renewAll(store: Store, old: Secret, fresh: Secret): Promise<void> {
  const signer = await store.transaction(async (within) => {
    const vault = await renewDataKey(within, old, fresh)
    const keys = await renewRecordingKeys(within.settings, vault)
    const problems: Error[] = []
    const audit = new AuditLog({
      repository: within.audit,
      now: Date.now,
      actor: localActor(),
      checkpoints: {
        key: keys.signing,
        anchor: auditAnchor({ ...within, vault }),
        onError: (error) => problems.push(error),
      },
    })
    const id = signerId(keys.signer)
    for (const object of ['master key', 'data key', 'recording identity']) {
      await audit.record('secret.change', {
        object_type: object.replace(' ', '_'),
        object,
        reason: `${REASON} --data-key`,
      })
    }
    await audit.record('secret.change', {
      object_type: SIGNING_KEY,
      object: 'signing key',
      signer: id,
      reason: `${REASON} --data-key`,
    })
    await audit.close()
    if (problems[0]) throw problems[0]
    return id
  })
  process.stdout.write(
    'the data key, the signing key and the identity of recordings were replaced; what was signed and sealed before ' +
      `still verifies and opens. Tell auditors of the new signing key ${signer}: sallyport audit key\n`,
  )
}

function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}
