/** `sallyport master-key rotate`. */
import { existsSync } from 'node:fs'
import { AuditLog } from '../audit/log.ts'
import { loadConfig } from '../config/load.ts'
import { openStore } from '../store/open.ts'
import { loadMasterKey, rotateMasterKeyFile } from '../vault/keyfile.ts'
import { fingerprint, formatMasterKey, newMasterKey, rotate } from '../vault/masterkey.ts'
import { type Command, UsageError } from './command.ts'
import { localActor } from './local-user.ts'

export const rotateMasterKey: Command = {
  synopsis: [['master-key rotate', 'replace the master key and wrap the data key with the new one']],
  async run({ config: file, words }) {
    if (words.length !== 1 || words[0] !== 'rotate') throw new UsageError('expected master-key rotate')
    const config = loadConfig(file)
    if (!existsSync(config.database.file)) {
      throw new Error(`there is no database ${config.database.file} yet: start the broker once (npm start)`)
    }
    const store = await openStore({ path: config.database.file })
    try {
      const audit = new AuditLog({ repository: store.audit, now: Date.now, actor: localActor() })
      const source = config.masterKey
      await audit.record('secret.change', {
        object_type: 'master_key',
        object: 'master key',
        reason: 'master-key rotate',
      })
      if ('file' in source) {
        await rotateMasterKeyFile(source.file, store.settings)
        const now = fingerprint(await loadMasterKey(source, store.settings))
        process.stdout.write(
          `the master key ${source.file} was replaced: keep a copy of it apart (fingerprint ${now})\n`,
        )
      } else {
        const old = await loadMasterKey(source, store.settings)
        const fresh = newMasterKey()
        // Shown before it counts, and nowhere kept: a key that nobody has seen would lock everybody out.
        await print(
          `set ${source.env} to this before the next start, it is shown only once:\n${formatMasterKey(fresh).revealText()}`,
        )
        await rotate(store.settings, old, fresh)
      }
      return 0
    } finally {
      await store.close()
    }
  },
}

function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}
