import { expect } from 'chai';
import { assertDedicatedSessions, SharedSessionError } from '../../../adapters/persistence/postgres/dedicated-sessions.ts';

type Session = { readonly pid: number; mark: string };
/** Which of the idle sessions a pooler takes: the one that was used last, or the one that was idle for longest. */
type Choice = 'last used' | 'in turn';

/** A pooler in transaction mode: a connection has a session for one statement, or from `begin` to `rollback`. */
function pooler(sessions: number, choice: Choice) {
  const idle = Array.from({ length: sessions }, (_, index): Session => ({ pid: 100 + index, mark: '' }));
  const waiting: ((session: Session) => void)[] = [];
  const take = (): Promise<Session> => {
    const session = choice === 'in turn' ? idle.shift() : idle.pop();
    return session === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(session);
  };
  const giveBack = (session: Session) => {
    const next = waiting.shift();
    if (next === undefined) idle.push(session);
    else next(session);
  };
  const destroyed: boolean[] = [];
  return { destroyed, connect: async () => client(take, giveBack, destroyed) };
}

/** Sessions of PostgreSQL itself: each connection has its own. */
function server() {
  let pid = 100;
  const destroyed: boolean[] = [];
  const connect = async () => {
    const session = { pid: pid++, mark: '' };
    return client(
      () => Promise.resolve(session),
      () => {},
      destroyed,
    );
  };
  return { destroyed, connect };
}

function client(take: () => Promise<Session>, giveBack: (session: Session) => void, destroyed: boolean[]) {
  let held: Session | undefined;
  return {
    async query({ text, values }: { readonly text: string; readonly values: readonly string[] }) {
      const session = held ?? (await take());
      if (text === 'begin') held = session;
      if (text.includes('set_config')) session.mark = String(values[0]);
      const rows = [{ pid: session.pid, mark: session.mark }];
      if (text === 'rollback') held = undefined;
      if (held === undefined) giveBack(session);
      return { rows };
    },
    release: (isDestroyed = false) => {
      destroyed.push(isDestroyed);
    },
  };
}

describe('assertOwnSessions', () => {
  it('accepts connections with a session each, and keeps them', async () => {
    const pool = server();
    await assertDedicatedSessions(pool);
    expect(pool.destroyed).to.deep.equal([false, false]);
  });

  for (const choice of ['last used', 'in turn'] as const)
    for (const sessions of [2, 3, 4, 8])
      it(`rejects and closes connections that share ${sessions} sessions, ${choice}`, async () => {
        const pool = pooler(sessions, choice);
        const rejected = await assertDedicatedSessions(pool).catch((error: unknown) => error);
        expect(rejected).to.be.instanceOf(SharedSessionError);
        expect(pool.destroyed).to.deep.equal([true, true]);
      });
});
