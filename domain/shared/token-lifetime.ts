/** Seconds; no tenant can have the access tokens of wallets live longer. */
export const LONGEST_LIFETIME_SECONDS = 86_400;
