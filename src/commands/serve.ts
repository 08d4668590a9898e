/** `sallyport serve`: runs the broker until it is stopped, drained or replaced. */
import { type Broker, startBroker } from '../broker/broker.ts'
import type { Takeover } from '../broker/hold.ts'
import { loadConfig } from '../config/load.ts'
import { openLog } from '../host/log.ts'
import { withholdFromOtherProcesses } from '../host/process-memory.ts'
import { type Command, expectNoWords, type Invocation, UsageError } from './command.ts'
import { graceOption } from './grace.ts'
import { productVersion } from './version.ts'

export const serve: Command = {
  synopsis: [
    ['serve', 'run the broker (npm start)'],
    [
      'serve --takeover [--grace 10m]',
      'replace the broker that runs; its sessions run on, or end after the grace',
    ],
  ],
  options: { takeover: { type: 'boolean' }, grace: { type: 'string' } },
  async run(invocation) {
    const { config: file, words } = invocation
    expectNoWords('serve', words)
    withholdFromOtherProcesses()
    const takeover = takeoverOf(invocation)
    const config = loadConfig(file)
    const log = openLog(config.log, (error) => {
      process.stderr.write(`sallyport: the log cannot be written: ${error.message}\n`)
    })
    const adminPassword = process.env['SALLYPORT_ADMIN_PASSWORD']
    const broker = await startBroker({
      config,
      logger: log.logger,
      logFailure: log.failure,
      version: productVersion(),
      ...(adminPassword !== undefined && { adminPassword }),
      say: (line) => process.stdout.write(`${line}\n`),
      ...(takeover && { takeover }),
    })
    // A fault after the end of one connection must not cut the others off; it is logged.
    process.on('unhandledRejection', (error) => log.logger.error({ error }, 'internal error'))
    process.stdout.write('sallyport is ready\n')

    process.on('SIGHUP', () => {
      log.reopen()
      broker
        .reload(() => loadConfig(file))
        .then(
          () => log.logger.info('the configuration was read again'),
          (error: unknown) => log.logger.error({ error }, 'the configuration was not taken over'),
        )
    })
    // By default Node opens a debugger on a loopback port, for every user of the machine.
    process.on('SIGUSR1', () => log.logger.warn('SIGUSR1 is ignored'))
    stopBySignals(broker)
    await broker.onClosed
    log.flush()
    return 0
  },
}

function takeoverOf(invocation: Invocation): Takeover | undefined {
  const graceMs = graceOption(invocation)
  if (invocation.options['takeover'] === true) return graceMs === undefined ? {} : { graceMs }
  if (graceMs === undefined) return undefined
  throw new UsageError('--grace is for serve --takeover')
}

/** The first signal gives sessions their grace, the second one ends them, the third one ends the process. */
function stopBySignals(broker: Broker): void {
  let signals = 0
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      signals++
      if (signals > 2) process.exit(1)
      const reason = `the bastion is stopping (${name})`
      void (signals === 1 ? broker.stop(reason) : broker.stop(reason, 0))
    })
  }
}
