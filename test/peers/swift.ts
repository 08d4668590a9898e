/**
 * OpenStack Swift as an S3 object store (its s3api), started without its init system on ports of 127.0.0.1:
 * one proxy in front of an account, a container and an object server, one replica in a temporary folder. It
 * checks version 4 signatures, and the Content-MD5 of uploads.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { type Daemon, freePort, run, startDaemon } from './process.ts'
import { findProgram, type Peer } from './program.ts'

export const SWIFT_PEERS: readonly Peer[] = [
  'swift-proxy-server',
  'swift-account-server',
  'swift-container-server',
  'swift-object-server',
]

/** Debian's own, which has swift's modules. */
const PYTHON = '/usr/bin/python3'
const PARTS = ['account', 'container', 'object'] as const

export interface Swift {
  port: number
  endpoint: string
  region: string
  accessKey: string
  secretKey: string
  stop(): Promise<void>
}

/** Starts it; `port` 0 finds a free one for the proxy. Ready when it responds. */
export async function startSwift(port = 0): Promise<Swift> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-swift-'))
  const daemons: Daemon[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(daemons.map((daemon) => daemon.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const chosen = port === 0 ? await freePort() : port
    mkdirSync(join(folder, 'disk', 'sdb1'), { recursive: true })
    writeFileSync(
      join(folder, 'swift.conf'),
      '[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n' +
        '[storage-policy:0]\nname = gold\ndefault = yes\n',
    )
    const ports = new Map<string, number>()
    for (const part of PARTS) {
      const own = await freePort()
      ports.set(part, own)
      writeFileSync(join(folder, `${part}.conf`), storageConfig(folder, part, own))
    }
    await makeRings(folder, ports)
    writeFileSync(join(folder, 'proxy.conf'), proxyConfig(folder, chosen))
    ports.set('proxy', chosen)
    // Python starts slowly: start all of them together.
    const started = await Promise.allSettled(
      [...ports].map(async ([part, own]) => {
        const file = join(folder, `${part}.conf`)
        const program = findProgram(`swift-${part as (typeof PARTS)[number] | 'proxy'}-server`)
        daemons.push(await startDaemon(program, [file, '-v'], () => answers(own)))
      }),
    )
    const failed = started.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
    return {
      port: chosen,
      endpoint: `http://127.0.0.1:${chosen}`,
      region: 'us-east-1',
      accessKey: 'lab:recorder',
      secretKey: 'recsecret',
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Whether it responds: a storage server has no health check, and returns an error for one. */
async function answers(port: number): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${port}/healthcheck`).catch(() => undefined)) !== undefined
}

/** The rings of all parts in one process: swift-ring-builder needs nine, a second of processor time each. */
const RINGS = `
import sys
from swift.common.ring import RingBuilder
for part, port in zip(sys.argv[1::2], sys.argv[2::2]):
    builder = RingBuilder(4, 1, 1)
    builder.add_dev(dict(region=1, zone=1, device='sdb1', weight=1, meta='', ip='127.0.0.1', port=int(port),
                         replication_ip='127.0.0.1', replication_port=int(port)))
    builder.rebalance()
    builder.get_ring().save(part + '.ring.gz')
`

async function makeRings(folder: string, ports: ReadonlyMap<string, number>): Promise<void> {
  const args = [...ports].flatMap(([part, port]) => [part, `${port}`])
  const done = await run(PYTHON, ['-c', RINGS, ...args], { cwd: folder })
  if (done.code !== 0) throw new Error(`the rings of swift: ${done.stdout}${done.stderr}`)
}

const common = (folder: string, port: number): string => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${userInfo().username}
swift_dir = ${folder}
log_address = ${join(folder, 'no-syslog')}
workers = 0
`

const storageConfig = (folder: string, part: string, port: number): string => `${common(folder, port)}
devices = ${join(folder, 'disk')}
mount_check = false
fallocate_reserve = 0
[pipeline:main]
pipeline = ${part}-server
[app:${part}-server]
use = egg:swift#${part}
recon_cache_path = ${folder}
`

const proxyConfig = (folder: string, port: number): string => `${common(folder, port)}
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats bulk s3api tempauth slo dlo proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
[filter:tempauth]
use = egg:swift#tempauth
user_lab_recorder = recsecret .admin
[filter:s3api]
use = egg:swift#s3api
min_segment_size = 1048576
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:proxy-logging]
use = egg:swift#proxy_logging
`
