import { expect } from 'chai';
import type { EventBus } from '../../../application/ports/event-bus.ts';
import type { ExpiryPlace, Maintenance, SessionKey } from '../../../application/ports/maintenance.ts';
import type { Store } from '../../../application/ports/store.ts';
import { ExpireSessions } from '../../../application/sessions/expire-sessions.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START = new Date('2026-11-28T08:00:00Z');
const startPlus = (milliseconds: number) => new Date(START.getTime() + milliseconds);

describe('The job that expires sessions', () => {
  type Visit = { readonly from: number | undefined; readonly until: number };
  let visits: Visit[];
  let published: unknown[];
  let pages: { expired?: SessionKey[]; overdue?: SessionKey[]; next?: ExpiryPlace }[];
  let job: ExpireSessions;
  let isAway: boolean;

  beforeEach(() => {
    visits = [];
    published = [];
    pages = [];
    isAway = false;
    const maintenance: Pick<Maintenance, 'expireSessions'> = {
      async expireSessions(_now, _limit, range) {
        if (isAway) throw new Error('the database is away');
        visits.push({ from: range?.after?.[0], until: range?.until?.getTime() ?? Number.NaN });
        const { expired = [], overdue = [], next } = pages.shift() ?? {};
        return { expired, overdue, next };
      },
    };
    job = new ExpireSessions({
      store: { maintenance } as unknown as Store,
      eventBus: { publish: (event: unknown) => published.push(event) } as unknown as EventBus,
    });
  });

  /** Runs until nothing is left. @returns the number of batches. */
  const run = async (now: Date): Promise<number> => {
    const step = job.begin(now, 500);
    for (let batches = 1; ; batches++) if (!(await step()).mayBeMore) return batches;
  };

  it('visits all sessions that expired until now in the first run of a process', async () => {
    await run(START);
    expect(visits).to.deep.equal([{ from: undefined, until: START.getTime() }]);
  });

  it('visits what expired since the last run less two minutes, and once more an hour later', async () => {
    await run(START);
    visits = [];
    await run(startPlus(30_000));
    const from = START.getTime() - 2 * MINUTE_MS;
    expect(visits).to.deep.equal([
      { from, until: START.getTime() + 30_000 },
      { from: from - HOUR_MS, until: START.getTime() + 30_000 - HOUR_MS },
    ]);
  });

  it('leaves no gap between runs, so that each expiry is visited twice', async () => {
    await run(START);
    visits = [];
    for (let at = 1; at <= 4; at++) await run(startPlus(at * 30_000));
    for (const range of [0, 1]) {
      const ofRange = visits.filter((_, index) => index % 2 === range);
      for (const [index, { from }] of ofRange.entries())
        if (index > 0) expect(from).to.be.at.most(ofRange[index - 1]?.until ?? 0);
    }
  });

  it('visits all sessions again after a day', async () => {
    await run(START);
    await run(startPlus(23 * HOUR_MS));
    visits = [];
    await run(startPlus(24 * HOUR_MS));
    expect(visits).to.deep.equal([{ from: undefined, until: startPlus(24 * HOUR_MS).getTime() }]);
  });

  it('visits all sessions when the clock of the database went back', async () => {
    await run(START);
    visits = [];
    await run(startPlus(-HOUR_MS));
    expect(visits).to.deep.equal([{ from: undefined, until: startPlus(-HOUR_MS).getTime() }]);
  });

  it('goes on where a run had to stop, and counts that walk as complete only at its end', async () => {
    const place: ExpiryPlace = [START.getTime() - HOUR_MS, 'acme', 'session'];
    pages = [{ next: place }, {}];
    expect((await job.begin(START, 500)()).mayBeMore).to.equal(true);
    await run(startPlus(30_000));
    expect(visits).to.deep.equal([
      { from: undefined, until: START.getTime() },
      { from: place[0], until: START.getTime() },
    ]);
    visits = [];
    await run(startPlus(60_000));
    expect(visits[0]?.from).to.equal(START.getTime() - 2 * MINUTE_MS);
  });

  it('visits a batch again whose statement failed', async () => {
    await run(START);
    visits = [];
    const step = job.begin(startPlus(30_000), 500);
    isAway = true;
    expect(await step().catch((error: Error) => error.message)).to.equal('the database is away');
    isAway = false;
    await run(startPlus(60_000));
    expect(visits[0]).to.deep.equal({
      from: START.getTime() - 2 * MINUTE_MS,
      until: START.getTime() + 30_000,
    });
  });

  it('tells streams of each session that it expired, and returns those with a response', async () => {
    const expired = { tenantId: 'acme' as TenantId, id: 'gone' as SessionId };
    const overdue = { tenantId: 'acme' as TenantId, id: 'answered' as SessionId };
    pages = [{ expired: [expired], overdue: [overdue] }];
    const step = await job.begin(START, 500)();
    expect(step).to.deep.equal({ expired: 1, overdue: [overdue], mayBeMore: false });
    expect(published).to.deep.equal([{ type: 'session', tenantId: 'acme', sessionId: 'gone' }]);
  });
});
