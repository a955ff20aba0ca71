/** Time of the database in milliseconds. */
export const PRESENT_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
