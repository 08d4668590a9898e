/**
 * Opens a session: checks whether it is allowed now and collects all that it needs. A denial is audited with
 * its reason.
 */
import { join } from 'node:path'
import { ulid } from 'ulid'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import { canonicalName, resolveTarget, type Target } from '../access/targets.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { OpenAnswer, OpenRequest, SessionLimits } from '../contract/gate.ts'
import { type Grounds, keyOf } from '../identity/basis.ts'
import { type CertificateLimits, limitsOf } from '../identity/certificate-options.ts'
import { formatTarget, parseTargetName } from '../model/login.ts'
import { FACTORY_CONNECTION_POLICIES, type User } from '../model/objects.ts'
import type { Right } from '../model/rights.ts'
import { Secret } from '../model/secret.ts'
import { usableTypes } from '../model/vnc-options.ts'
import type { RecordingService } from '../recording-service/service.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { credentialsFor, isCredentialOptional, methodsFor } from './credentials.ts'
import { knownTypes } from './host-keys.ts'
import { claimAccount } from './lock.ts'
import { logonFor, logsInItself } from './logons.ts'
import {
  type RunningSession,
  type RunningSessions,
  recordOf,
  sessionFields,
  targetFields,
} from './running.ts'
import { whoFields } from './sign-ins.ts'
import type { SignedIn } from './signed-in.ts'

/**
 * Limits of running sessions per user and in all: a connection costs memory, files and a place at the target.
 */
export const MAX_SESSIONS_PER_USER = 500
export const MAX_SESSIONS = 10_000

const NO_SECURITY_TYPE =
  'of the security_types in the connection policy none is left that goes with the stored credential and with the host keys that are pinned'

export interface OpeningOptions {
  store: Store
  vault: Vault
  audit: Audit
  recordings: RecordingService
  running: RunningSessions
  grounds: () => Grounds
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Target that the user may open, and the limits of the user's certificate. */
interface Allowed {
  found: Target
  limits: CertificateLimits | undefined
}

/** Audits the reason. Returns the answer with the message, which is for the user. */
type Deny = (reason: string, message?: string) => Promise<OpenAnswer>

export class Opening {
  readonly #options: OpeningOptions
  #draining: string | undefined

  constructor(options: OpeningOptions) {
    this.#options = options
  }

  /** Refuses new sessions from now on; `reason` is shown to users. */
  drain(reason: string): void {
    this.#draining = reason
  }

  async open(signedIn: SignedIn, request: OpenRequest): Promise<OpenAnswer> {
    const { login, source, basis } = signedIn
    const key = keyOf(basis)
    const { target: chosen } = request
    const wanted = chosen === undefined || signedIn.isBound ? login.target : parseTargetName(chosen)
    if (!wanted) return { result: 'denied', message: 'no target was named' }
    let where: EventFields = Object.fromEntries(Object.entries(wanted).filter(([, name]) => name !== ''))
    const deny: Deny = async (reason, message = reason) => {
      await this.#options.audit.record('session.denied', {
        ...whoFields(signedIn),
        protocol: request.protocol,
        ...where,
        reason,
      })
      return { result: 'denied', message }
    }
    if (this.#draining !== undefined) return await deny(this.#draining)
    // Rights may have been removed since the sign-in.
    const grounds = this.#options.grounds()
    const flaw = await grounds.flawOf(basis, source.address)
    const person = await grounds.user(signedIn.userId)
    if (!person || flaw !== undefined) {
      return await deny(
        flaw ?? 'the user was removed',
        `the target ${formatTarget(wanted)} does not exist, or you may not open it`,
      )
    }
    const rows = await this.#options.store.access.sessionTargets(signedIn.userId, { device: wanted.device })
    const resolution = resolveTarget(rows, wanted, request.protocol)
    if (resolution.result !== 'found') return await deny(resolution.message)
    where = targetFields(resolution.target)
    if (resolution.target.rights.length === 0) {
      return await deny(
        `the service ${resolution.target.serviceName} allows nothing that you have a right to`,
      )
    }
    const limits = key?.certificate && limitsOf(key.certificate)
    const target = limits ? without(resolution.target, limits.withheld) : resolution.target
    if (target.rights.length === 0) {
      return await deny('your certificate withholds all that you have a right to there')
    }
    return await this.#begin(person, signedIn, request, { found: target, limits }, deny)
  }

