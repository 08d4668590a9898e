/**
 * The vitest project of each test file: the first of these with a pattern for it, else `unit`. A project's
 * name is for `npm test -- --project NAME`.
 *
 * - `memory`: measures the memory of its own process: each file has a new one
 * - `slow`: long and rarely failing: endless random input, floods, bulk
 * - `e2e`: drives whole brokers with real clients and targets
 * - `postgres`: the store on PostgreSQL; it runs files of others once more (ALSO_ON_POSTGRES)
 * - `peers`: a part of the broker with real programs, sockets or threads
 * - `unit`: all others. None starts a program or a thread, or opens a socket (test/unit-guard.ts)
 */
export const ORDER = ['memory', 'slow', 'postgres', 'e2e', 'peers', 'unit'] as const

export type ProjectName = (typeof ORDER)[number]

export const PATTERNS: Readonly<Record<ProjectName, readonly string[]>> = {
  memory: [
    'test/attacks/{api-lists,desktop-bombs,rdp-bombs}.test.ts',
    'test/audit/memory-of-feeds.test.ts',
    'test/fuzz/{rdp,ssh-commands,ssh-recorder}.test.ts',
  ],
  slow: [
    'test/fuzz/**/*.test.ts',
    'test/**/*.fuzz.test.ts',
    'test/api/{csv-large,fuzz}.test.ts',
    'test/attacks/{canaries,credentials,flood-memory,takeover}.test.ts',
    'test/e2e/{backpressure,backup,commands,copying,crash,outage-faults,outages,rekey,search,strict,telnet-targets}.test.ts',
    'test/gate/crowd.test.ts',
    'test/identity/password.test.ts',
    'test/recordings/container/loss.test.ts',
    'test/recordings/vectors.test.ts',
  ],
  e2e: [
    'test/attacks/**/*.test.ts',
    'test/docs/{balancers,operations,pictures,rdp,readme}.test.ts',
    'test/e2e/**/*.test.ts',
  ],
  postgres: [
    'test/backup/{postgres,replaced}.test.ts',
    'test/docs/moving.test.ts',
    'test/e2e/backup-postgres.test.ts',
    'test/store/{copy,postgres}/**/*.test.ts',
  ],
  peers: [
    'test/api/**/*.test.ts',
    'test/accounting/radius.test.ts',
    'test/audit/{snmp,syslog}.test.ts',
    'test/audit/events/catalogue.test.ts',
    'test/backup/backup.test.ts',
    'test/bench/**/*.test.ts',
    'test/bin/**/*.test.ts',
    'test/broker/{metrics,optional-parts,snmp-agent,takeover,tracing}.test.ts',
    'test/config/bind-error.test.ts',
    'test/commands/{doctor,manual,receivers-check,session-workers}.test.ts',
    'test/confine/cage.test.ts',
    'test/contents/follower.test.ts',
    'test/control/control.test.ts',
    'test/csv/{commands,table}.test.ts',
    'test/dns/resolver.test.ts',
    'test/drawing/qr.test.ts',
    'test/gate/{certificates,target-tickets,touched,withdrawn}.test.ts',
    'test/identity/methods/**/*.test.ts',
    'test/kerberos/peers.test.ts',
    'test/notifications/receivers.test.ts',
    'test/identity/{certificate,chain,external,host-certificate,person-keys,public-key,revocation}.test.ts',
    'test/pages/**/*.test.ts',
    'test/packaging/**/*.test.ts',
    'test/peers/**/*.test.ts',
    'test/host/{log-pipe,process-memory,supervisor}.test.ts',
    'test/proxies/**/{clients,programs,servers,viewers}.test.ts',
    'test/proxies/rotation/**/*.test.ts',
    'test/proxies/rdp/connection.test.ts',
    'test/proxies/rdp/back/{back,kerberos,targets}.test.ts',
    'test/proxies/rdp/front/front.test.ts',
    'test/proxies/session/hash/hasher.test.ts',
    'test/proxies/ssh/back/target-sign-in.test.ts',
    'test/proxies/ssh/codec/classify.test.ts',
    'test/proxies/ssh/commands/reader.test.ts',
    'test/proxies/ssh/front/{host-certificates,kex,sign-in}.test.ts',
    'test/proxies/ssh/recorder/{scp,sftp,stream,terminal,whole,whole-files}.test.ts',
    'test/proxies/ssh/terminal/target-leg.test.ts',
    'test/proxies/ssh/transport/transport.test.ts',
    'test/proxies/terminal/client.test.ts',
    'test/proxies/vnc/front.test.ts',
    'test/proxies/vnc/guests/shared-session.test.ts',
    'test/proxies/vnc/relay/{relay,unseen}.test.ts',
    'test/recording-service/{exports,files,indexer,indexing-stored,uploads}.test.ts',
    'test/recordings/commands.test.ts',
    'test/recordings/container/{each-write,held,sealing,writer}.test.ts',
    'test/recordings/decode/graphics/exports.test.ts',
    'test/recordings/decode/graphics/rfb/xvnc.test.ts',
    'test/recordings/show/export/{export,exports}.test.ts',
    'test/recordings/show/replay/{hostile-replay,replay}.test.ts',
    'test/recordings/show/screens/{desktop,screens}.test.ts',
    'test/sockets/**/*.test.ts',
    'test/store/engine/checkpoints.test.ts',
    'test/store/engine/reading.test.ts',
    'test/store/long-search.test.ts',
    'test/threads/thread.test.ts',
    'test/vault/{authority,checkout,vault}.test.ts',
    'test/vault/formats/formats.test.ts',
    'test/workers/{process,workers}.test.ts',
  ],
  unit: ['test/**/*.test.ts'],
}

/** Returns the file patterns of the project for vitest. */
export function filesOf(name: ProjectName): { include: string[]; exclude: string[] } {
  const before = ORDER.slice(0, ORDER.indexOf(name))
  return { include: [...PATTERNS[name]], exclude: before.flatMap((other) => PATTERNS[other]) }
}

/**
 * Files of other projects that run once more, with PostgreSQL in place of SQLite: those in which the store matters.
 * The rest of test/api, test/gate and test/attacks would add minutes, and asks the store nothing else. Left out of
 * test/store are those about SQLite itself.
 */
export const ALSO_ON_POSTGRES = {
  include: [
    'test/api/{checkout,concurrency,events,logins,objects,passwords,provisioning}.test.ts',
    'test/api/scim/provisioning.test.ts',
    'test/attacks/{api-keys,withdrawn}.test.ts',
    'test/backup/{postgres,replaced}.test.ts',
    'test/docs/moving.test.ts',
    'test/e2e/backup-postgres.test.ts',
    'test/gate/{approvals,lock,review}.test.ts',
    'test/rotation/**/*.test.ts',
    'test/store/**/*.test.ts',
  ],
  exclude: [
    'test/store/engine/{dialect,kept-query,reading,reading-spool}.test.ts',
    'test/store/{changes,factory-policies,indexes,long-search,plans,scim-groups,sqlite}.test.ts',
  ],
}
