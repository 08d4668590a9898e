/** `sallyport backup DIR`. */
import { makeBackup } from '../backup/backup.ts'
import type { Manifest } from '../backup/manifest.ts'
import { giveWay } from '../threads/priority.ts'
import { besideBroker } from './beside.ts'
import { type Command, onlyWord } from './command.ts'
import { localUser } from './local-user.ts'
import { productVersion } from './version.ts'

/** The running broker has priority over the copy. */
const PRIORITY = 10

export const backup: Command = {
  synopsis: [
    [
      'backup DIR [--recordings] [--with-master-key] [--json]',
      'copy database, keys and the state of recordings into a new folder',
    ],
  ],
  options: {
    recordings: { type: 'boolean' },
    'with-master-key': { type: 'boolean' },
    json: { type: 'boolean' },
  },
  async run(invocation) {
    const { options, words } = invocation
    const folder = onlyWord(words, 'backup DIR')
    const withMasterKey = options['with-master-key'] === true
    giveWay(PRIORITY)
    const stop = new AbortController()
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(name, () =>
        stop.abort(new Error(`interrupted by ${name}: the incomplete backup is removed`)),
      )
    }
    const manifest = await besideBroker(invocation, ({ config, recordingService, audit }) =>
      makeBackup({
        config,
        recordingService,
        audit,
        folder,
        withMasterKey,
        withRecordings: options['recordings'] === true,
        user: localUser(),
        version: productVersion(),
        signal: stop.signal,
        now: Date.now,
      }),
    )
    process.stdout.write(
      options['json'] === true ? `${JSON.stringify({ folder, ...manifest })}\n` : textOf(folder, manifest),
    )
    if (withMasterKey) {
      process.stderr.write(
        `sallyport: ${folder} holds the master key beside the data that it opens: a reader of this folder has every secret\n`,
      )
    }
    return 0
  },
}

function textOf(folder: string, { sessions, recordings, audit, master_key: masterKey }: Manifest): string {
  const lines = [
    `${folder} is whole: ${sessions.all} sessions (${sessions.running} running), audit log up to row ${audit.row}, hash ${audit.hash}`,
    recordings.containers
      ? `${recordings.all} recordings, ${recordings.bytes} bytes`
      : `keys and state of ${recordings.all} recordings; not the recordings themselves (--recordings, or a copy of your own)`,
  ]
  if (!masterKey.included) {
    lines.push(
      `without the master key (fingerprint ${masterKey.fingerprint}): keep a copy of it in another place`,
    )
  }
  return `${lines.join('\n')}\n`
}