  async #begin(
    person: User,
    signedIn: SignedIn,
    request: OpenRequest,
    allowed: Allowed,
    deny: Deny,
  ): Promise<OpenAnswer> {
    const { store, running, now } = this.#options
    if (running.count >= MAX_SESSIONS) return await deny('too many sessions are open, try again later')
    if (running.ofUser(person.id) >= MAX_SESSIONS_PER_USER) {
      return await deny(`you have ${MAX_SESSIONS_PER_USER} sessions open: close one first`)
    }
    const { accountId } = allowed.found
    if (accountId === undefined) return await this.#prepare(person, signedIn, request, allowed, deny)
    const release = await claimAccount(store, running, accountId, person.id, now())
    if (!release) {
      return await deny(
        'somebody else is using this account, and its checkout policy locks it: try again later',
      )
    }
    try {
      return await this.#prepare(person, signedIn, request, allowed, deny)
    } finally {
      release()
    }
  }

  async #prepare(
    person: User,
    { source, basis, kept }: SignedIn,
    request: OpenRequest,
    { found, limits }: Allowed,
    deny: Deny,
  ): Promise<OpenAnswer> {
    const { store, vault, audit, recordings, running, now } = this.#options
    const { accountId } = found
    const policy = await store.connectionPolicies.find(
      found.connectionPolicyId ?? FACTORY_CONNECTION_POLICIES[found.protocol],
    )
    if (!policy) return await deny('the connection policy of the service is gone')
    const methods = methodsFor(found, policy.ssh.authenticationMethods)
    if (methods.length === 0) {
      return await deny('the connection policy of the service names no method to sign in at this target')
    }
    const logon =
      accountId === undefined && !logsInItself(found)
        ? logonFor(found, kept, request.logon, request.target === undefined)
        : undefined
    if (logon && 'ask' in logon) return { result: 'logon_needed', question: logon.ask }
    const target = logon ? { ...found, accountName: logon.login, accountLogin: logon.login } : found
    const session: RunningSession = {
      id: ulid(),
      userId: person.id,
      user: person.userName,
      source,
      target,
      begin: now(),
      isRecorded: target.isRecorded,
      tellsWatched: policy.ssh.tellWatched,
      basis,
      hostCaKeys: policy.ssh.hostCaKeys,
    }
    const signIn = await credentialsFor(vault, session, methods, {
      isOptional: isCredentialOptional(found.protocol, methods, policy.vnc),
      ...(logon && { logon }),
    })
    if (signIn.result === 'refused') return await deny(signIn.message)
    const hostKeyTypes = await knownTypes(store.hostKeys, target)
    const securityTypes = usableTypes(policy.vnc.securityTypes, {
      hasCredential: signIn.credentials.length > 0,
      hasToShowKey: target.hostKeyPolicy === 'pinned',
      keyTypes: hostKeyTypes,
    })
    if (target.protocol === 'VNC' && securityTypes.length === 0) return await deny(NO_SECURITY_TYPE)
    const canonical = canonicalName(target)
    let recording: RecordingGrant | undefined
    if (target.isRecorded) {
      try {
        recording = await recordings.prepare(session.id, session.begin, {
          user: session.user,
          client: source.address,
          target: canonical,
          host: target.host,
          protocol: target.protocol,
          ...(target.isStrict && { recording_mode: 'strict' }),
        })
        session.recording = {
          path: join(recording.directory, FILE_NAME),
          key: Secret.of(recording.key),
        }
      } catch (error) {
        const reason = `the recording cannot begin: ${error instanceof Error ? error.message : String(error)}`
        await audit.record('recording.failed', { ...sessionFields(session), reason })
        return await deny(
          reason,
          'the session cannot be recorded, so it is not opened: tell an administrator',
        )
      }
    }
    const authorization = target.authorizationNames.join(', ')
    const { credentials, serial } = signIn
    const opening = audit.record('session.open', {
      ...sessionFields(session),
      authorization,
      ...(target.kind !== 'account' && { method: target.kind }),
      ...(serial !== undefined && { object_type: 'certificate', object: String(serial) }),
    })
    await opening.catch((error: unknown) => {
      recordings.onClosed(session.id)
      throw error
    })
    // Added before it is listed, so that it can be watched and ended as soon as it is visible.
    running.add(session)
    try {
      await store.sessions.create(recordOf(session, authorization))
    } catch (error) {
      running.remove(session.id)
      recordings.onClosed(session.id)
      await audit.record('session.close', {
        ...sessionFields(session),
        result: 'failure',
        reason: 'the session could not be stored',
      })
      throw error
    }
    return {
      result: 'opened',
      session: {
        id: session.id,
        user: session.user,
        target: {
          canonical,
          protocol: target.protocol,
          host: target.host,
          port: target.port,
          login: target.accountLogin,
          device: target.deviceName,
          service: target.serviceName,
        },
        credentials,
        ...(accountId === undefined && logsInItself(found) && { isPersonal: true as const }),
        ...(logon && { question: logon.question }),
        hostKeyTypes,
        wantsHostCertificate: target.hostKeyPolicy === 'ca',
        rights: target.rights,
        ...(limits && { limits: sessionLimits(limits) }),
        options: { ...policy.ssh, authenticationMethods: methods },
        loginOptions: policy.login,
        vncOptions: { ...policy.vnc, securityTypes },
        rdpOptions: policy.rdp,
        ...(recording && { recording }),
        ...(target.isStrict && { isStrict: true as const }),
      },
    }
  }
}

function without(target: Target, withheld: readonly Right[]): Target {
  return { ...target, rights: target.rights.filter((right) => !withheld.includes(right)) }
}

function sessionLimits({ forcedCommand, noTerminal }: CertificateLimits): SessionLimits {
  return { noTerminal, ...(forcedCommand && { forcedCommand: Uint8Array.from(forcedCommand) }) }
}
