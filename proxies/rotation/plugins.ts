/** The code of each plugin, by the names of src/model/change-plugins.ts. It is loaded when its first job comes. */
import type { ChangePluginName } from '../../src/model/change-plugins.ts'
import type { ChangePlugin } from './plugin.ts'

export const PLUGINS: Readonly<Record<ChangePluginName, () => Promise<ChangePlugin>>> = {
  Unix: async () => (await import('./unix.ts')).unix,
}
