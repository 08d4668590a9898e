/**
 * The listeners' keys: sealed in the database, so that all brokers on it show the same ones. A key that an
 * administrator lays into the data folder counts, and is stored; without a file the stored one is used; the
 * first start makes it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import {
  HOST_KEYS,
  hostKeyFile,
  newHostKey,
  newVncKey,
  selfSigned,
  type TlsFiles,
  tlsFiles,
  vncKeyFile,
  writeCertificate,
  writePublicHostKey,
} from '../host/front-files.ts'
import { publicLine } from '../host/ssh-keys.ts'
import { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'

export interface FrontKeysOptions {
  dataDir: string
  settings: Pick<SettingRepository, 'get' | 'setOnce' | 'replace'>
  vault: Pick<Vault, 'seal' | 'open'>
  /** Tells the administrator that a key has changed place. */
  say: { info: (message: string) => void; warn: (message: string) => void }
}

export interface HostKey {
  /** OpenSSH's private form. */
  private: string
  /** Type, base64 and perhaps a comment. */
  public: string
}

/** A key in its file, if it is there, as text. */
interface Given {
  file: string
  text: string | undefined
}

export class FrontKeys {
  readonly #options: FrontKeysOptions
  #hostKeys: Promise<HostKey[]> | undefined
  /** When the certificates that listeners show end, in seconds since the epoch, by listener. */
  readonly ends = new Map<string, number>()

  constructor(options: FrontKeysOptions) {
    this.#options = options
  }

  /**
   * Returns the SSH host keys, which stay as they are until the broker ends.
   * @throws Error with the name of a file that is no key; so do the others
   */
  hostKeys(): Promise<HostKey[]> {
    this.#hostKeys ??= this.#readHostKeys()
    return this.#hostKeys
  }

  async #readHostKeys(): Promise<HostKey[]> {
    const { dataDir } = this.#options
    const keys: HostKey[] = []
    for (const { name, type } of HOST_KEYS) {
      const { file, content: text } = hostKeyFile(dataDir, name)
      if (text !== undefined)
        requireUsable(file, 'private key of SSH without a passphrase', () => publicLine(text))
      const key = await this.#kept(name, { file, text }, () => newHostKey(type))
      keys.push({ private: key, public: writePublicHostKey(dataDir, name, key) })
    }
    return keys
  }

  /** Returns the RSA key (PKCS#8, PEM) by which VNC viewers identify the bastion in RA2. */
  async vncKey(): Promise<string> {
    const { file, content: text } = vncKeyFile(this.#options.dataDir)
    if (text !== undefined) requireUsable(file, 'RSA key', () => createPrivateKey(text))
    return await this.#kept('vnc_rsa_key', { file, text }, newVncKey)
  }

  /**
   * Returns the configured certificate and key, or else the bastion's own, self-signed for `hostname`. One of
   * the bastion's own that has expired is made anew. Notes under the name of the listener when it ends.
   */
  async tls(
    listener: string,
    hostname: string,
    configured: { certificate?: string; key?: string },
  ): Promise<TlsFiles> {
    const files = await this.#tls(hostname, configured)
    try {
      this.ends.set(listener, Date.parse(new X509Certificate(files.cert).validTo) / 1000)
    } catch {
      // It fails with its reason where it is used: until then the listener shows the one before.
    }
    return files
  }

  async #tls(hostname: string, configured: { certificate?: string; key?: string }): Promise<TlsFiles> {
    if (configured.certificate !== undefined && configured.key !== undefined) {
      return { cert: readFileSync(configured.certificate, 'utf8'), key: readFileSync(configured.key, 'utf8') }
    }
    const { dataDir } = this.#options
    const { file, content } = tlsFiles(dataDir)
    if (content) requireUsable(file, 'key of the certificate beside it', () => createSecureContext(content))
    const text = content && JSON.stringify(content)
    const make = async () => JSON.stringify(await selfSigned(hostname))
    const isUsable = (stored: string) =>
      Date.now() < Date.parse(new X509Certificate((JSON.parse(stored) as TlsFiles).cert).validTo)
    const kept = JSON.parse(await this.#kept('tls', { file, text }, make, isUsable)) as TlsFiles
    if (!content) writeCertificate(dataDir, kept.cert)
    return kept
  }

  /** Returns the given key, the stored one if it is usable, or a new one: of two brokers that make it the first's. */
  async #kept(
    name: string,
    { file, text }: Given,
    make: () => string | Promise<string>,
    isUsable: (stored: string) => boolean = () => true,
  ): Promise<string> {
    const { settings, say } = this.#options
    const setting = `front.${name}`
    const before = await settings.get(setting)
    const stored = before && this.#open(setting, before)
    if (text === undefined) {
      if (stored !== undefined && isUsable(stored)) return stored
      const made = this.#seal(setting, await make())
      if (!before) return this.#open(setting, await settings.setOnce(setting, made))
      await settings.replace(setting, before, made)
      return this.#open(setting, (await settings.get(setting)) ?? made)
    }
    if (stored === text) return text
    await settings.replace(setting, before, this.#seal(setting, text))
    if (stored === undefined) {
      say.info(
        `the key ${file} is in the database now: brokers without the file use it too, and it may be removed`,
      )
    } else {
      say.warn(
        `the key ${file} has replaced another one in the database: brokers on it show this one from their next start on; to go back, put the old key there`,
      )
    }
    return text
  }

  #seal(setting: string, text: string): Uint8Array {
    const secret = Secret.of(text)
    try {
      return this.#options.vault.seal(placeOf(setting), secret)
    } finally {
      secret.wipe()
    }
  }

  #open(setting: string, sealed: Uint8Array): string {
    const secret = this.#options.vault.open(placeOf(setting), sealed)
    try {
      return secret.revealText()
    } finally {
      secret.wipe()
    }
  }
}

/** Refuses a file that cannot be used before it replaces the stored key. */
function requireUsable(file: string, expected: string, use: () => unknown): void {
  try {
    use()
  } catch (error) {
    throw new Error(
      `${file} is no ${expected}: ${(error as Error).message}; without the file the key in the database is used`,
    )
  }
}

const placeOf = (setting: string) => ({ table: 'settings', id: setting, field: 'value' })
