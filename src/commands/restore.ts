/** `sallyport restore DIR`. */
import { jsonLine } from '../../recordings/decode/frames/payload.ts'
import { restoreBackup } from '../backup/restore.ts'
import { loadConfig } from '../config/load.ts'
import { placeText } from '../model/database.ts'
import { type Command, onlyWord } from './command.ts'
import { localActor } from './local-user.ts'
import { plain } from './output.ts'

export const restore: Command = {
  synopsis: [
    ['restore DIR [--json]', 'put a backup into data folder and database, which have to be empty or missing'],
  ],
  options: { json: { type: 'boolean' } },
  async run({ config: file, options, words }) {
    const folder = onlyWord(words, 'restore DIR')
    const config = loadConfig(file)
    const { manifest, masterKey } = await restoreBackup({
      config,
      folder,
      actor: localActor(),
      now: Date.now,
    })
    const { sessions, recordings, audit, created } = manifest
    if (options['json'] === true) {
      const restored = {
        data_dir: config.dataDir,
        created,
        audit,
        sessions,
        recordings,
        master_key: masterKey,
      }
      process.stdout.write(jsonLine(restored))
      return 0
    }
    const { database, dataDir } = config
    const lines = [
      `${'file' in database ? `${dataDir} is as it was` : `${placeText(database)} and ${dataDir} are as they were`} at ${created}: ${sessions.all} sessions, audit log up to row ${audit.row}, hash ${audit.hash}`,
      recordings.containers
        ? `${recordings.all} recordings are in ${config.recordings.directory}`
        : `the backup has no recordings: copy yours into ${config.recordings.directory} before the start`,
    ]
    lines.push('sign-ins by cookie, tickets and requests in progress of that moment have ended')
    if (sessions.running > 0) {
      lines.push(
        `${sessions.running} sessions ran at that moment: the start closes them, and reports the missing data`,
      )
    }
    if (masterKey === 'backup') {
      lines.push('the master key came from the backup: move it to a place of its own (see sallyport check)')
    }
    lines.push('next: sallyport check, then start the broker, then sallyport audit verify')
    process.stdout.write(plain(`${lines.join('\n')}\n`))
    return 0
  },
}
