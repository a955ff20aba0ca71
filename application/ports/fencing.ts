/** Invalidates all single-use values and tokens that were issued before a restore of the database, for all tenants. */
export type Fencing = {
  /** Each step is idempotent and may be run again from the beginning. */
  readonly steps: readonly FenceStep[];
  /** The highest number of any trust list, also of removed ones, and when the newest version was created. */
  lastListRelease(): Promise<{ readonly number: number; readonly at: Date | undefined }>;
};

export type FenceStep = {
  /** Name for the progress report. */
  readonly name: string;
  /** @returns how many rows it invalidated; `nextCursor` is undefined at the end. */
  run(now: Date, limit: number, cursor?: FenceCursor): Promise<{ done: number; nextCursor: FenceCursor | undefined }>;
};

export type FenceCursor = readonly [tenantId: string, id: string];
