/** How a start says that the database was sealed by others; also a supervisor knows it by that, which hears of it as text. */
export const FOREIGN_SECRET = 'MASTER_SECRET is not the one that sealed this database';
