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

/** A presentation flow whose step is interrupted at every call. */
type FaultFlow = {
  /** Undefined when the step creates the session. */
  readonly session?: string;
  readonly step: () => Promise<Answer>;
  /** Statuses of the step when nothing fails. */
  readonly done: number;
  /** Whether the step ends the session, so that it can succeed at most once. */
  readonly isAnswer: boolean;
  /** Final status of the session. */
  readonly end?: 'completed' | 'failed';
};

/** Upper bound for the number of calls of a step. */
const MAX_CALLS = 40;
const SHOP = 'https://shop.example';

for (const kind of databases()) {
  describe(`failed call during a presentation, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let shop: Shop;
    let credential: HeldCredential;
    let faults: Faults;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const { url } = database;
      shop = await Shop.open({}, () => startTestService({ DATABASE_URL: url }));
      const webhook = { url: `${shop.backend.url}/presented` };
      await shop.configure({ id: 'told', webhook, redirectUri: 'https://shop.example/done' });
      await shop.configure({ id: 'page', expectedOrigins: [SHOP], webhook });
      credential = await shop.issue('card-status');
      faults = new Faults(shop.service.service);
    });
    after(async () => {
      await shop?.close();
      await database?.drop();
    });

    const steps = () => stepsOf(shop.service.service.container.get(Store), 'shop' as TenantId);
    const offer = (requestId: string, response_type = 'uri') => shop.call('POST', '/verifier/offer', { response_type, requestId });
    const createPageRequest = async () => {
      const { body } = await offer('page', 'dc-api');
      return { ...body, payload: decode(body.dcApi.requests[0].data.request).payload };
    };
    const answerRequest = async (id: string, names: string[]) => {
      const request = await shop.requestPresentation(id);
      const form = await responseForm(request, { card: [bindToRequest(request, credential, names)] });
      return { session: request.session, step: () => shop.postResponse(request, form), done: 200, isAnswer: true } as const;
    };

    const flows: Readonly<Record<string, () => Promise<FaultFlow>>> = {
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
        const { uri, session } = await createPageRequest();
        return { session, step: () => shop.service.call('GET', uri), done: 200, isAnswer: false };
      },
      'a good answer': async () => ({ ...(await answerRequest('check', ['name'])), end: 'completed' }),
      'a valid response that is reported to a backend': async () => ({ ...(await answerRequest('told', ['name'])), end: 'completed' }),
      'a bad answer': async () => ({ ...(await answerRequest('check', [])), done: 400, end: 'failed' }),
      'an invalid response that is reported to a backend': async () => ({ ...(await answerRequest('told', [])), done: 400, end: 'failed' }),
      'an answer of a page': async () => {
        const request = await createPageRequest();
        const text = bindToRequest(request, credential, ['name'], { aud: `origin:${SHOP}` });
        const json = { response: await encryptResponse(request, { vp_token: { card: [text] } }) };
        const step = () => shop.service.call('POST', request.uri, { json });
        return { session: request.session, step, done: 200, isAnswer: true, end: 'completed' };
      },
      'an error of a wallet': async () => {
        const request = await shop.requestPresentation('told');
        const form = { error: 'access_denied', state: request.payload['state'] };
        const step = () => shop.postResponse(request, form);
        return { session: request.session, step, done: 200, isAnswer: true, end: 'failed' };
      },
    };

    for (const [description, startFlow] of Object.entries(flows)) {
      for (const mode of ['before', 'after'] as const) {
        it(`leaves ${description} before or after a step when the call fails ${mode} its effect`, async () => {
          let n = 1;
          for (; n <= MAX_CALLS; n++) if (!(await sweep(await startFlow(), n, mode))) break;
          expect(n, 'calls that were broken off').to.be.within(2, MAX_CALLS);
        });
      }
    }

    /** Fails the n-th call of a step and repeats the step. @returns false when the step makes fewer calls. */
    async function sweep(flow: FaultFlow, n: number, mode: FaultMode): Promise<boolean> {
      const { session, step, done, isAnswer, end } = flow;
      const countWebhookCalls = () => shop.backend.calls.length;
      const callsBefore = countWebhookCalls();
      faults.arm(n, mode);
      const failedResponse = await step();
      if (!faults.disarm()) {
        expect(failedResponse.status, `the call did not fail: ${failedResponse.text}`).to.equal(done);
        if (session !== undefined && end !== undefined) expect(await readStatus(session)).to.equal(end);
        return false;
      }
      const callDescription = `call ${n}, ${mode}`;
      expect(failedResponse.text, callDescription).not.to.match(/fails (before|after)/);
      const repeatedResponse = await step();
      expect(repeatedResponse.status, `${callDescription}, repeated: ${repeatedResponse.text}`).to.be.lessThan(500);
      if (!isAnswer) expect(repeatedResponse.status, `${callDescription}, repeated: ${repeatedResponse.text}`).to.equal(done);
      const accepted = [failedResponse, repeatedResponse].filter(({ status }) => status === 200).length;
      if (isAnswer) expect(accepted, `${callDescription}: accepted`).to.be.at.most(1);
      const calls = shop.backend.calls.slice(callsBefore);
      expect(calls.length, `${callDescription}: calls of the backend`).to.be.at.most(1);
      await finishDeliveries();
      const deliveries = shop.backend.calls.slice(callsBefore).map(({ headers }) => headers['webhook-id']);
      expect(new Set(deliveries).size, `${callDescription}: deliveries`).to.be.at.most(1);
      if (session !== undefined) await expectConsistent(session, isAnswer, accepted, callDescription);
      return true;
    }

    /** Expects that an answered session has ended, and that only a completed session has results. */
    async function expectConsistent(id: string, isAnswer: boolean, accepted: number, callDescription: string): Promise<void> {
      // Reading the session stores pending changes.
      expect((await shop.call('GET', `/session/${id}`)).status, callDescription).to.equal(200);
      const session = (await steps().session(id as SessionId))?.session;
      const status = session?.status;
      if (!isAnswer) {
        expect([status, session?.outcome], callDescription).to.deep.equal(['fetched', null]);
        return;
      }
      expect(status, `${callDescription}: the session`).to.be.oneOf(['completed', 'failed']);
      const { credentials, failure } = session?.outcome ?? {};
      if (status === 'completed') expect(credentials, callDescription).to.have.length(1);
      if (status === 'failed') expect(failure, callDescription).to.not.equal(undefined);
      // A session that was reported as completed is completed.
      if (accepted === 1 && failure === undefined) expect(status, callDescription).to.equal('completed');
    }

    /** Finishes deliveries of a process that died during the call of a backend. */
    async function finishDeliveries(): Promise<void> {
      const { container } = shop.service.service;
      await obtain(container, FinishDeliveries).execute(new Date(Date.now() + 70_000), 10);
    }

    async function readStatus(id: string) {
      return (await steps().session(id as SessionId))?.session?.status;
    }
  });
}
