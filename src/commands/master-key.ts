/** `sallyport master-key rotate`. */
import { existsSync } from 'node:fs'
import { AuditLog } from '../audit/log.ts'
import { loadConfig } from '../config/load.ts'
import { openStore } from '../store/open.ts'
import { loadMasterKey, rotateMasterKeyFile } from '../vault/keyfile.ts'
import { fingerprint, formatMasterKey, newMasterKey, rotate } from '../vault/masterkey.ts'
import { type Command, UsageError } from './command.ts'

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
      const audit = new AuditLog({ repository: store.audit, now: Date.now })
      const source = config.masterKey
      if ('file' in source) {
        await rotateMasterKeyFile(source.file, store.settings)
        const now = fingerprint(await loadMasterKey(source, store.settings))
        process.stdout.write(
          `the master key ${source.file} was replaced: keep a copy of it apart (fingerprint ${now})\n`,
        )
      } else {
        const fresh = newMasterKey()
        await rotate(store.settings, await loadMasterKey(source, store.settings), fresh)
        // The variable is somebody else's to set: the new key is shown once, and nowhere kept.
        process.stdout.write(`set ${source.env} to this before the next start, it is shown only once:\n`)
        process.stdout.write(formatMasterKey(fresh).revealText())
      }
      await audit.record('secret.change', {
        object_type: 'master_key',
        object: 'master key',
        result: 'success',
      })
      return 0
    } finally {
      await store.close()
    }
  },
}
