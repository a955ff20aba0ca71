/** Longest wait for something that certainly happens. Long, so that a busy machine does not fail a test. */
export const PATIENCE_MS = 120_000;
