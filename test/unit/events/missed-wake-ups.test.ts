import { expect } from 'chai';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { FetchedLists, keyOf } from '../../../application/trust-lists/fetched-lists.ts';
import { SetClock } from '../verification-flow/kit.ts';

type Copy = { readonly uri: string; readonly fetchedAt: Date; readonly text: string };

const KINDS = ['trust-lists', 'status-lists'] as const;

describe('Wake-ups that may have been lost', () => {
  it('cost all tenants their copies of lists, of every kind, and what is being fetched', async () => {
    const clock = new SetClock();
    const eventBus = new InProcessEventBus();
    const lists = KINDS.map(
      (kind) =>
        new FetchedLists<Copy>({
          clock,
          eventBus,
          kind,
          sizeOf: () => 100,
          freshUntil: () => clock.now(),
          isRefusal: (error): error is Error => error instanceof Error,
          failureMs: 60_000,
        }),
    );
    const copy = (text: string): Copy => ({ uri: 'https://x.example', fetchedAt: clock.now(), text });
    for (const each of lists) {
      for (const tenant of ['acme', 'other'])
        await each.fetch(keyOf(tenant, 'one'), async () => copy('before'));
      await each.fetch(keyOf('acme', 'away'), () => Promise.reject(new Error('away'))).catch(() => {});
    }
    const [first] = lists;
    let arrive = (_copy: Copy) => {};
    const underWay = first?.fetch(keyOf('acme', 'slow'), () => new Promise((resolve) => (arrive = resolve)));
    eventBus.publish({ type: 'missed' });
    arrive(copy('before'));
    await underWay;
    for (const each of lists) {
      for (const tenant of ['acme', 'other']) {
        expect(each.peek(keyOf(tenant, 'one'))).to.equal(undefined);
        expect(each.stats(tenant).size).to.equal(0);
      }
      const again = await each.fetch(keyOf('acme', 'away'), async () => copy('after'));
      expect(again.text, 'a failure is forgotten, too').to.equal('after');
    }
    expect(first?.peek(keyOf('acme', 'slow')), 'what was asked for before').to.equal(undefined);
  });
});
