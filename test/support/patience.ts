/** Timeout for events that certainly happen. It is long, so that a busy machine does not fail a test. */
export const WAIT_TIMEOUT_MS = 120_000;
