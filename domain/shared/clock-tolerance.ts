/**
 * Tolerance for the clocks of wallets, issuers and providers. It applies to `exp`, `nbf` and `iat`, and to their counterparts in mdocs and
 * CWTs, of tokens and proofs that another party signed. Tokens of this service have no tolerance.
 */
export const CLOCK_TOLERANCE_SECONDS = 60;
export const CLOCK_TOLERANCE_MS = CLOCK_TOLERANCE_SECONDS * 1000;
