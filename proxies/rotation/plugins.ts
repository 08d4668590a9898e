/** The code of each plugin, by the names of src/model/change-plugins.ts. It is loaded when its first job comes. */
import type { ChangePluginName } from '../../src/model/change-plugins.ts'
import type { ChangePlugin } from './plugin.ts'

export const PLUGINS: Readonly<Record<ChangePluginName, () => Promise<ChangePlugin>>> = {
  Unix: async () => (await import('./unix.ts')).unix,
  LDAP: async () => (await import('./ldap.ts')).ldap,
  ActiveDirectory: async () => (await import('./active-directory.ts')).activeDirectory,
  MySQL: async () => (await import('./mysql.ts')).mysql,
  PostgreSQL: async () => (await import('./postgresql.ts')).postgresql,
  Cisco: async () => (await import('./cisco.ts')).cisco,
}
