/** `sallyport check`: whether the broker would start here, and what is unwise. One line per finding. */
import { randomUUID } from 'node:crypto'
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { recipientFault } from '../../recordings/container/keys.ts'
import { jsonLine } from '../../recordings/decode/frames/payload.ts'
import { verifyStored } from '../audit/verify-stored.ts'
import { wasUsed } from '../broker/database.ts'
import { type Foundation, openFoundation } from '../broker/foundation.ts'
import { openHostTrust } from '../broker/host-trust.ts'
import { Notifications } from '../broker/notifications.ts'
import { openHostCertificates, validityOf } from '../broker/own-certificates.ts'
import { wideBalancers } from '../config/balancers.ts'
import type { Config } from '../config/config.ts'
import { exposedFiles } from '../config/exposure.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { addressesOf, portFault } from '../config/ports.ts'
import { runningHolder } from '../host/data-folder.ts'
import { publicHostKeys } from '../host/front-files.ts'
import { withholdFromCoreDumps } from '../host/process-memory.ts'
import { openAuthorities } from '../identity/authorities.ts'
import { forgeableServers } from '../identity/methods/radius/forgeable.ts'
import { placeText } from '../model/database.ts'
import { openBucket } from '../recording-service/bucket.ts'
import { databaseFault } from '../store/open.ts'
import { certificates } from './certificates.ts'
import { clock } from './clock-check.ts'
import { type Command, expectNoWords } from './command.ts'
import { crypto } from './crypto-check.ts'
import type { Finding } from './finding.ts'
import { plain } from './output.ts'
import { notified, receivers } from './receivers-check.ts'
import { sessionWorkers } from './session-workers.ts'
import { productVersion } from './version.ts'

export const check: Command = {
  synopsis: [
    ['check [--json]', 'check configuration, ports, store, keys, disk, clock and receivers of events'],
  ],
  options: { json: { type: 'boolean' } },
  async run({ config: file, options, words }) {
    expectNoWords('check', words)
    const findings = await look(file)
    for (const finding of findings) {
      process.stdout.write(
        options['json']
          ? jsonLine(finding)
          : plain(`${finding.level.padEnd(8)} ${finding.subject.padEnd(14)} ${finding.text}\n`),
      )
    }
    return findings.some(({ level }) => level === 'error') ? 1 : 0
  },
}

/** Returns what is found, from the configuration on. */
export async function look(file: string): Promise<Finding[]> {
  let config: Config
  try {
    config = loadConfig(file)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((text) => ({ level: 'error', subject: 'configuration', text }))
  }
  const running = runningHolder(join(config.dataDir, 'sallyport.pid'))
  return [
    { level: 'ok', subject: 'configuration', text: config.file },
    ...(await clock(config)),
    crypto(),
    ...(await ports(config, running)),
    ...certificates(config, Date.now()),
    ...(await data(config)),
    masterKey(config),
    ...secretFiles(config),
    ...balancers(config),
    coreDumps(),
    await sessionWorkers(config),
    disk(config),
    ...(await objectStore(config)),
    ...(await receivers(config)),
    ...recipients(config),
    ...authorities(config),
    ...hostCertificates(config),
    ...hostTrust(config),
  ]
}

async function ports(config: Config, running: number | undefined): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [name, address] of addressesOf(config)) {
    const where = `${address.host} port ${address.port}`
    if (running !== undefined) {
      findings.push({
        level: 'ok',
        subject: name,
        text: `${where} (process ${running} runs with this data folder)`,
      })
      continue
    }
    const text = await portFault(name, address)
    findings.push({ level: text === undefined ? 'ok' : 'error', subject: name, text: text ?? where })
  }
  return findings
}

