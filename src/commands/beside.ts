/** The common part of commands that work on a broker's data, whether it runs or not. */

import { auditAnchor } from '../audit/anchor.ts'
import { AuditLog } from '../audit/log.ts'
import { requireUsed } from '../broker/database.ts'
import { type Foundation, openFoundation } from '../broker/foundation.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import type { Invocation } from './command.ts'
import { localActor } from './local-user.ts'

export interface Beside extends Foundation {
  config: Config
  /**
   * Its events name the user who runs the command; the broker's receivers get them from the log, now or at
   * its next start.
   */
  audit: AuditLog
}

/** Opens the configuration's data for `work`, and closes it again. Throws if there is none yet. */
export async function besideBroker<T>(
  { config: file }: Invocation,
  work: (beside: Beside) => Promise<T>,
): Promise<T> {
  const config = loadConfig(file)
  requireUsed(config)
  const foundation = await openFoundation(config)
  try {
    const { store, vault, recordingService } = foundation
    const audit = new AuditLog({
      repository: store.audit,
      now: Date.now,
      actor: localActor(),
      checkpoints: {
        key: recordingService.keys.signing,
        anchor: auditAnchor({ ...store, vault }),
        onError: ({ message }) => process.stderr.write(`sallyport: no checkpoint was written: ${message}\n`),
      },
    })
    const done = await work({ ...foundation, config, audit })
    await audit.close()
    return done
  } finally {
    await foundation.close()
  }
}
