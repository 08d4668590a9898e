/** Screens of held commands, which are sealed: lines alone stay in `detail`. */
import { postgresText } from './postgres-text.ts'

export const version = 32

export const sql = `
alter table approvals add column screen blob;
update approvals set detail = '' where state = 'pending';
`

export const postgres = postgresText(sql)
