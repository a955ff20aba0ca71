import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { FinishDeliveries } from '../../application/sessions/finish-deliveries.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { type FaultMode, Faults } from '../support/faults.ts';
import { bindToRequest, decode, encryptResponse, type HeldCredential, responseForm, Shop } from '../support/present.ts';
import { type Answer, startTestService } from '../support/test-service.ts';

/** One way through a presentation that is broken off at every place. */
type Course = {
  /** Undefined while the step is to make it. */
  readonly session?: string;
  readonly step: () => Promise<Answer>;
  /** Statuses of the step when nothing fails. */
  readonly done: number;
  /** Whether the step ends the session, so that it can be done with success once at most. */
  readonly isAnswer: boolean;
  /** What the session comes to in the end. */
  readonly end?: 'completed' | 'failed';
};

/** More calls than any step makes. */
const MAX_CALLS = 40;
const SHOP = 'https://shop.example';

for (const kind of databases()) {
  describe(`failed call during a presentation, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let shop: Shop;
    let held: HeldCredential;
    let faults: Faults;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const { url } = database;
      shop = await Shop.open({}, () => startTestService({ DATABASE_URL: url }));
      const webhook = { url: `${shop.backend.url}/presented` };
      await shop.configure({ id: 'told', webhook, redirectUri: 'https://shop.example/done' });
      await shop.configure({ id: 'page', expectedOrigins: [SHOP], webhook });
      held = await shop.issue('card-status');
      faults = new Faults(shop.service.service);
    });
    after(async () => {
      await shop?.close();
      await database?.drop();
    });

    const steps = () => stepsOf(shop.service.service.container.get(Store), 'shop' as TenantId);
    const offer = (requestId: string, response_type = 'uri') => shop.call('POST', '/verifier/offer', { response_type, requestId });
    const ofPage = async () => {
      const { body } = await offer('page', 'dc-api');
      return { ...body, payload: decode(body.dcApi.requests[0].data.request).payload };
    };
    const answering = async (id: string, names: string[]) => {
      const asked = await shop.requestPresentation(id);
      const form = await responseForm(asked, { card: [bindToRequest(asked, held, names)] });
      return { session: asked.session, step: () => shop.postResponse(asked, form), done: 200, isAnswer: true } as const;
    };

    const courses: Readonly<Record<string, () => Promise<Course>>> = {
      'making a request': async () => ({ step: () => offer('told'), done: 201, isAnswer: false }),
      'making a request of a page': async () => ({ step: () => offer('page', 'dc-api'), done: 201, isAnswer: false }),
      'fetching a request': async () => {
        const { body } = await offer('check');
        const url = new URL(body.uri).searchParams.get('request_uri') ?? '';
        const step = () => shop.service.call('GET', url);
        return { session: body.session, step, done: 200, isAnswer: false };
      },
      'fetching a request by post': async () => {
        const { body } = await offer('check');
        const url = new URL(body.uri).searchParams.get('request_uri') ?? '';
        const step = () => shop.service.call('POST', url, { form: { wallet_nonce: 'n' } });
        return { session: body.session, step, done: 200, isAnswer: false };
      },
      'fetching a request of a page': async () => {
        const { uri, session } = await ofPage();
        return { session, step: () => shop.service.call('GET', uri), done: 200, isAnswer: false };
      },
      'a good answer': async () => ({ ...(await answering('check', ['name'])), end: 'completed' }),
      'a good answer that a backend is told': async () => ({ ...(await answering('told', ['name'])), end: 'completed' }),
      'a bad answer': async () => ({ ...(await answering('check', [])), done: 400, end: 'failed' }),
      'a bad answer that a backend is told': async () => ({ ...(await answering('told', [])), done: 400, end: 'failed' }),
      'an answer of a page': async () => {
        const asked = await ofPage();
        const text = bindToRequest(asked, held, ['name'], { aud: `origin:${SHOP}` });
        const json = { response: await encryptResponse(asked, { vp_token: { card: [text] } }) };
        const step = () => shop.service.call('POST', asked.uri, { json });
        return { session: asked.session, step, done: 200, isAnswer: true, end: 'completed' };
      },
      'an error of a wallet': async () => {
        const asked = await shop.requestPresentation('told');
        const form = { error: 'access_denied', state: asked.payload['state'] };
        const step = () => shop.postResponse(asked, form);
        return { session: asked.session, step, done: 200, isAnswer: true, end: 'failed' };
      },
    };

    for (const [what, begin] of Object.entries(courses)) {
      for (const mode of ['before', 'after'] as const) {
        it(`leaves ${what} before or after a step when the call fails ${mode} its effect`, async () => {
          let n = 1;
          for (; n <= MAX_CALLS; n++) if (!(await sweep(await begin(), n, mode))) break;
          expect(n, 'calls that were broken off').to.be.within(2, MAX_CALLS);
        });
      }
    }

    /** @returns false when the step was over before the n-th call. */
    async function sweep(course: Course, n: number, mode: FaultMode): Promise<boolean> {
      const { session, step, done, isAnswer, end } = course;
      const told = () => shop.backend.calls.length;
      const before = told();
      faults.arm(n, mode);
      const broken = await step();
      if (!faults.disarm()) {
        expect(broken.status, `nothing failed: ${broken.text}`).to.equal(done);
        if (session !== undefined && end !== undefined) expect(await statusOf(session)).to.equal(end);
        return false;
      }
      const place = `call ${n}, ${mode}`;
      expect(broken.text, place).not.to.match(/fails (before|after)/);
      const again = await step();
      expect(again.status, `${place}, repeated: ${again.text}`).to.be.lessThan(500);
      if (!isAnswer) expect(again.status, `${place}, repeated: ${again.text}`).to.equal(done);
      const accepted = [broken, again].filter(({ status }) => status === 200).length;
      if (isAnswer) expect(accepted, `${place}: accepted`).to.be.at.most(1);
      const calls = shop.backend.calls.slice(before);
      expect(calls.length, `${place}: calls of the backend`).to.be.at.most(1);
      await finishDeliveries();
      const deliveries = shop.backend.calls.slice(before).map(({ headers }) => headers['webhook-id']);
      expect(new Set(deliveries).size, `${place}: deliveries`).to.be.at.most(1);
      if (session !== undefined) await expectWhole(session, isAnswer, accepted, place);
      return true;
    }

    /** Whatever was answered is over; what was verified stands there only when the session is completed. */
    async function expectWhole(id: string, isAnswer: boolean, accepted: number, place: string): Promise<void> {
      // Who reads sessions sees what is noted late.
      expect((await shop.call('GET', `/session/${id}`)).status, place).to.equal(200);
      const session = (await steps().session(id as SessionId))?.session;
      const status = session?.status;
      if (!isAnswer) {
        expect([status, session?.outcome], place).to.deep.equal(['fetched', null]);
        return;
      }
      expect(status, `${place}: the session`).to.be.oneOf(['completed', 'failed']);
      const { credentials, failure } = session?.outcome ?? {};
      if (status === 'completed') expect(credentials, place).to.have.length(1);
      if (status === 'failed') expect(failure, place).to.not.equal(undefined);
      // Who was told that it is good finds it so.
      if (accepted === 1 && failure === undefined) expect(status, place).to.equal('completed');
    }

    /** What a process does that comes after one that died during the call of a backend. */
    async function finishDeliveries(): Promise<void> {
      const { container } = shop.service.service;
      await obtain(container, FinishDeliveries).execute(new Date(Date.now() + 70_000), 10);
    }

    async function statusOf(id: string) {
      return (await steps().session(id as SessionId))?.session?.status;
    }
  });
}
