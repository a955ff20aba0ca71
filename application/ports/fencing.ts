/** Ends for good what counts once and was handed out before, of all tenants. */
export type Fencing = {
  /** Each may be run again, also from its beginning, and then does what is left. */
  readonly steps: readonly FenceStep[];
  /** The highest number of a trust list, also of those that are gone, and when the last one was made. */
  lastListRelease(): Promise<{ readonly number: number; readonly at: Date | undefined }>;
};

export type FenceStep = {
  /** What it ends, for who waits. */
  readonly name: string;
  /** @returns how many it ended; `place` is where to go on, undefined at the end. */
  run(now: Date, limit: number, place?: FencePlace): Promise<{ done: number; place: FencePlace | undefined }>;
};

export type FencePlace = readonly [tenantId: string, id: string];
