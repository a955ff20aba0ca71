/** Limit for the lifetime of wallet access tokens. */
export const LONGEST_LIFETIME_SECONDS = 86_400;
