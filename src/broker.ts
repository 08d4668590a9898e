/**
 * The composition root: builds every part from the configuration, in the order of the house's floors, and takes
 * them down in the opposite order.
 */
import { randomBytes } from 'node:crypto'
import { nativeCryptoAvailable } from '../proxies/ssh/transport.ts'
import { SshProxy } from '../proxies/ssh/proxy.ts'
import { createApi } from './api/api.ts'
import { AuditLog } from './audit/log.ts'
import { openSinks } from './audit/sinks/open.ts'
import { explainBindError } from './config/binderror.ts'
import type { Config } from './config/config.ts'
import { holdDataFolder, hostKeys, openDataFolder, tlsFiles } from './data-folder.ts'
import { firstAdministrator } from './first-start.ts'
import { BrokerGate } from './gate/gate.ts'
import { Identities } from './identity/chain.ts'
import { openRecordingKeys, RecordingKeeper } from './keeper/keeper.ts'
import { recordingExports } from './keeper/exports.ts'
import { recoverSessions } from './keeper/recover.ts'
import type { Logger } from './log.ts'
import { Metrics, startMetrics } from './metrics.ts'
import { openStore } from './store/open.ts'
import { openVault } from './vault/credentials.ts'
