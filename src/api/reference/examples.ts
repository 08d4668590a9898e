/**
 * A valid body for each route that creates something. In this order and at these paths they fit an empty
 * broker, as a test checks. The reference shows them, on its page and in the document.
 */

export interface BodyExample {
  /** Route in the notation of the table of routes. */
  route: string
  /** The route's path, with names in place of its parameters. */
  path: string
  body: object
}

const at = (route: string, path: string, body: object): BodyExample => ({
  route: `POST ${route}`,
  path,
  body,
})
const plain = (path: string, body: object): BodyExample => at(path, path, body)

const PASSWORD = 'Tr0ub4dor&3 staple'

export const BODY_EXAMPLES: readonly BodyExample[] = [
  plain('/profiles', {
    profile_name: 'provisioner',
    description: 'scripts that keep the estate as it is described elsewhere',
    rights: { users: 'modify', user_groups: 'modify', devices: 'modify', accounts: 'modify' },
  }),
  plain('/passwordchangepolicies', {
    password_change_policy_name: 'nightly',
    password_length: 32,
    change_period: '30 2 * * *',
    time_zone: 'Europe/Paris',
  }),
  plain('/checkoutpolicies', { policy_name: 'one-at-a-time', enable_lock: true, max_duration: 1800 }),
  plain('/connectionpolicies', { policy_name: 'strict-ssh', protocol: 'SSH', host_key_policy: 'pinned' }),
  plain('/timeframes', {
    timeframe_name: 'office-hours',
    time_zone: 'Europe/Paris',
    periods: [
      {
        start_time: '08:00',
        end_time: '18:00',
        week_days: ['monday', 'tuesday', 'wednesday', 'thursday', 'friday'],
      },
    ],
  }),
  plain('/usergroups', {
    group_name: 'linux-admins',
    description: 'on call for Linux',
    timeframes: ['office-hours'],
  }),
  plain('/externalauths', {
    authentication_name: 'directory',
    type: 'LDAP',
    host: 'ldap1.example.org',
    backup_servers: [{ host: 'ldap2.example.org' }],
    ldap: { bind_dn: 'cn=sallyport,dc=example,dc=org', base_dn: 'dc=example,dc=org', nested_groups: true },
    bind_password: PASSWORD,
  }),
  plain('/notifications', {
    notification_name: 'soc',
    type: 'WEBHOOK',
    events: ['auth.locked', 'hostkey.changed', 'session.*'],
    severity: 'warning',
    user_groups: ['linux-admins'],
    webhook: { url: 'https://soc.example.org/events' },
    signing_secret: PASSWORD,
  }),
  plain('/authdomains', {
    domain_name: 'example',
    type: 'LDAP',
    is_default: true,
    external_auths: ['directory'],
  }),
  at('/authdomains/:domain/scimtokens', '/authdomains/example/scimtokens', {
    token_name: 'entra-2031',
    ip_source: ['192.0.2.0/24'],
  }),
  at('/authdomains/:domain/mappings', '/authdomains/example/mappings', {
    user_group: 'linux-admins',
    external_group: 'cn=admins,ou=groups,dc=example,dc=org',
  }),
  plain('/users', {
    user_name: 'ops1',
    display_name: 'Olga Petrov',
    email: 'ops1@example.com',
    profile: 'operator',
    password: PASSWORD,
    groups: ['linux-admins'],
  }),
  plain('/session', { user: 'ops1', password: PASSWORD }),
  plain('/devices', { device_name: 'srv1', host: '192.0.2.10', description: 'web, rack 7' }),
  at('/devices/:device/services', '/devices/srv1/services', {
    service_name: 'ssh',
    protocol: 'SSH',
    port: 22,
    connection_policy: 'strict-ssh',
  }),
  at('/devices/:device/localdomains', '/devices/srv1/localdomains', { domain_name: 'db' }),
  plain('/domains', { domain_name: 'corp.example', description: 'accounts of the directory' }),
  plain('/accounts', {
    account_name: 'root',
    device: 'srv1',
    checkout_policy: 'one-at-a-time',
    credentials: [{ type: 'password', password: PASSWORD }],
  }),
  at('/devices/:device/accounts', '/devices/srv1/accounts', { account_name: 'deploy' }),
  at('/devices/:device/localdomains/:domain/accounts', '/devices/srv1/localdomains/db/accounts', {
    account_name: 'postgres',
    description: 'owner of the cluster',
  }),
  at('/domains/:domain/accounts', '/domains/corp.example/accounts', {
    account_name: 'svc-backup',
    account_login: 'svc-backup@corp.example',
  }),
  plain('/targetgroups', {
    group_name: 'linux-servers',
    session: { accounts: ['root@local:srv1:ssh', 'svc-backup@corp.example:srv1:ssh'] },
    password_retrieval: { accounts: ['postgres@db@srv1'] },
  }),
  plain('/authorizations', {
    user_group: 'linux-admins',
    target_group: 'linux-servers',
    authorize_sessions: true,
    subprotocols: ['SSH_SHELL', 'SFTP_SESSION'],
  }),
  plain('/apikeys', { key_name: 'ci', profile: 'provisioner', ip_source: ['192.0.2.0/24'] }),
]

/** Returns the example for a route, `POST /devices/:device/services`. */
export function bodyExample(route: string): BodyExample | undefined {
  return BODY_EXAMPLES.find((one) => one.route === route)
}