async function data(config: Config): Promise<Finding[]> {
  if (!wasUsed(config)) return [writable(config.dataDir), ...(await newDatabase(config))]
  try {
    const foundation = await openFoundation(config)
    try {
      const { trusted } = foundation.recordingService.keys
      const verdict = await verifyStored(foundation, { trusted })
      return [
        { level: 'ok', subject: 'store', text: placeText(config.database) },
        { level: 'ok', subject: 'keys', text: 'the master key opens the vault' },
        verdict.fault
          ? {
              level: 'error',
              subject: 'audit',
              text: `row ${verdict.fault.sequence}: ${verdict.fault.code}: ${verdict.fault.message}`,
            }
          : { level: 'ok', subject: 'audit', text: `${verdict.rows} rows in order` },
        ...(await forgeableServers(foundation.store)).map(
          (text): Finding => ({ level: 'warning', subject: 'radius', text }),
        ),
        ...(await notifications(foundation, config)),
      ]
    } finally {
      await foundation.close()
    }
  } catch (error) {
    return [
      { level: 'error', subject: 'store', text: error instanceof Error ? error.message : String(error) },
    ]
  }
}

/** Tries the receivers of the objects of `/notifications`. */
async function notifications(foundation: Foundation, { hostname }: Config): Promise<Finding[]> {
  const findings: Finding[] = []
  const senders = await new Notifications({
    ...foundation,
    audit: { record: async () => undefined },
    maker: () => ({ hostname, version: productVersion() }),
    now: Date.now,
    onError: ({ message: text }) => void findings.push({ level: 'error', subject: 'notifications', text }),
  }).senders()
  return [...findings, ...(await notified(senders))]
}

/** Tests whether the first start could make its tables in a server's database; a check makes none. */
async function newDatabase({ database }: Config): Promise<Finding[]> {
  if ('file' in database) return []
  const fault = await databaseFault(database.postgres)
  const text = placeText(database)
  return fault === undefined
    ? [{ level: 'ok', subject: 'store', text: `${text} can be used from the first start on` }]
    : [{ level: 'error', subject: 'store', text: fault }]
}

/** Tests whether the first start could create the folder; a check creates nothing. */
function writable(dataDir: string): Finding {
  let folder = resolve(dataDir)
  while (!existsSync(folder)) folder = dirname(folder)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return { level: 'ok', subject: 'store', text: `${dataDir} will be made at the first start` }
  } catch {
    return { level: 'error', subject: 'store', text: `${dataDir} cannot be made: ${folder} is not writable` }
  }
}

function coreDumps(): Finding {
  if (withholdFromCoreDumps())
    return { level: 'ok', subject: 'core dumps', text: 'would hold none of the memory' }
  return {
    level: 'warning',
    subject: 'core dumps',
    text: 'would hold the memory, with credentials in it: allow none (ulimit -c 0, LimitCORE=0)',
  }
}

function masterKey({ masterKey, dataDir }: Config): Finding {
  if ('env' in masterKey)
    return { level: 'ok', subject: 'master key', text: `from the variable ${masterKey.env}` }
  const { file } = masterKey
  if (existsSync(file) && (statSync(file).mode & 0o077) !== 0) {
    return {
      level: 'error',
      subject: 'master key',
      text: `${file} is readable for others: chmod 600 ${file}`,
    }
  }
  const inside = resolve(file).startsWith(`${resolve(dataDir)}/`)
  if (!inside) return { level: 'ok', subject: 'master key', text: file }
  return {
    level: 'warning',
    subject: 'master key',
    text: `${file} lies beside the data that it seals: who copies the folder has both; move it, and set master_key`,
  }
}

function secretFiles(config: Config): Finding[] {
  const exposed = exposedFiles(config)
  if (exposed.length > 0) return exposed.map((text) => ({ level: 'warning', subject: 'secrets', text }))
  const { length } = config.secretFiles
  const text = `${length} file${length === 1 ? '' : 's'} with secrets, for nobody else to read`
  return length === 0 ? [] : [{ level: 'ok', subject: 'secrets', text }]
}

