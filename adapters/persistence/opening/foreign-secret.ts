/** Message for a database that was sealed with another secret. The supervisor recognizes a failed start by this text. */
export const FOREIGN_SECRET = 'MASTER_SECRET is not the one that sealed this database';
