/** A reload opens, changes and closes the SNMP agent and traces: asked by net-snmp, received by a collector. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OptionalParts } from '../../src/broker/optional-parts.ts'
import { parseConfig } from '../../src/config/load.ts'
import { type Managers, startManagers } from '../peers/net-snmp.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Collector, startCollector } from '../tracing/collector.ts'
import { metricsOf } from './parts-of-metrics.ts'

const V2C = { community: 'figures-please' }

describeWithPeers('a reload', ['snmpget'], () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sallyport-optional-'))
  let managers: Managers
  let collectors: [Collector, Collector]
  let parts: OptionalParts
  let ports: [number, number]
  const warnings: unknown[] = []
  const told = (...said: unknown[]) => void warnings.push(said)
  const configOf = (content: object) =>
    parseConfig(JSON.stringify(content), join(dataDir, 'sallyport.yaml'), { env: {}, hostname: 'box' })
  const withParts = (port?: number, collector?: Collector, more = {}) =>
    configOf({
      data_dir: dataDir,
      ...(port !== undefined && { snmp: { agent: { port, v2c: V2C, ...more } } }),
      ...(collector && { traces: { endpoint: collector.endpoint } }),
    })
  const reload = async (...args: Parameters<typeof withParts>) => {
    const prepared = await parts.prepareReload(withParts(...args))
    prepared.apply()
  }
  /** Returns the version as the agent has it, or an empty text if none answers. */
  const asked = async (port: number, community = V2C.community, patience = '30') => {
    const args = ['-t', patience, '-v2c', '-c', community, '-OqvU', `127.0.0.1:${port}`]
    return (await managers.ask('snmpget', ...args, 'SALLYPORT-MIB::sallyportVersion.0')).stdout.trim()
  }
  const isSilent = async (port: number, community?: string) => (await asked(port, community, '1')) === ''
  const open = (identity: string) =>
    parts.add({ name: 'authorization', begin: 1, end: 2, result: 'denied', protocol: 'SSH', identity })

  beforeAll(async () => {
    managers = startManagers()
    collectors = [await startCollector(), await startCollector()]
    ports = [await freePort(), await freePort()]
    parts = new OptionalParts({
      version: '0.1.0',
      metrics: metricsOf(),
      logger: { warn: told, error: told },
      bind: (_, { host, port }, listen) => listen(host, port),
    })
    await parts.openTracing(withParts())
    expect(await parts.openAgent(withParts())).toBeUndefined()
  })
  afterAll(async () => {
    await parts.closeAgent()
    await parts.closeTracing()
    for (const one of [...collectors, managers]) await ('stop' in one ? one.stop() : one.remove())
    rmSync(dataDir, { recursive: true })
    expect(warnings).toEqual([])
  })

  test('that adds them opens them', async () => {
    expect(parts.onArrived).toBeUndefined()
    open('before it')
    await reload(ports[0], collectors[0])
    expect(await asked(ports[0])).toBe('0.1.0')
    expect(parts.onArrived).toBeDefined()
    open('to the first')
  })

  test('that changes them moves the agent, and the traces to another collector', async () => {
    await reload(ports[1], collectors[1])
    expect(await asked(ports[1])).toBe('0.1.0')
    expect(await isSilent(ports[0])).toBe(true)
    open('to the second')
    await reload(ports[1], collectors[1], { v2c: { community: 'another-one' } })
    expect(await asked(ports[1], 'another-one')).toBe('0.1.0')
    expect(await isSilent(ports[1])).toBe(true)
  })

  test('that cannot be applied leaves them as they are, and says why', async () => {
    const taken = withParts(ports[1], undefined, { host: '::' })
    await expect(parts.prepareReload(taken)).rejects.toThrow(
      'snmp.agent.host: expected 127.0.0.1 as long as the port stays, got ::: restart the broker',
    )
    const prepared = await parts.prepareReload(withParts(ports[0], collectors[0]))
    await prepared.discard()
    expect(await isSilent(ports[0])).toBe(true)
    expect(await asked(ports[1], 'another-one')).toBe('0.1.0')
    expect(parts.onArrived).toBeDefined()
  })

  test('that takes them away closes them, and what there was is sent', async () => {
    await reload()
    expect(parts.onArrived).toBeUndefined()
    open('after it')
    expect(await isSilent(ports[1], 'another-one')).toBe(true)
    await parts.closeAgent()
    const [first, second] = collectors.map((one) =>
      one.spans().filter(({ name }) => name === 'authorization'),
    )
    // The second gets the first one's, too, unless the timer was faster.
    expect(first!.length + second!.length).toBe(2)
    expect(second!.length).toBeGreaterThan(0)
  })
})
