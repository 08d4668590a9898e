/** Changes secrets at targets: plugins in processes of their own (processes.ts), or a test's. */
import type {
  ChangeErrorCode,
  ChangeTarget,
  RetiredSecret,
  SecretChange,
  SignIn,
  Verdict,
} from '../contract/change.ts'
import type { ChangePluginName } from '../model/change-plugins.ts'

/** Each call ends after some time, and fails by ChangerError only. */
export interface Changer {
  verify(plugin: ChangePluginName, target: ChangeTarget, as: SignIn): Promise<Verdict>
  change(plugin: ChangePluginName, target: ChangeTarget, change: SecretChange): Promise<void>
  retire(plugin: ChangePluginName, target: ChangeTarget, retired: RetiredSecret): Promise<void>
}

export class ChangerError extends Error {
  override readonly name = 'ChangerError'
  readonly code: ChangeErrorCode

  constructor(code: ChangeErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
