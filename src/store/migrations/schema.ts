/** The tables as Kysely sees them: src/store/migrations holds their SQL. */
import type { Generated, Kysely } from 'kysely'

/** 0 or 1. */
type Flag = number
/** JSON array of strings. */
type List = string

interface NamedRow {
  id: string
  name_key: string
  description: string
}

export interface UserRow {
  id: string
  user_name: string
  name_key: string
  display_name: string
  email: string
  profile: string
  user_auths: List
  secondary_auth: List
  ssh_public_keys: List
  is_disabled: Flag
  is_locked: Flag
  expiration_date: number | null
  ip_source: List
  /** Hash in clear text, from an earlier version, until it is sealed. */
  password_hash: string | null
  sealed_password_hash: Uint8Array | null
  secret_revision: number
  /** Visual form of the name, or null if it is the key. */
  look: string | null
  /** Set for a person of an authentication domain: no local user. */
  auth_domain_id: string | null
  /** The server's id of the person, or empty. */
  stable_id: string
}

export interface NotificationRow extends NamedRow {
  notification_name: string
  type: string
  is_disabled: number
  events: List
  severity: string
  /** JSON object. */
  options: string
  /** Names of the secrets that are set. */
  secrets: List
  secret_revision: number
}

export interface ExternalAuthRow extends NamedRow {
  authentication_name: string
  type: string
  /** JSON array of `{host, port}`. */
  servers: string
  /** Milliseconds. */
  timeout: number
  /** Seconds. */
  offline: number
  /** JSON object. */
  options: string
  /** Names of the secrets that are set. */
  secrets: List
  secret_revision: number
}

export interface OfflineProofRow {
  user_id: string
  external_auth_id: string
  sealed: Uint8Array
  time: number
  secret_revision: number
  tries: number
}

export interface AuthDomainRow extends NamedRow {
  domain_name: string
  type: string
  is_default: Flag
  /** JSON object. */
  attributes: string
  default_language: string
  scim_identifier: string | null
}

export interface ScimUserRow {
  id: string
  auth_domain_id: string
  user_id: string | null
  user_name: string
  name_key: string
  external_id: string | null
  /** The id that the sign-in has shown, or empty. */
  stable_id: string
  is_active: Flag
  /** JSON object. */
  more: string
  created: number
  modified: number
  revision: number
}

export interface ScimGroupRow {
  id: string
  auth_domain_id: string
  display_name: string
  name_key: string
  external_id: string | null
  created: number
  modified: number
  revision: number
}

export interface ScimTokenRow {
  id: string
  auth_domain_id: string
  token_name: string
  name_key: string
  sha256: Uint8Array
  ip_source: List
  expiration_date: number | null
  created_at: number
  last_used: number | null
  last_address: string
}

export interface AuthDomainMappingRow {
  id: string
  auth_domain_id: string
  user_group_id: string
  external_group: string
  group_key: string
  profile: string
}

export interface GroupRow extends NamedRow {
  group_name: string
}

export interface UserGroupRow extends GroupRow {
  second_factor: string
  second_factor_remember: number
  second_factor_keys: Flag
}

export interface TimeframeRow extends NamedRow {
  timeframe_name: string
  is_overtimable: Flag
  time_zone: string
  /** JSON array of periods. */
  periods: string
  is_factory: Flag
}

export interface DeviceRow extends NamedRow {
  device_name: string
  host: string
}

export interface ServiceRow {
  id: string
  device_id: string
  service_name: string
  name_key: string
  protocol: string
  port: number
  subprotocols: List
  /** Empty for the connection policy's. */
  host_key_policy: string
  connection_policy_id: string | null
  /** Empty for the host of the device. */
  kerberos_host: string
}

export interface DomainRow extends NamedRow {
  domain_name: string
  device_id: string | null
  ca_public_key: string | null
  secret_revision: number
  /** Empty if its secrets are not changed. */
  change_plugin: string
  change_enabled: Flag
  change_policy_id: string | null
  /** JSON object. */
  change_parameters: string
  admin_account_id: string | null
  /** JSON object; empty if there is none. */
  kerberos: string
}

export interface AccountRow extends NamedRow {
  account_name: string
  account_login: string
  domain_id: string
  checkout_policy_id: string | null
  secret_revision: number
  auto_change: Flag
  secret_state: string
  secret_changed: number | null
  secret_checked: number | null
  severed_revision: number
}

export interface PasswordChangePolicyRow extends NamedRow {
  policy_name: string
  password_length: number
  lower_chars: number | null
  upper_chars: number | null
  digit_chars: number | null
  special_chars: number | null
  exclude_chars: string
  ssh_key_type: string
  ssh_key_size: number | null
  change_period: string | null
  check_period: string | null
  time_zone: string
  max_age: number | null
  reconcile: Flag
  is_factory: Flag
}

export interface SecretScheduleRow {
  domain_id: string
  kind: string
  period: string
  time_zone: string
  since: number
  next_run: number
}

