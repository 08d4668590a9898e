/** `sallyport serve`: runs the broker until it is stopped, drained or replaced. */
import { type Broker, startBroker } from '../broker/broker.ts'
import type { Takeover } from '../broker/hold.ts'
import { loadConfig } from '../config/load.ts'
import { type LogOutput, loggerTo, openLog } from '../host/log.ts'
import { withholdFromOtherProcesses } from '../host/process-memory.ts'
import { openSupervisor } from '../host/supervisor.ts'
import { type Command, expectNoWords, type Invocation, UsageError } from './command.ts'
import { graceOption } from './grace.ts'
import { productVersion } from './version.ts'

export const serve: Command = {
  synopsis: [
    ['serve [--json]', 'run the broker (npm start); --json: all that it prints is lines of JSON, as its log'],
    [
      'serve --takeover [--grace 10m]',
      'replace the broker that runs; its sessions run on, or end after the grace',
    ],
  ],
  options: { takeover: { type: 'boolean' }, grace: { type: 'string' }, json: { type: 'boolean' } },
  async run(invocation) {
    expectNoWords('serve', invocation.words)
    const takeover = takeoverOf(invocation)
    if (invocation.options['json'] !== true) {
      const write = (line: string) => process.stdout.write(`${line}\n`)
      return await run(invocation.config, takeover, write, (line) => process.stderr.write(`${line}\n`))
    }
    const shown = loggerTo('info', process.stdout)
    try {
      return await run(
        invocation.config,
        takeover,
        (line) => shown.info(line),
        (line) => shown.error(line),
      )
    } catch (error) {
      shown.fatal((error as Error).message)
      return 1
    }
  },
}

type Say = (line: string) => void

async function run(file: string, takeover: Takeover | undefined, say: Say, fault: Say): Promise<number> {
  withholdFromOtherProcesses()
  const opened = openSupervisor(process.env)
  const supervisor = 'supervisor' in opened ? opened.supervisor : undefined
  const config = loadConfig(file)
  const log = openLog(config.log, (error) => fault(`sallyport: the log cannot be written: ${error.message}`))
  logFaultsOfProcess(log)
  if ('missing' in opened) log.logger.error(`the supervisor is not notified: ${opened.missing}`)
  const adminPassword = process.env['SALLYPORT_ADMIN_PASSWORD']
  // The log may be rotated during the start: by default the signal would end the broker.
  let reload: (() => void) | undefined
  process.on('SIGHUP', () => {
    log.reopen()
    reload?.()
  })
  // By default Node opens a debugger on a loopback port, for every user of the machine.
  process.on('SIGUSR1', () => log.logger.warn('SIGUSR1 is ignored'))
  const broker = await startBroker({
    config,
    logger: log.logger,
    logFailure: log.failure,
    version: productVersion(),
    ...(adminPassword !== undefined && { adminPassword }),
    say,
    onStopping: (reason) => supervisor?.stopping(reason),
    ...(takeover && { takeover }),
  })
  reload = () => {
    supervisor?.reloading()
    broker
      .reload(() => loadConfig(file))
      .then(
        () => {
          log.logger.info('the configuration was read again')
          supervisor?.ready('serving')
        },
        (error: unknown) => {
          log.logger.error({ error }, 'the configuration was not taken over')
          supervisor?.ready(`serving with the old configuration: ${(error as Error).message}`)
        },
      )
  }
  // Comes before the line that it is ready: it may be stopped as soon as that is read.
  stopBySignals(broker)
  say('sallyport is ready')
  supervisor?.ready('serving')
  await broker.onClosed
  supervisor?.close()
  log.flush()
  return 0
}

/** Logs what Node would print in lines of its own. */
function logFaultsOfProcess({ logger, flush }: LogOutput): void {
  // A fault after the end of one connection must not cut the others off.
  process.on('unhandledRejection', (error) => logger.error({ error }, 'internal error'))
  process.on('uncaughtException', (error) => {
    logger.fatal({ error }, 'internal error: the broker ends')
    flush()
    process.exit(1)
  })
  process.removeAllListeners('warning')
  process.on('warning', (error) => {
    // Of Node's parts that this release uses on purpose.
    if (error.name !== 'ExperimentalWarning') logger.warn({ error }, 'a warning of Node')
  })
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
