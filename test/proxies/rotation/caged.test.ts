/** The plugins in the processes in which the broker runs them: their libraries load and reach targets inside the cage. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MESSAGES_DESCRIPTOR } from '../../../src/contract/worker.ts'
import { ChangerProcesses } from '../../../src/rotation/processes.ts'
import { changerCommand } from '../../../src/workers/command.ts'
import { type Slapd, SUFFIX, startSlapd } from '../../peers/directory.ts'
import { type Mariadb, startMariadb } from '../../peers/mariadb.ts'
import { NETGEAR_PEERS, type Switch, startSwitch } from '../../peers/netgear.ts'
import { type Postgres, startPostgres } from '../../peers/postgres.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { changeBy, ownChange, signInOf, targetAt } from './targets.ts'

describeWithPeers('a caged changer', ['slapd', 'mariadbd', 'postgres', 'initdb', ...NETGEAR_PEERS], () => {
  let certificate: CertificateFiles
  let [slapd, mariadb, postgres, device]: [Slapd?, Mariadb?, Postgres?, Switch?] = []
  const warnings: unknown[] = []
  const changers = new ChangerProcesses({
    command: () => changerCommand(undefined).command,
    descriptor: MESSAGES_DESCRIPTOR,
    warn: (message, details) => warnings.push(message, details),
  })

  beforeAll(async () => {
    certificate = await certificateFiles()
    const start = [startMariadb(certificate), startPostgres()] as const
    slapd = await startSlapd({ alice: 'Alice-Pass1' }, certificate)
    device = await startSwitch({ alice: 'Alice-Pass1', enable: 'Enable-Pass1' })
    mariadb = await start[0]
    postgres = await start[1]
    await mariadb.sql("create user alice@'%' identified by 'Alice-Pass1'")
    await postgres.sql("create role alice login password 'Alice-Pass1'")
  })
  afterAll(async () => {
    changers.close()
    await Promise.all([slapd, mariadb, postgres, device].map((one) => one?.stop()))
    certificate.remove()
  })

  test('changes passwords of every kind at once', async () => {
    const trust = { certificates: certificate.pem.cert }
    const kinds = [
      ['LDAP', targetAt(slapd!.ldaps, { user_dn: `uid={login},ou=people,${SUFFIX}` }, trust)],
      ['MySQL', { ...targetAt(mariadb!.port, {}, trust), host: 'localhost' }],
      ['PostgreSQL', targetAt(postgres!.port, { insecure: true })],
      ['Cisco', targetAt(device!.port, { transport: 'TELNET' })],
    ] as const
    await Promise.all(
      kinds.map(async ([plugin, target]) => {
        const change = ownChange('alice', 'Alice-Pass1', 'Alice-Pass2')
        await changers.change(plugin, target, { ...change, by: { ...change.by, enable: 'Enable-Pass1' } })
        expect(await changers.verify(plugin, target, signInOf('alice', 'Alice-Pass2'))).toBe('valid')
        expect(await changers.verify(plugin, target, signInOf('alice', 'Alice-Pass1'))).toBe('invalid')
        const wrong = changeBy({ login: 'alice', password: 'wrong' }, 'alice', 'Alice-Pass3')
        await expect(changers.change(plugin, target, wrong)).rejects.toMatchObject({
          code: 'refused_sign_in',
        })
      }),
    )
    expect(warnings).toEqual([])
  })
})