export interface SecretJobRow {
  id: string
  account_id: string
  type: string
  kind: string
  cause: string
  user_name: string
  is_forced: Flag
  step: string
  due: number
  attempts: number
  lease: number
  created: number
  ended: number | null
  outcome: string
  code: string
  message: string
}

export interface ProfileRow extends NamedRow {
  profile_name: string
  /** JSON object. */
  rights: string
  is_factory: Flag
  second_factor: string
  second_factor_remember: number
  second_factor_keys: Flag
}

export interface CheckoutPolicyRow extends NamedRow {
  policy_name: string
  enable_lock: Flag
  duration: number | null
  extension: number
  max_duration: number
  change_at_checkin: Flag
  is_factory: Flag
}

export interface ConnectionPolicyRow extends NamedRow {
  policy_name: string
  protocol: string
  host_key_policy: string
  ssh_options: string
  login_options: string
  vnc_options: string
  rdp_options: string
  is_factory: Flag
}

export interface IdempotencyRow {
  key: Uint8Array
  request: Uint8Array
  time: number
  status: number
  location: string | null
  answer: string
}

export interface IdempotencyClaimRow {
  key: Uint8Array
  claim: string
  expires: number
}

export interface RememberedFactorRow {
  user_id: string
  address: string
  first_factor: string
  since: number
  secret_revision: number
}

export interface SignInRow {
  id: string
  token_hash: Uint8Array
  user_id: string
  secret_revision: number
  begin_time: number
  last_use: number
  has_factor: Flag
  provider_session_id: string | null
  client_address: string
  method: string
  agent: string
}

export interface SecurityKeyRow {
  id: string
  user_id: string
  key_name: string
  credential_id: Uint8Array
  public_key: Uint8Array
  sign_count: number
  transports: string
  created: number
  last_use: number | null
}

export interface ProviderSessionRow {
  id: string
  user_id: string
  external_auth_id: string
  subject: string
  sid: string
  sealed: Uint8Array | null
  begin_time: number
  checked_time: number
  end_time: number
}

export interface UserCertificateRow {
  id: string
  user_id: string
  /** A decimal number of 64 bits. */
  serial: string
  secret_revision: number
  fingerprint: string
  address: string
  provider_session_id: string | null
  begin_time: number
  end_time: number
}

export interface TicketRow {
  id: string
  user_id: string
  protocol: string
  address: string
  expires: number
  sealed: Uint8Array
  /** JSON object. */
  ticket: string
}

export interface InvitationRow {
  id: string
  session: string
  address: string
  expires: number
  sealed: Uint8Array
}

export interface SecondFactorRow {
  user_id: string
  sealed: Uint8Array
  begun: number
  enrolled: number | null
  last_step: number
  drift: number
  tries: number
  tried: number
  failed: number
}

export interface LockoutRow {
  key: Uint8Array
  failures: number
  since: number
  locked_until: number
  expires: number
  name: Uint8Array | null
}

export interface LockoutAttemptRow {
  id: string
  pair: Uint8Array
  address: Uint8Array
  expires: number
}

export interface AuthorizationRow {
  id: string
  user_group_id: string
  target_group_id: string
  description: string
  authorize_sessions: Flag
  authorize_password_retrieval: Flag
  subprotocols: List
  is_recorded: Flag
  recording_mode: string
  is_critical: Flag
  approval_required: Flag
  active_quorum: number
  inactive_quorum: number
  approval_timeout: number
  single_connection: Flag
  has_comment: Flag
  mandatory_comment: Flag
  has_ticket: Flag
  mandatory_ticket: Flag
  four_eyes: Flag
  second_factor: string
  second_factor_remember: number
  second_factor_keys: Flag
}

export interface ApprovalRow {
  id: string
  kind: string
  state: string
  user_id: string
  user_name: string
  authorization_id: string
  authorization_name: string
  target: string
  /** Empty if none, as those below. */
  service_id: string
  account_id: string
  login: string
  session: string
  detail: string
  /** Sealed. */
  screen: Uint8Array | null
  created: number
  begin_time: number | null
  duration: number
  answer_by: number
  comment: string
  ticket: string
  quorum: number
  is_single: Flag
  uses: number
  connection: string
  api_key: string
  ended_time: number | null
  ended_by: string
  ended_comment: string
}

export interface ApprovalAnswerRow {
  approval_id: string
  user_id: string
  user_name: string
  approved: Flag
  comment: string
  time: number
  api_key: string
}

export interface ApiKeyRow {
  id: string
  key_name: string
  name_key: string
  profile: string
  ip_source: List
  expiration_date: number | null
  created_at: number
  sha256: Uint8Array | null
  is_limited: Flag
  /** JSON object. */
  reach: string | null
}

export interface HostKeyRow {
  id: string
  device_id: string
  service_id: string
  key_type: string
  fingerprint: string
  key: string
  first_seen: number
  state: string
}

