/**
 * Seconds by which the clock of a wallet, an issuer or a provider may differ from ours. It applies to `exp`, `nbf` and `iat`, and
 * to their counterparts in mdocs and CWTs, of every token and proof that another party signed. Tokens of this service have none.
 */
export const CLOCK_TOLERANCE_SECONDS = 60;
export const CLOCK_TOLERANCE_MS = CLOCK_TOLERANCE_SECONDS * 1000;
