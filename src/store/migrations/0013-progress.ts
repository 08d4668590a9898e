/** Finds the few rows of the audit log that say how far recordings had come, without an index over all the others. */
export const version = 13

export const sql = `
create index audit_progress on audit (time) where code = 'recording.progress';
`