export interface CheckoutRow {
  id: string
  account_id: string
  user_id: string
  begin_time: number
  expires: number
  end_time: number | null
  /** Empty if none, as those below. */
  api_key: string
  comment: string
  ticket: string
  forced_by: string
  forced_comment: string
  approval: string
  api_key_id: string
  severed_revision: number
}

export interface SessionRow {
  id: string
  begin_time: number
  end_time: number | null
  user_name: string
  source_ip: string
  protocol: string
  subprotocols: List
  account: string
  domain: string
  device: string
  service: string
  target_host: string
  result: string | null
  reason: string | null
  authorization_name: string
  is_recorded: Flag
  bytes_in: number
  bytes_out: number
  /** JSON object. */
  recording: string | null
  /** Members of it, likewise. */
  recording_state: string | null
  recording_size: number | null
  recording_digest: string | null
  /** JSON object. */
  legal_hold: string | null
  /** Empty if none, as those below. */
  api_key: string
  approval: string
  comment: string
  ticket: string
  /** JSON array of `{externalAuthId, values}`. */
  accounting_classes: string
}

export interface UploadRow {
  session_id: string
  begin_time: number
  state: string
  due: number
  failures: number
  upload: string | null
  size: number | null
  sha256: string | null
  stored: number | null
}

export interface AuditLogRow {
  sequence: number
  time: number
  code: string
  session: string | null
  json: string
  hash: Uint8Array
}

/** One change of rights. */
export interface ChangeRow {
  revision: Generated<number>
  kind: string
  /** Empty if it is about all. */
  object: string
}

export interface Schema {
  settings: { name: string; value: Uint8Array }
  users: UserRow
  user_groups: UserGroupRow
  user_group_members: { group_id: string; user_id: string }
  user_group_timeframes: { group_id: string; timeframe_id: string }
  timeframes: TimeframeRow
  devices: DeviceRow
  services: ServiceRow
  domains: DomainRow
  domain_authorities: { domain_id: string; sealed: Uint8Array }
  accounts: AccountRow
  account_credentials: { account_id: string; position: number; type: string; sealed: Uint8Array }
  target_groups: GroupRow
  target_group_sessions: { target_group_id: string; account_id: string; service_id: string }
  target_group_logins: { target_group_id: string; service_id: string; kind: string }
  target_group_retrievals: { target_group_id: string; account_id: string }
  authorizations: AuthorizationRow
  authorization_approvers: { authorization_id: string; group_id: string }
  approvals: ApprovalRow
  approval_answers: ApprovalAnswerRow
  profiles: ProfileRow
  checkout_policies: CheckoutPolicyRow
  connection_policies: ConnectionPolicyRow
  idempotency_keys: IdempotencyRow
  idempotency_claims: IdempotencyClaimRow
  sign_ins: SignInRow
  security_keys: SecurityKeyRow
  provider_sessions: ProviderSessionRow
  used_messages: { digest: Uint8Array; end_time: number }
  user_certificates: UserCertificateRow
  tickets: TicketRow
  invitations: InvitationRow
  second_factors: SecondFactorRow
  recovery_codes: { user_id: string; digest: Uint8Array }
  remembered_factors: RememberedFactorRow
  lockouts: LockoutRow
  lockout_attempts: LockoutAttemptRow
  api_keys: ApiKeyRow
  api_key_users: { api_key_id: string; user_id: string }
  api_key_groups: { api_key_id: string; group_id: string }
  host_keys: HostKeyRow
  checkouts: CheckoutRow
  external_auths: ExternalAuthRow
  notifications: NotificationRow
  notification_secrets: { notification_id: string; name: string; sealed: Uint8Array }
  notification_user_groups: { notification_id: string; group_id: string }
  notification_target_groups: { notification_id: string; group_id: string }
  offline_proofs: OfflineProofRow
  last_sign_ins: { user_id: string; time: number }
  external_auth_secrets: { external_auth_id: string; name: string; sealed: Uint8Array }
  auth_domains: AuthDomainRow
  auth_domain_auths: { auth_domain_id: string; factor: number; position: number; external_auth_id: string }
  auth_domain_mappings: AuthDomainMappingRow
  person_mappings: { user_id: string; mapping_id: string }
  scim_users: ScimUserRow
  scim_groups: ScimGroupRow
  scim_members: { group_id: string; user_id: string }
  scim_tokens: ScimTokenRow
  password_change_policies: PasswordChangePolicyRow
  secret_jobs: SecretJobRow
  pending_secrets: { account_id: string; type: string; role: string; sealed: Uint8Array }
  secret_schedules: SecretScheduleRow
  sessions: SessionRow
  uploads: UploadRow
  audit: AuditLogRow
  changes: ChangeRow
}

export type Db = Kysely<Schema>

/** Dependencies of every repository. */
export interface StoreContext {
  db: Db
  newId: () => string
}
