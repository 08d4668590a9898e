/** `sallyport check`: whether the broker would start here, and what is unwise. One line a finding. */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { nativeCryptoAvailable, requirePatchedSsh2 } from '../../proxies/ssh/transport.ts'
import { recipientFault } from '../../recordings/keys.ts'
import { verifyAudit } from '../audit/chain.ts'
import { explainBindError } from '../config/binderror.ts'
import type { Config } from '../config/config.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { runningHolder } from '../data-folder.ts'
import { openFoundation } from '../foundation.ts'
import { openAuthorities } from '../identity/authorities.ts'
import { type Command, expectNoWords } from './command.ts'

interface Finding {
  level: 'ok' | 'warning' | 'error'
  subject: string
  text: string
}

/** A broker of before this day would show certificates and signatures that nobody takes. */
const EARLIEST_CLOCK = Date.UTC(2026, 0, 1)

export const check: Command = {
  synopsis: [['check [--json]', 'check configuration, ports, store, keys, disk and clock']],
  options: { json: { type: 'boolean' } },
  async run({ config: file, options, words }) {
    expectNoWords('check', words)
    const findings = await look(file)
    for (const finding of findings) {
      process.stdout.write(
        options['json']
          ? `${JSON.stringify(finding)}\n`
          : `${finding.level.padEnd(8)} ${finding.subject.padEnd(14)} ${finding.text}\n`,
      )
    }
    return findings.some(({ level }) => level === 'error') ? 1 : 0
  },
}

async function look(file: string): Promise<Finding[]> {
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
    clock(),
    crypto(),
    ...(await ports(config, running)),
    ...(await data(config)),
    masterKey(config),
    disk(config),
    ...recipients(config),
    ...authorities(config),
  ]
}

function clock(): Finding {
  const now = new Date()
  const sane = now.getTime() > EARLIEST_CLOCK
  return {
    level: sane ? 'ok' : 'error',
    subject: 'clock',
    text: `${now.toISOString()}${sane ? '' : ': set the clock'}`,
  }
}

function crypto(): Finding {
  try {
    requirePatchedSsh2()
  } catch (error) {
    return { level: 'error', subject: 'crypto', text: (error as Error).message }
  }
  if (nativeCryptoAvailable())
    return { level: 'ok', subject: 'crypto', text: "ssh2's native binding is in use" }
  return {
    level: 'warning',
    subject: 'crypto',
    text: "ssh2's native binding is missing: SSH runs at less than half its speed; install g++, make and python3, then remove node_modules and start again",
  }
}

async function ports({ listen }: Config, running: number | undefined): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [name, address] of Object.entries(listen)) {
    const where = `${address.host} port ${address.port}`
    if (running !== undefined) {
      findings.push({
        level: 'ok',
        subject: name,
        text: `${where} (process ${running} runs with this data folder)`,
      })
      continue
    }
    const error = await tryToBind(address.host, address.port)
    findings.push(
      error
        ? { level: 'error', subject: name, text: explainBindError(error, name, address) }
        : { level: 'ok', subject: name, text: where },
    )
  }
  return findings
}

function tryToBind(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })
}

async function data(config: Config): Promise<Finding[]> {
  if (!existsSync(config.database.file)) {
    return [writable(config.dataDir)]
  }
  try {
    const foundation = await openFoundation(config)
    try {
      const verdict = await verifyAudit(foundation.store.audit)
      return [
        { level: 'ok', subject: 'store', text: config.database.file },
        { level: 'ok', subject: 'keys', text: 'the master key opens the vault' },
        verdict.fault
          ? {
              level: 'error',
              subject: 'audit',
              text: `row ${verdict.fault.sequence}: ${verdict.fault.message}`,
            }
          : { level: 'ok', subject: 'audit', text: `${verdict.rows} rows in order` },
      ]
    } finally {
      await foundation.store.close()
    }
  } catch (error) {
    return [
      { level: 'error', subject: 'store', text: error instanceof Error ? error.message : String(error) },
    ]
  }
}

/** Nothing is made by a check: it looks whether the first start could. */
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

function disk({ dataDir, recordings }: Config): Finding {
  let folder = resolve(recordings.directory)
  while (!existsSync(folder)) folder = dirname(folder)
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  const text = `${Math.floor(free / 2 ** 20)} MiB free for recordings, ${Math.floor(recordings.minFree / 2 ** 20)} MiB have to stay (${dataDir})`
  return { level: free > recordings.minFree ? 'ok' : 'error', subject: 'disk', text }
}

function recipients({ recordings }: Config): Finding[] {
  return recordings.recipients.flatMap((recipient) => {
    const fault = recipientFault(recipient)
    return fault === undefined ? [] : [{ level: 'error' as const, subject: 'recordings', text: fault }]
  })
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
