/** Longest wait for something that certainly happens. Long, so that a busy machine does not fail a test. */
export const WAIT_TIMEOUT_MS = 120_000;
