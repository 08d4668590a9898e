/** Index of the few rows of the audit log with the noted progress of recordings, without the others. */
export const version = 13

export const sql = `
create index audit_progress on audit (time) where code = 'recording.progress';
`
