/** The client's packets as Wireshark reads them, and Debian's Perl client against the server of the tests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import type { AccountingRecord } from '../../../src/accounting/record.ts'
import { TacacsSender } from '../../../src/accounting/tacacs.ts'
import { TacacsMethod, type TacacsSettings } from '../../../src/identity/methods/tacacs/method.ts'
import type { TacacsOptions } from '../../../src/model/external-auths.ts'
import { Secret } from '../../../src/model/secret.ts'
import { run } from '../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../peers/program.ts'
import { TacacsPeer } from '../../peers/tacacs.ts'

const KEY = 'lab-tackey'
const folder = mkdtempSync(join(tmpdir(), 'sallyport-tacacs-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
})

const settingsOf = (port: number, options: Partial<TacacsOptions>): TacacsSettings => ({
  auth: {
    id: '1',
    authenticationName: 'netops',
    description: '',
    secretNames: ['shared_secret'],
    secretRevision: 1,
    type: 'TACACS',
    servers: [{ host: '127.0.0.1', port }],
    timeoutMs: 5000,
    options: {
      authentication: 'ascii',
      singleConnect: true,
      authorization: true,
      accounting: true,
      commandAccounting: true,
      allowPublicNetworks: false,
      ...options,
    },
  },
  attributes: {},
  secrets: { sharedSecret: Secret.of(KEY) },
  now: Date.now,
  onFailure: (_server, error) => expect.unreachable(error.message),
})

describeWithPeers('tshark', ['tshark', 'text2pcap'], () => {
  /** Returns the lines of its decoding. */
  async function decoded({ wire }: TacacsPeer): Promise<string[]> {
    const dump = wire.map(
      ({ isRequest, bytes }) =>
        `${isRequest ? 'I' : 'O'}\n000000 ${bytes.toString('hex').replaceAll(/../g, '$& ')}\n`,
    )
    const [text, capture] = [join(folder, 'packets.txt'), join(folder, 'packets.pcap')]
    writeFileSync(text, dump.join('\n'))
    const made = await run(findProgram('text2pcap')!, ['-q', '-D', '-T', '40000,49', text, capture])
    expect(made.code, made.stderr).toBe(0)
    const read = await run(findProgram('tshark')!, [
      ...['-r', capture, '-o', `tacplus.key:${KEY}`, '-O', 'tacplus'],
    ])
    return read.stdout.split('\n').map((line) => line.trim())
  }

  test('reads sign-ins by both ways, and an authorization', async () => {
    const peer = await TacacsPeer.start({ singleConnect: true, args: { alice: ['priv-lvl=15'] } })
    open.push(peer)
    const attempt = { userName: 'alice', source: '192.0.2.7', attempt: 'c1' }
    for (const authentication of ['ascii', 'pap'] as const) {
      const method = new TacacsMethod(settingsOf(peer.port, { authentication }))
      open.push(method)
      const answer = await method.prove(attempt, Secret.of('Lab-Pass1'), new AbortController().signal)
      expect(answer.result).toBe('accepted')
    }
    const lines = await decoded(peer)
    expect(lines).toEqual(
      expect.arrayContaining([
        'Action: Inbound Login (1)',
        'Authentication type: ASCII (1)',
        'Authentication type: PAP (2)',
        'Service: Login (1)',
        'User: alice',
        'Port: sallyport',
        'Remote Address: 192.0.2.7',
        'Password: Lab-Pass1',
        'Auth Method: TACACSPLUS (0x06)',
        'Arg[0] value: service=shell',
        'Arg[1] value: cmd=',
        'Status: Authentication Passed (0x01)',
      ]),
    )
    expect(lines.filter((line) => /malformed/i.test(line))).toEqual([])
  })

  test('reads accounting of a session and its commands', async () => {
    const peer = await TacacsPeer.start({ singleConnect: true })
    const sender = new TacacsSender(settingsOf(peer.port, {}))
    open.push(sender, peer)
    const about = {
      session: 'abc',
      user: 'alice@corp',
      source: '2001:db8::7',
      protocol: 'SSH',
      target: 'root@local@srv1:ssh',
      time: 1_700_000_061_500,
    }
    const records: AccountingRecord[] = [
      { ...about, kind: 'start' },
      { ...about, kind: 'interim', elapsed: 30_000 },
      { ...about, kind: 'command', command: `echo ${'é'.repeat(200)}`, result: '' },
      {
        ...about,
        kind: 'stop',
        elapsed: 61_500,
        bytesIn: 5,
        bytesOut: 7,
        result: 'success',
        reason: 'ü'.repeat(300),
      },
    ]
    for (const record of records) await sender.send(record, new AbortController().signal)
    const lines = await decoded(peer)
    const values = lines.flatMap((line) => /^Arg\[\d+\] value: (.*)$/.exec(line)?.[1] ?? [])
    expect(lines).toEqual(
      expect.arrayContaining(['Flags: 0x02', 'Flags: 0x08', 'Flags: 0x04', 'Remote Address: 2001:db8::7']),
    )
    expect(values).toEqual(
      expect.arrayContaining([
        'task_id=abc',
        'target=root@local@srv1:ssh',
        'start_time=1700000061',
        'start_time=1700000000',
        'elapsed_time=30',
        'stop_time=1700000061',
        'bytes_in=5',
        'bytes=12',
      ]),
    )
    // Long values go in pieces, or cut, and never through a character.
    expect(peer.accounted[2]?.args.slice(-2)).toEqual([
      `cmd=echo ${'é'.repeat(121)}`,
      `cmd-arg=${'é'.repeat(79)}`,
    ])
    expect(peer.accounted[3]?.args.at(-1)).toBe(`reason=${'ü'.repeat(124)}`)
    expect(peer.connections).toBe(1)
    expect(lines.filter((line) => /malformed/i.test(line))).toEqual([])
  })
})

describeWithPeers("Debian's Perl client", ['authen-tacacsplus'], () => {
  test.each(['ASCII', 'PAP'])('finds the server of the tests to speak TACACS+ by %s', async (type) => {
    const peer = await TacacsPeer.start()
    open.push(peer)
    const script = `
      my ($port, $key, @passwords) = @ARGV;
      for my $password (@passwords) {
        my $server = new Authen::TacacsPlus(Host => '127.0.0.1', Port => $port, Key => $key, Timeout => 5);
        print $server->authen('alice', $password, Authen::TacacsPlus::TAC_PLUS_AUTHEN_TYPE_${type}()) ? "pass\\n" : "fail\\n";
        $server->close();
      }`
    const args = ['-MAuthen::TacacsPlus', '-e', script, String(peer.port), KEY, 'Lab-Pass1', 'wrong']
    const { stdout, stderr } = await run('/usr/bin/perl', args)
    expect(stdout, stderr).toBe('pass\nfail\n')
  })
})
