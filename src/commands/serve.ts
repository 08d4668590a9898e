/** `sallyport serve`: runs the broker until a signal ends it. */
import { startBroker } from '../broker/broker.ts'
import { loadConfig } from '../config/load.ts'
import { openLog } from '../host/log.ts'
import { withholdFromOtherProcesses } from '../host/process-memory.ts'
import { type Command, expectNoWords } from './command.ts'
import { productVersion } from './version.ts'

export const serve: Command = {
  synopsis: [['serve', 'run the broker (npm start)']],
  async run({ config: file, words }) {
    expectNoWords('serve', words)
    withholdFromOtherProcesses()
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
    })
    // A fault after the end of one connection must not cut the others off; it is logged.
    process.on('unhandledRejection', (error) => log.logger.error({ error }, 'internal error'))
    process.stdout.write('sallyport is ready\n')

    process.on('SIGHUP', () => {
      broker
        .reload(() => loadConfig(file))
        .then(
          () => log.logger.info('the configuration was read again'),
          (error: unknown) => log.logger.error({ error }, 'the configuration was not taken over'),
        )
    })
    // By default Node opens a debugger on a loopback port, for every user of the machine.
    process.on('SIGUSR1', () => log.logger.warn('SIGUSR1 is ignored'))
    const signal = await new Promise<string>((resolve) => {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name))
    })
    // A second signal does not wait for the sessions.
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => process.exit(1))
    await broker.stop(`the bastion is stopping (${signal})`)
    log.flush()
    return 0
  },
}
