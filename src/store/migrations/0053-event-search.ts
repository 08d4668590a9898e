/**
 * Indexes of the audit log by time and by code. The second is without the code that has an index of its own (0013), which
 * SQLite would leave for it.
 */
export const version = 53

export const sql = `
create index audit_code on audit (code, sequence) where code <> 'recording.progress';
create index audit_time on audit (time, sequence);
`
