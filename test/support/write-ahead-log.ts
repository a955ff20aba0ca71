const HEADER = 32;
const FRAME_HEADER = 24;

/**
 * Counts the transactions in a write-ahead log since its last reset: the last frame of each names the size of the database
 * (SQLite file format, section 4.1).
 */
export function countTransactions(log: Buffer): number {
  if (log.length < HEADER) return 0;
  const pageSize = log.readUInt32BE(8);
  const salts = log.subarray(16, 24);
  let transactions = 0;
  for (let offset = HEADER; offset + FRAME_HEADER + pageSize <= log.length; offset += FRAME_HEADER + pageSize) {
    if (!log.subarray(offset + 8, offset + 16).equals(salts)) break;
    if (log.readUInt32BE(offset + 4) !== 0) transactions++;
  }
  return transactions;
}