function balancers(config: Config): Finding[] {
  const subject = 'balancers'
  const wide = wideBalancers(config)
  if (wide.length > 0) return wide.map((text) => ({ level: 'warning', subject, text }))
  const { proxyProtocol, trustedProxies } = config
  return [
    { name: 'PROXY headers', networks: proxyProtocol.from },
    { name: 'X-Forwarded-For', networks: trustedProxies },
  ]
    .filter(({ networks }) => networks.length > 0)
    .map(({ name, networks }) => ({
      level: 'ok',
      subject,
      text: `${name} believed from ${networks.join(', ')}`,
    }))
}

function disk({ dataDir, recordings }: Config): Finding {
  let folder = resolve(recordings.directory)
  while (!existsSync(folder)) folder = dirname(folder)
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  const text = `${Math.floor(free / 2 ** 20)} MiB free for recordings, ${Math.floor(recordings.minFree / 2 ** 20)} MiB have to stay (${dataDir})`
  const level = free > recordings.alarmFree ? 'ok' : free > recordings.minFree ? 'warning' : 'error'
  return { level, subject: 'disk', text }
}

/** Puts, reads and deletes a small object: the operations that uploads need. */
async function objectStore({ recordings }: Config): Promise<Finding[]> {
  if (!recordings.objectStore) return []
  const subject = 'object store'
  try {
    const bucket = openBucket(recordings.objectStore)
    try {
      await bucket.ask('probe', { prefix: bucket.prefix, name: randomUUID() })
    } finally {
      await bucket.close()
    }
    return [{ level: 'ok', subject, text: `${bucket.address}: an object was put, read and deleted` }]
  } catch (error) {
    return [{ level: 'error', subject, text: (error as Error).message }]
  }
}

function recipients({ recordings }: Config): Finding[] {
  const { length } = recordings.recipients
  const sealed: Finding = {
    level: 'ok',
    subject: 'recordings',
    text: `only ${length} recipient${length === 1 ? '' : 's'} of the configuration can open them: whoever loses these keys has lost the recordings`,
  }
  const faults = recordings.recipients.flatMap((recipient) => {
    const fault = recipientFault(recipient)
    return fault === undefined ? [] : [{ level: 'error' as const, subject: 'recordings', text: fault }]
  })
  return recordings.brokerKey ? faults : [sealed, ...faults]
}

function authorities({ ssh }: Config): Finding[] {
  if (ssh.userCa.length === 0 && ssh.revokedKeys === undefined) return []
  try {
    openAuthorities(ssh)
    return [
      { level: 'ok', subject: 'authorities', text: [...ssh.userCa, ssh.revokedKeys ?? ''].join(' ').trim() },
    ]
  } catch (error) {
    return [{ level: 'error', subject: 'authorities', text: (error as Error).message }]
  }
}

function hostCertificates({ ssh, dataDir }: Config): Finding[] {
  const subject = 'host certs'
  try {
    return openHostCertificates(ssh.hostCertificates, publicHostKeys(dataDir)).map((certificate) => {
      const { isValid, warning } = validityOf(certificate, Date.now())
      if (warning === undefined) return { level: 'ok', subject, text: certificate.file }
      return { level: isValid ? 'warning' : 'error', subject, text: warning }
    })
  } catch (error) {
    return [{ level: 'error', subject, text: (error as Error).message }]
  }
}

function hostTrust(config: Config): Finding[] {
  const findings: Finding[] = []
  try {
    openHostTrust(config)
    const { revokedHostKeys } = config.ssh
    if (revokedHostKeys !== undefined) {
      findings.push({ level: 'ok', subject: 'revoked hosts', text: revokedHostKeys })
    }
  } catch (error) {
    findings.push({ level: 'error', subject: 'revoked hosts', text: (error as Error).message })
  }
  for (const { host, port } of config.dns.servers) {
    const where = `${host} port ${port}`
    findings.push(
      isLoopback(host)
        ? { level: 'ok', subject: 'dns', text: where }
        : {
            level: 'warning',
            subject: 'dns',
            text: `${where} is not on this machine: who reaches the path to it can vouch for any host key where host_key_policy is dns`,
          },
    )
  }
  return findings
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')
